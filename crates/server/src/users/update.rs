//! `PUT /users/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, UserId};

use super::{
    body::{UpdateUser, parse_update},
    duplicate, email_in_use, lock_sql, table, user_not_found,
    view::{UserEvent, UserView},
};
use crate::{
    app::App,
    auth::{Caller, UsersWrite, sessions},
    events,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::{IfMatchParam, UserIdPath},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
};

/// Update a user
///
/// Changes only the fields in the request. The next sign-in replaces the email address by the one that the identity
/// provider has verified.
#[utoipa::path(
    put,
    path = "/users/{id}",
    tag = "Users",
    operation_id = "updateUser",
    params(
        UserIdPath,
        IfMatchParam,
    ),
    request_body(content = UpdateUser, description = "The fields to change."),
    responses(
        (status = 200, description = "The user.", body = UserView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "Another user has this email address (`email_in_use`) or external id (`duplicate_external_id`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<UsersWrite>,
    PathParam(id): PathParam<UserId>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<UserView>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    let tenant = caller.tenant();
    let database = app.database_for(tenant)?;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let before = lock_sql::lock(&tx, tenant.id, id).await?;
    let before = before.ok_or_else(|| user_not_found(Ok(id)))?;
    let view = UserView::from(&before);
    if_match.check(&view)?;
    // Read under the lock, so that the order of events is the order of changes.
    let now = app.clock.now_after(before.updated_at);
    let changes = parse_update(fields, &before)?;
    let after = before.update(changes, now);
    let Some(after) = after.map_err(Problem::from_field_errors)? else {
        return Ok(OkJson(view));
    };
    match table::update(&tx, tenant.id, &after).await {
        Ok(true) => {}
        Ok(false) => return Err(email_in_use()),
        Err(error) if error.constraint() == Some(table::EMAIL_UNIQUE) => return Err(email_in_use()),
        Err(error) if error.constraint() == Some(table::EXTERNAL_ID_UNIQUE) => {
            return Err(duplicate(database, tenant.id, &after).await?);
        }
        Err(error) => return Err(error.into()),
    }
    // Sessions show the user.
    let sessions = sessions::table::notify_user_changed(&tx, tenant.id, id).await?;
    let data = UserEvent::updated(&before, &after);
    let event = caller.event(app.ids, now, EventKind::UserUpdated, id, &data);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    app.authenticator.sessions.invalidate(tenant, &sessions);
    Ok(OkJson(UserView::from(&after)))
}
