//! Ends the sessions of an identity provider that was removed.

use std::{sync::Arc, time::Duration};

use crate::{
    app::App,
    auth::{
        Tenant,
        sessions::{RevokeReason, SessionScope, set_watermark},
    },
    events::Actor,
    http::problem::Problem,
};

/// How long after the removal of an identity provider a sign-in with one of its tokens can still
/// succeed: the TTL of the instances' provider cache, the timeout of a request, and a margin.
pub const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(12);

/// Ends the sessions at once. Instances accept the provider's tokens until their caches have expired and requests in
/// progress are done, so sessions that are created in the meantime are ended at the end of that time.
pub(super) async fn end_sessions(
    app: &Arc<App>,
    tenant: &Tenant,
    issuer: String,
    actor: Actor,
) -> Result<(), Problem> {
    let scope = SessionScope::Issuer(tenant.id, issuer.clone());
    let cause = (RevokeReason::ProviderRemoved, &actor);
    set_watermark(app.database_for(tenant)?, &scope, cause).await?;
    let (app, tenant, actor) = (app.clone(), tenant.clone(), actor.clone());
    tokio::spawn(async move {
        tokio::time::sleep(SIGN_IN_TIMEOUT).await;
        let cause = (RevokeReason::ProviderRemoved, &actor);
        let ended = async { set_watermark(app.database_for(&tenant)?, &scope, cause).await };
        if let Err(error) = ended.await {
            tracing::warn!(
                issuer,
                %error,
                "the sessions of sign-ins in progress were not revoked; run `perennial session revoke --issuer`"
            );
        }
    });
    Ok(())
}
