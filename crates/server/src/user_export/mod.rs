//! Everything that is stored about a user, for data protection requests and support.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `POST /users/{id}/export` | `export.rs` | secret clients with `users:read`, `subscriptions:read`, `payments:read` and `events:read` |
//!
//! `perennial user export` prints the same, and `perennial user show` a part of it.

use std::sync::Arc;

use jiff::Timestamp;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

mod export;
mod provider_state;
mod user_record;
mod view;

pub use provider_state::{
    PaymentCommandJson, PaymentObjectJson, ProviderReport, ProviderReportJson, live,
};
pub use user_record::UserRecord;
pub use view::{DeletableView, EventJson, UserExport, payment_view, session_json};

/// A record, and when it was soft-deleted, if it was.
pub type WithDeletedAt<T> = (T, Option<Timestamp>);

/// Returns the endpoint of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(export::export))
}
