//! `DELETE /users/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::erase_user;
use crate::{
    app::App,
    auth::{Caller, UsersErase},
    http::{
        etag::IfMatch,
        openapi::{IfMatchParam, UserIdPath},
        path_param::PathParam,
        problem::{CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    users::{self, UserView, user_not_found},
};

/// Delete a user
///
/// Revokes all sessions, expires all subscriptions and erases the personal data of the user, in one transaction: the email
/// address, the external id, the metadata and the identities. Subscriptions and payments are kept. The same person can sign
/// up again, as a new user.
#[utoipa::path(
    delete,
    path = "/users/{id}",
    tag = "Users",
    operation_id = "deleteUser",
    params(
        UserIdPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete_user(
    State(app): State<Arc<App>>,
    caller: Caller<UsersErase>,
    PathParam(id): PathParam<UserId>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let user = users::lock_sql::lock_for_erasure(&tx, tenant.id, id).await?;
    let user = user.ok_or_else(|| user_not_found(Ok(id)))?;
    if_match.check(&UserView::from(&user))?;
    let revoked = erase_user(&tx, app.ids, tenant, id, &caller.actor(), app.clocks()).await?;
    tx.commit().await?;
    if let Some(watermark) = revoked.and_then(|revoked| revoked.watermark) {
        let sessions = &app.authenticator.sessions;
        sessions.apply_watermark(tenant, &watermark);
    }
    Ok(NoContent)
}
