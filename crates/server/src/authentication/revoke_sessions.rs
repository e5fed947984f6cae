//! Revokes sessions and removes them from the cache.

use perennial_domain::SessionId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{
        Caller, SignedInUser,
        sessions::{self, RevokeReason, table},
    },
    db::Transaction,
    http::problem::Problem,
};

/// The result of revoking sessions.
#[derive(Serialize, ToSchema)]
#[schema(as = Revoked, example = json!({"success": true, "revoked": 1}))]
pub struct RevokedView {
    /// Always true.
    #[schema(example = true)]
    success: bool,
    /// Number of revoked sessions.
    #[schema(example = 1)]
    revoked: usize,
}

/// Which sessions of the signed-in user to revoke.
pub(super) enum RevokeScope {
    Current,
    All,
    AllExceptCurrent,
}

/// Revokes sessions of the signed-in user.
pub(super) async fn revoke_own(
    app: &App,
    caller: &Caller<SignedInUser>,
    scope: RevokeScope,
) -> Result<RevokedView, Problem> {
    let user_session = caller.require_user_session()?;
    let current = user_session.session.id;
    let reason = match scope {
        RevokeScope::Current => RevokeReason::Logout,
        RevokeScope::All => RevokeReason::RevokeAll,
        RevokeScope::AllExceptCurrent => RevokeReason::RevokeAllExceptCurrent,
    };
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let mut sessions = match scope {
        RevokeScope::Current => vec![current],
        RevokeScope::All | RevokeScope::AllExceptCurrent => {
            table::list_ids(&tx, tenant.id, user_session.user.id, false).await?
        }
    };
    if let RevokeScope::AllExceptCurrent = scope {
        sessions.retain(|session| *session != current);
    }
    let revoked = revoke(app, tx, caller, reason, &sessions).await?;
    Ok(RevokedView {
        success: true,
        revoked,
    })
}

/// Revokes sessions, commits, and removes them from the cache. Returns how many were revoked.
pub(super) async fn revoke<P>(
    app: &App,
    tx: Transaction<'_>,
    caller: &Caller<P>,
    reason: RevokeReason,
    sessions: &[SessionId],
) -> Result<usize, Problem> {
    let tenant = caller.tenant();
    let now = app.clock.now();
    let cause = (reason, &caller.actor());
    let revoked = sessions::revoke(&tx, app.ids, tenant.id, sessions, cause, now).await?;
    tx.commit().await?;
    app.authenticator.sessions.invalidate(tenant, &revoked);
    Ok(revoked.len())
}
