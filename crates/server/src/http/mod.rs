//! The HTTP toolkit: everything that an endpoint inherits, nothing that knows a feature.
//!
//! A request comes in by [`serve`], is wrapped by [`envelope`], and its body is taken apart by
//! [`json`]. An answer goes out as an [`answer`] or a [`problem`].

pub mod answer;
mod brief;
pub mod common;
pub mod envelope;
pub mod etag;
mod explorer;
pub mod idempotency;
pub mod json;
pub mod page;
pub mod pages;
pub mod params;
pub mod path;
pub mod paths;
pub mod peer;
pub mod problem;
pub mod rate;
pub mod reference;
pub mod request_id;
pub mod schema;
pub mod serve;
mod socket;
mod span;
mod unread;
