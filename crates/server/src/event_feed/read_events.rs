//! `GET /events`

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use super::{
    event_cursor::{EventCursor, EventOrder},
    event_params::{EventParams, EventQuery, Start},
    server_sent_events::EventStream,
    start_waiting,
};
use crate::{
    app::App,
    auth::{Caller, EventsRead, Tenant},
    events::{
        log::{self, EventFilter, LogHead, LogPage, LogSubscription},
        view::EventView,
    },
    http::{
        accept::accepts_media_type,
        middleware::LongPollWait,
        problem::{Code, CommonResponses, Problem, ProblemBody},
        query::QueryParams,
        response::NoStore,
    },
};

const STREAM_MEDIA_TYPE: &str = "text/event-stream";

/// A part of a tenant's event log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventPage {
    /// The events, in the order in which they were committed, or in the reverse order.
    data: Vec<EventView>,
    /// Whether there may be more events, so that the next request should not wait.
    #[schema(example = false)]
    has_more: bool,
    /// The parameter `after` of the next request. It never expires, except with its events.
    #[schema(example = "6Xv3mQ1dTnWc0b2JpYk8sTIgMTA0Mg")]
    next_cursor: String,
}

/// Read events
///
/// Events are in the order in which they were committed: no event appears before one that was already returned.
/// Save `next_cursor` after processing a page. With `sort=-position`, the newest event is first; a page can be empty although
/// `has_more` is true, because each request reads a limited part of the log. With `wait`, the request waits for the next event. With
/// `Accept: text/event-stream`, the response is a stream that does not end: each event's `id` is a cursor, with which
/// `Last-Event-ID` or `after` continues. `limit` and `wait` do not apply to it.
#[utoipa::path(
    get,
    path = "/events",
    tag = "Events",
    operation_id = "readEvents",
    params(EventParams),
    responses(
        (status = 200, description = "A page of events, or a stream.", content(
            (EventPage = "application/json"),
            (String = "text/event-stream", example = json!("id: 6Xv3…\nevent: plan.created\ndata: {…}\n\n")),
        )),
        (status = 409, description = "The log was restored after the cursor was issued (`cursor_from_another_history`).",
            body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "Events after the cursor were removed (`events_removed`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read_events(
    State(app): State<Arc<App>>,
    caller: Caller<EventsRead>,
    headers: HeaderMap,
    params: QueryParams,
) -> Result<Response, Problem> {
    let is_stream = accepts_media_type(&headers, STREAM_MEDIA_TYPE);
    let query = EventQuery::parse(params, is_stream)?;
    if is_stream {
        return stream(app, caller, headers, query).await;
    }
    let tenant = caller.tenant();
    let start = query.start(None, &app, tenant.id)?;
    if query.order == EventOrder::NewestFirst {
        let page = read_newest_first(&app, tenant, &query, start).await?;
        return Ok(NoStore(StatusCode::OK, page).into_response());
    }
    let mut reader = EventReader::open(&app, tenant, query.filter, start).await?;
    let mut page = reader.read(&app, tenant, query.limit).await?;
    let mut waited = Duration::ZERO;
    if page.events.is_empty() && !query.wait.is_zero() {
        let _permit = start_waiting(&app, tenant.id)?;
        let deadline = Instant::now() + query.wait;
        while page.events.is_empty() && Instant::now() < deadline && !app.closing.is_cancelled() {
            if !has_more(&page) {
                let started = Instant::now();
                reader.wait(&app, deadline).await;
                waited += started.elapsed();
            }
            page = reader.read(&app, tenant, query.limit).await?;
        }
    }
    let body = EventPage {
        has_more: has_more(&page),
        data: page.events.iter().map(EventView::from).collect(),
        next_cursor: reader.cursor.to_text(&app, tenant.id, query.order),
    };
    let mut response = NoStore(StatusCode::OK, body).into_response();
    response.extensions_mut().insert(LongPollWait(waited));
    Ok(response)
}

/// Reads a page of the events before a cursor, or of the newest ones.
async fn read_newest_first(
    app: &App,
    tenant: &Tenant,
    query: &EventQuery,
    start: Start,
) -> Result<EventPage, Problem> {
    let before = match start {
        Start::After(cursor) => cursor.position,
        Start::Oldest | Start::Newest => i64::MAX,
    };
    let connection = app.database_for(tenant)?.connection().await?;
    let page = log::read_before(&connection, tenant.id, before, &query.filter, query.limit).await?;
    if let Start::After(cursor) = start {
        cursor.check_history(LogHead {
            epoch: page.epoch,
            last_position: page.last_position,
            removed_to: page.removed_to,
        })?;
    }
    let cursor = EventCursor {
        epoch: page.epoch,
        position: page.read_to,
    };
    Ok(EventPage {
        data: page.events.iter().map(EventView::from).collect(),
        has_more: page.read_to > page.removed_to + 1,
        next_cursor: cursor.to_text(app, tenant.id, query.order),
    })
}

/// Returns a stream, after checking what a stream can no longer report.
async fn stream(
    app: Arc<App>,
    caller: Caller<EventsRead>,
    headers: HeaderMap,
    query: EventQuery,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let last_event_id = match headers.get("last-event-id") {
        None => None,
        Some(value) => Some(value.to_str().map_err(|_| {
            let detail = "the header Last-Event-ID is not a cursor";
            Problem::new(Code::InvalidCursor, detail)
        })?),
    };
    let start = query.start(last_event_id, &app, tenant.id)?;
    let permit = start_waiting(&app, tenant.id)?;
    let reader = EventReader::open(&app, tenant, query.filter, start).await?;
    Ok(EventStream::new(app, caller, headers, reader, permit).into_response())
}

/// Returns whether the log continues after a page.
pub(super) fn has_more(page: &LogPage) -> bool {
    page.read_to < page.last_position
}

/// Reads a tenant's log from a position on.
pub(super) struct EventReader {
    filter: EventFilter,
    pub cursor: EventCursor,
    /// The reader starts with the oldest event, so that a removed one is not an error.
    from_oldest: bool,
    subscription: LogSubscription,
}

impl EventReader {
    /// Creates a reader and checks that the log continues after `start`.
    pub(super) async fn open(
        app: &App,
        tenant: &Tenant,
        filter: EventFilter,
        start: Start,
    ) -> Result<Self, Problem> {
        // Before the first read, so that no event is recorded between reading and waiting.
        let subscription = app.log_watch(&tenant.cell)?.subscribe(tenant.id);
        let connection = app.database_for(tenant)?.connection().await?;
        let head = log::head(&connection, tenant.id).await?;
        let position = match start {
            Start::Oldest => head.removed_to,
            Start::Newest => head.last_position,
            Start::After(cursor) => {
                cursor.check(head)?;
                cursor.position
            }
        };
        Ok(Self {
            filter,
            cursor: EventCursor {
                epoch: head.epoch,
                position,
            },
            from_oldest: matches!(start, Start::Oldest),
            subscription,
        })
    }

    /// Reads the next events, and moves the cursor after them.
    pub(super) async fn read(
        &mut self,
        app: &App,
        tenant: &Tenant,
        limit: i64,
    ) -> Result<LogPage, Problem> {
        let mut connection = app.database_for(tenant)?.connection().await?;
        let after = self.cursor.position;
        let page = log::read_after(&mut connection, tenant.id, after, &self.filter, limit).await?;
        let head = LogHead {
            epoch: page.epoch,
            last_position: page.last_position,
            removed_to: page.removed_to,
        };
        // Events may be removed between two reads.
        let is_unread = std::mem::take(&mut self.from_oldest);
        if !(is_unread && page.epoch == self.cursor.epoch) {
            self.cursor.check(head)?;
        }
        self.cursor.position = page.read_to;
        Ok(page)
    }

    /// Waits until the log may have grown since the last call, at most until the deadline or until the service stops.
    /// Holds no database connection.
    pub(super) async fn wait(&mut self, app: &App, deadline: Instant) {
        tokio::select! {
            _ = timeout_at(deadline, self.subscription.changed()) => {}
            () = app.closing.cancelled() => {}
        }
    }
}
