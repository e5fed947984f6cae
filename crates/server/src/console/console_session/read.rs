//! `GET /console/session`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};

use super::view::ConsoleSessionView;
use crate::{
    app::App,
    auth::staff::{self, StaffCaller},
    http::{
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::NoStore,
    },
};

/// Get the session of the console
///
/// Returns the signed-in staff member and the tenant whose data the session shows.
#[utoipa::path(
    get,
    path = "/console/session",
    tag = "Console",
    operation_id = "readConsoleSession",
    security(("console-session" = [])),
    responses(
        (status = 200, description = "The session.", body = ConsoleSessionView),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: StaffCaller,
    params: QueryParams,
) -> Result<NoStore<ConsoleSessionView>, Problem> {
    params.finish()?;
    let home = app.db.home()?.connection().await?;
    let tenant = caller.tenant().id;
    let view = ConsoleSessionView::load(&app, &home, caller.session(), tenant).await?;
    let view = view.ok_or_else(staff::invalid_session)?;
    Ok(NoStore(StatusCode::OK, view))
}
