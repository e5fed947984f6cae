//! Drains request bodies that a handler has not read.
//!
//! A response can be sent before the body has been read, for example if the client is unknown, a rate
//! limit is exceeded, or the body is too large. hyper then closes the connection without announcing it,
//! and the client's next request fails. So a small remainder is read and discarded. For a large one, the
//! response has `Connection: close`.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{Request, header},
};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::timeout_stream::ConnectionPhase;

const MAX_DRAINED_BYTES: u16 = u16::MAX;
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// Receives a body that was dropped before its end.
type UnreadBody = Arc<Mutex<Option<Incoming>>>;

/// A body that moves to `unread` if it is dropped before its end.
struct WatchedBody {
    body: Option<Incoming>,
    unread: UnreadBody,
    phase: ConnectionPhase,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(&mut *body).poll_frame(cx);
        if body.is_end_stream() || matches!(frame, Poll::Ready(None)) {
            self.phase.body_finished();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map(HttpBody::size_hint)
            .unwrap_or_default()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.phase.body_finished();
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = unread;
    }
}

/// Drains what a handler has left of a request body.
pub(super) struct BodyDrain {
    unread: UnreadBody,
    /// The client sends the body only after `100 Continue`, which it has not received.
    expects_continue: bool,
}

impl BodyDrain {
    /// Watches the body of a request that has just started. Returns no drain if the request has no
    /// body.
    pub(super) fn watch(
        request: Request<Incoming>,
        phase: &ConnectionPhase,
    ) -> (Box<Request<Body>>, Option<Self>) {
        phase.request_started(!request.body().is_end_stream());
        if request.body().is_end_stream() {
            return (Box::new(request.map(Body::new)), None);
        }
        let unread = UnreadBody::default();
        let drain = Self {
            unread: unread.clone(),
            expects_continue: request.headers().contains_key(header::EXPECT),
        };
        let watch = |body| {
            Body::new(WatchedBody {
                body: Some(body),
                unread,
                phase: phase.clone(),
            })
        };
        (Box::new(request.map(watch)), Some(drain))
    }

    /// Reads and discards the rest of the body. Returns whether its end was reached, so that the
    /// connection can be reused.
    pub(super) async fn drain(self) -> bool {
        let unread = self
            .unread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(body) = unread else { return true };
        if self.expects_continue || body.size_hint().lower() > u64::from(MAX_DRAINED_BYTES) {
            return false;
        }
        let rest = Limited::new(body, usize::from(MAX_DRAINED_BYTES)).collect();
        matches!(tokio::time::timeout(DRAIN_TIMEOUT, rest).await, Ok(Ok(_)))
    }
}
