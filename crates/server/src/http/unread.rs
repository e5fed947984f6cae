//! What was sent and nobody read.
//!
//! An answer can be given before the request's body has been read: to a stranger, to somebody who comes
//! too often, to a body that is too large. On a connection that is to go on, the rest of the body must
//! be out of the way before the next request; hyper closes the connection instead, without having said
//! so, and a caller who has sent everything by then sends its next request into nothing. So what is
//! left of a small body is read and forgotten, and before anything else is left the answer says
//! `Connection: close`.

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

/// How much is read only to be forgotten, and for how long.
const MOST: u16 = u16::MAX;
const PATIENCE: Duration = Duration::from_millis(250);

/// Where a body that was not read to its end is left.
type Slot = Arc<Mutex<Option<Incoming>>>;

/// A body that is left in its slot if it is dropped before its end.
struct Watched {
    body: Option<Incoming>,
    left: Slot,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
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

impl Drop for Watched {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !body.is_end_stream());
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = left;
    }
}

/// What may be left of a request's body after it was answered.
pub(super) struct Unread {
    left: Slot,
    /// Whether the caller waits to be asked for the body; then nobody asks.
    expects: bool,
}

impl Unread {
    /// The request with its body watched; `None` if it has none.
    pub(super) fn watch(request: Request<Incoming>) -> (Box<Request<Body>>, Option<Self>) {
        if request.body().is_end_stream() {
            return (Box::new(request.map(Body::new)), None);
        }
        let left = Slot::default();
        let unread = Self {
            left: left.clone(),
            expects: request.headers().contains_key(header::EXPECT),
        };
        let watch = |body| {
            Body::new(Watched {
                body: Some(body),
                left,
            })
        };
        (Box::new(request.map(watch)), Some(unread))
    }

    /// Whether the connection can go on: nothing is left, or what was left has now been read.
    pub(super) async fn out_of_the_way(self) -> bool {
        let left = self
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(body) = left else { return true };
        if self.expects || body.size_hint().lower() > u64::from(MOST) {
            return false;
        }
        let rest = Limited::new(body, usize::from(MOST)).collect();
        matches!(tokio::time::timeout(PATIENCE, rest).await, Ok(Ok(_)))
    }
}
