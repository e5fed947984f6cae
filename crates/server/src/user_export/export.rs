//! `POST /users/{id}/export`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::{EventKind, UserId};
use serde_json::json;

use super::{user_record::UserRecord, view::UserExport};
use crate::{
    app::App,
    auth::{Caller, UsersExport},
    events,
    http::{
        json::NoBody,
        openapi::UserIdPath,
        path_param::PathParam,
        problem::{CommonResponses, EmptyBodyResponses, Problem, ProblemBody},
        response::NoStore,
    },
    users::{self, user_not_found},
};

/// Export a user
///
/// Returns everything that is stored about a user: identities, sessions, subscriptions with their ledgers, payments and all
/// events, as `perennial user export` prints it. Requires the scopes `users:read`, `subscriptions:read`, `payments:read` and
/// `events:read`. The export of a staff member is recorded as the event `staff.exported`.
#[utoipa::path(
    post,
    path = "/users/{id}/export",
    tag = "Users",
    operation_id = "exportUser",
    params(UserIdPath),
    responses(
        (status = 200, description = "The user's data.", body = UserExport),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn export(
    State(app): State<Arc<App>>,
    caller: Caller<UsersExport>,
    PathParam(id): PathParam<UserId>,
    _: NoBody,
) -> Result<NoStore<UserExport>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    let tenant = caller.tenant();
    let database = app.database_for(tenant)?;
    let user = users::table::find(database, tenant.id, id).await?;
    let user = user.ok_or_else(|| user_not_found(Ok(id)))?;
    let mut connection = database.connection().await?;
    // Before the data is read: no export is without its event.
    if let Some(staff) = caller.staff_id() {
        let (now, kind) = (app.clock.now(), EventKind::StaffExported);
        let data = json!({"user_id": id.to_string()});
        let tx = connection.begin();
        let event = caller.event(app.ids, now, kind, staff, &data);
        events::record(&tx, &event).await?;
        tx.commit().await?;
    }
    let record = UserRecord::load(connection, tenant.clone(), user, app.clocks()).await?;
    Ok(NoStore(StatusCode::OK, record.full_export().await?))
}
