//! `DELETE /authentication/delete-my-account/{auth_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::erase_user;
use crate::{
    app::App,
    auth::{Caller, SignedInUser, sessions::UserSession},
    http::{
        openapi::AccountIdPath,
        path_param::PathParam,
        problem::{Code, CommonResponses, Problem},
        response::NoContent,
    },
};

/// Delete the account
///
/// Revokes all sessions, expires all subscriptions and deletes the personal data of the signed-in user, in one transaction.
/// `auth_id` must be the id of the signed-in user; any other id is rejected, whether or not it exists. The same person can
/// sign up again, as a new user.
#[utoipa::path(
    delete,
    path = "/authentication/delete-my-account/{auth_id}",
    tag = "Authentication",
    operation_id = "deleteMyAccount",
    security(("client-id" = [], "bearer" = [])),
    params(AccountIdPath),
    responses(
        (status = 204, description = "Deleted."),
        CommonResponses,
    ),
)]
pub async fn delete_my_account(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    PathParam(id): PathParam<UserId>,
) -> Result<NoContent, Problem> {
    let UserSession { user, session, .. } = caller.require_user_session()?;
    if id.ok() != Some(user.id) {
        let detail = "auth_id must be the id of the signed-in user";
        return Err(Problem::new(Code::NotYourAccount, detail));
    }
    let tenant = caller.tenant();
    let now = app.clock.now();
    let age = session.authentication_age(now).as_secs();
    if tenant.recent_sign_in > 0 && age > i64::from(tenant.recent_sign_in) {
        let detail = format!(
            "the user authenticated {age} seconds ago, and at most {} seconds are allowed; authenticate at the identity \
             provider again, then sign in with the new token",
            tenant.recent_sign_in
        );
        return Err(Problem::new(Code::ReauthenticationRequired, detail));
    }
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let actor = caller.actor();
    let revoked = erase_user(&tx, app.ids, tenant, user.id, &actor, app.clocks()).await?;
    tx.commit().await?;
    if let Some(watermark) = revoked.and_then(|revoked| revoked.watermark) {
        let sessions = &app.authenticator.sessions;
        sessions.apply_watermark(tenant, &watermark);
    }
    Ok(NoContent)
}
