//! `DELETE /authentication/delete-my-account/{auth_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::erase;
use crate::{
    app::App,
    callers::{Caller, SignedInUser, sessions::SignedIn},
    http::{
        answer::Gone,
        path::PathParam,
        problem::{AnyEndpoint, Code, Problem},
    },
};

/// Delete one's account
///
/// Ends all sessions and subscriptions of the bearer's user and erases what is known of the person, in one transaction. `auth_id` is the
/// bearer's own; any other is refused, whether or not there is such a user. The same person can sign up again, as a
/// new user.
#[utoipa::path(
    delete,
    path = "/authentication/delete-my-account/{auth_id}",
    tag = "Authentication",
    operation_id = "deleteMyAccount",
    security(("client-id" = [], "bearer" = [])),
    params(("auth_id" = String, Path, description = "The bearer's own id.", example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
        pattern = "^usr_[0-9a-f]{32}$")),
    responses(
        (status = 204, description = "The account is gone."),
        AnyEndpoint,
    ),
)]
pub async fn delete_my_account(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    PathParam(id): PathParam<UserId>,
) -> Result<Gone, Problem> {
    let SignedIn { user, session, .. } = caller.signed_in()?;
    let own = user.id;
    if id.ok() != Some(own) {
        let detail = "this is not the bearer's own id; users delete their own account only";
        return Err(Problem::new(Code::NotYourAccount, detail));
    }
    let tenant = caller.tenant();
    let now = app.clock.now();
    let age = now.duration_since(session.created_at).as_secs();
    if tenant.recent_sign_in > 0 && age > i64::from(tenant.recent_sign_in) {
        let detail = format!(
            "the last sign-in of this session is {age} seconds ago, and {} are allowed for this; sign in again",
            tenant.recent_sign_in
        );
        return Err(Problem::new(Code::ReauthenticationRequired, detail));
    }
    let mut connection = app.engine_of(tenant)?.connection().await?;
    let tx = connection.begin();
    let by = caller.by();
    let ended = erase(&tx, app.ids, tenant.id, own, &by, app.clocks()).await?;
    tx.commit().await?;
    app.bearers
        .sessions
        .forget(tenant, &ended.unwrap_or_default());
    Ok(Gone)
}
