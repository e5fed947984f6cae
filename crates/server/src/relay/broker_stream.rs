//! What the relay needs of a message broker.

use std::fmt;

use bytes::Bytes;
use perennial_domain::{EventId, EventKind, TenantId};

/// An event to publish.
#[derive(Debug, Clone)]
pub struct OutgoingEvent {
    pub tenant: TenantId,
    pub position: i64,
    pub id: EventId,
    pub kind: EventKind,
    /// The JSON representation, as in the API.
    pub body: Bytes,
}

/// The last event of a tenant that a stream contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedEvent {
    pub position: i64,
    pub id: EventId,
}

/// Why a stream could not be read or written. The relay then opens it again.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// Another process has published to the stream since it was opened.
    #[error("another process has published to the stream")]
    Fenced,
    #[error("{0}")]
    Unavailable(String),
}

impl StreamError {
    pub fn unavailable(error: impl fmt::Display) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// A durable stream of events in a message broker.
///
/// Several processes may have a stream open. `publish` must fail with [`StreamError::Fenced`] if
/// another process has published since this one opened the stream.
pub trait EventStream {
    /// The name under which positions are stored.
    fn name(&self) -> &str;

    /// Opens the stream and creates it if it does not exist. Returns its identity, which differs
    /// after the stream was deleted and created again.
    fn open(&mut self) -> impl Future<Output = Result<String, StreamError>> + Send;

    /// Returns the last event of a tenant, or `None` if the stream contains none.
    fn last_event(
        &mut self,
        tenant: TenantId,
    ) -> impl Future<Output = Result<Option<PublishedEvent>, StreamError>> + Send;

    /// Publishes events in this order, and returns after the broker has stored all of them. After an
    /// error, a part of them from the start may be stored, and the stream must be opened again.
    fn publish(
        &mut self,
        events: &[OutgoingEvent],
    ) -> impl Future<Output = Result<(), StreamError>> + Send;
}
