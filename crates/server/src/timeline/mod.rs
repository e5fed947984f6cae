//! The timeline of a user: why each subscription has its status, what happens next, what fixes it, and what has happened.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /users/{id}/timeline` | `read.rs` | secret clients with `users:read` and `subscriptions:read`; on behalf of a user, only that user |
//! | `GET /subscriptions/next-steps` | `list_next_steps.rs` | secret clients with `subscriptions:read` |
//!
//! Every sentence is written here: the endpoint returns it, and `perennial user show` and `subscription show` print it. A
//! [`Situation`] is a subscription at an instant. `status_sentence.rs`, `next_steps.rs`, `fixes.rs` (with `managed_fixes.rs`) and `lifeline.rs` describe
//! it, from the rules of `domain/subscription` and from its events (`history.rs`).

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

mod actor_names;
mod event_author;
mod event_sentence;
mod fixes;
mod history;
mod lifeline;
mod list_next_steps;
mod managed_fixes;
mod next_steps;
pub mod plain_text;
mod read;
mod situation;
mod status_sentence;
#[cfg(test)]
mod tests;
mod view;

pub use actor_names::ActorNames;
pub use event_author::EventAuthor;
pub use event_sentence::summarize;
pub use history::{StatusHistory, load_histories};
pub use situation::Situation;
pub use status_sentence::deleted_sentence;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(read::read))
        .routes(routes!(list_next_steps::list_next_steps))
}
