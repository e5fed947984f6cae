//! `GET /events/{id}`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::EventId;

use crate::{
    app::App,
    auth::{Caller, EventsRead},
    events::{log, view::EventView},
    http::{
        openapi::EventIdPath,
        path_param::PathParam,
        problem::{Code, CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
};

/// Get an event
///
/// The id is that of a list, of a stream, or the `webhook-id` of a webhook request.
#[utoipa::path(
    get,
    path = "/events/{id}",
    tag = "Events",
    operation_id = "readEvent",
    params(EventIdPath),
    responses(
        (status = 200, description = "The event.", body = EventView),
        (status = 404, description = "There is no such event, or it was removed at the end of its retention (`event_not_found`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read_event(
    State(app): State<Arc<App>>,
    caller: Caller<EventsRead>,
    PathParam(id): PathParam<EventId>,
) -> Result<NoStore<EventView>, Problem> {
    let not_found = |detail: String| Problem::new(Code::EventNotFound, detail);
    let id = id.map_err(|error| not_found(format!("no event has this id: {error}")))?;
    let tenant = caller.tenant();
    let connection = app.database_for(tenant)?.connection().await?;
    let event = log::find(&connection, tenant.id, id).await?;
    let event = event.ok_or_else(|| {
        let detail = format!("no event has this id, or retention has removed it: {id}");
        not_found(detail)
    })?;
    Ok(NoStore(StatusCode::OK, EventView::from(&event)))
}
