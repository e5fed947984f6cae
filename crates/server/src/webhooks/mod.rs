//! Webhooks: the events of a tenant, sent to its endpoints as signed HTTP requests.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /webhook-endpoints` | `list.rs` | secret clients with `webhooks:read` |
//! | `POST /webhook-endpoints` | `create.rs` | secret clients with `webhooks:write` |
//! | `GET /webhook-endpoints/{id}` | `read.rs` | secret clients with `webhooks:read` |
//! | `PUT /webhook-endpoints/{id}` | `update.rs` | secret clients with `webhooks:write` |
//! | `DELETE /webhook-endpoints/{id}` | `delete.rs` | secret clients with `webhooks:write` |
//! | `POST /webhook-endpoints/{id}/enable` | `update.rs` | secret clients with `webhooks:write` |
//! | `POST /webhook-endpoints/{id}/rotate-secret` | `rotate_secret.rs` | secret clients with `webhooks:write` |
//! | `POST /webhook-endpoints/{id}/test` | `send_test.rs` | secret clients with `webhooks:write` |
//! | `GET /webhook-endpoints/{id}/attempts` | `attempts.rs` | secret clients with `webhooks:read` |
//! | `POST /webhook-endpoints/{id}/replays` | `replays.rs` | secret clients with `webhooks:write` |
//!
//! An endpoint is a cursor over the tenant's event log, so a change needs no row per endpoint, and an event that is
//! committed is never missed. `delivery/` sends the events, at least once each.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{EventKind, Href, WebhookEndpoint, WebhookEndpointId};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db::Sql,
    http::{
        outbound::AddressGuard,
        problem::{Code, Problem, ProblemFieldError},
    },
    record::Record,
};

mod attempts;
pub mod attempts_sql;
mod body;
mod claim_sql;
mod create;
mod delete;
pub mod delivery;
mod event_requests;
mod lease_sql;
mod list;
mod read;
mod replays;
mod replays_sql;
mod retries_sql;
mod rotate_secret;
pub mod secrets;
mod send_test;
pub mod signature;
pub mod table;
mod update;
mod view;

pub use body::{parse_create, parse_replay};
pub use create::{CreatedWebhookEndpoint, insert_endpoint};
pub use delete::delete_endpoint;
pub use event_requests::add_webhooks;
pub use lease_sql::{DeliveryBacklog, measure_backlog};
pub use list::list_all;
pub use replays::{find_positions, insert_replay};
pub use retries_sql::EndpointKey;
pub use rotate_secret::rotate_secret;
pub use send_test::test_endpoint;
pub use update::{enable_endpoint, update_endpoint};
pub use view::{WebhookAttemptView, WebhookEndpointView, WebhookReplayView, WebhookSecretView};

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
        .routes(routes!(update::enable))
        .routes(routes!(rotate_secret::rotate))
        .routes(routes!(send_test::send_test))
        .routes(routes!(attempts::list_attempts))
        .routes(routes!(replays::create_replay))
}

impl Record for WebhookEndpoint {
    type Id = WebhookEndpointId;
    type View = WebhookEndpointView;

    const NOUN: &'static str = "webhook endpoint";
    const KEY: &'static str = "id";
    const NOT_FOUND: Code = Code::WebhookEndpointNotFound;
    const DELETED: EventKind = EventKind::WebhookEndpointDeleted;
    const SOFT_DELETE: &'static Sql = &table::SOFT_DELETE;

    fn id(&self) -> WebhookEndpointId {
        self.id
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn view(&self, _now: Timestamp) -> WebhookEndpointView {
        WebhookEndpointView::from(self)
    }
}

/// Rejects a URL that requests must not reach.
pub async fn check_target(guard: &AddressGuard, url: &Href) -> Result<(), Problem> {
    guard
        .check_and_resolve(url.as_str())
        .await
        .map_err(|refused| {
            let message = refused.to_string();
            let error = ProblemFieldError::new("/url".to_owned(), Code::UrlNotAllowed, message);
            Problem::fields(vec![error])
        })
}
