//! The accept loop: sockets in, requests to the router, an orderly end.
//!
//! We own it, instead of `axum::serve`, because a peer that is slow, silent or greedy must not keep
//! others from being served, and because a stop must not lose a request.
//!
//! **Limits.** A header has 10 seconds, 100 lines and 32 KiB (one that arrives in one piece may have
//! twice that); what is more, or no HTTP at all, is answered by hyper itself with a bare 400, 414 or 431. An idle connection is closed after the same
//! 10 seconds. One peer may have so many connections, all together so many; beyond the first the
//! peer's next one is closed at once, beyond the second new ones wait in the system's queue until
//! others end.
//!
//! **The end.** When a stop is asked for, readiness goes off (see `admin`), and for the drain time
//! nothing else changes but that every answer says `Connection: close`: load balancers learn to send
//! requests elsewhere, and callers open their next connection there. Then the listener closes and
//! what still runs may finish.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, header},
    response::Response,
};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::TokioIo,
    server::graceful::{GracefulConnection, GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::{
    peer::{Peer, Sender, TrustedProxies},
    socket::{Socket, Turn},
    unread::Unread,
};

/// The largest header.
const HEADER_BYTES: usize = 32 * 1024;
/// How long running requests may take to finish after the listener has closed.
const GRACE: Duration = Duration::from_secs(15);

/// How a listener is served.
#[derive(Debug, Clone)]
pub struct Serving {
    /// What it is called in the metrics.
    pub name: &'static str,
    /// Our own proxies; their connections are not counted per peer.
    pub proxies: TrustedProxies,
    /// Connections at once.
    pub connections: usize,
    /// Connections of one peer at once.
    pub connections_per_peer: usize,
    /// How long to go on accepting after a stop was asked for.
    pub drain: Duration,
}

/// Answers a request. It is boxed from here to its route, because it is moved into each of the futures on its way.
pub trait Answers: Clone + Send + Sync + 'static {
    /// The answer to one.
    fn answer(
        &self,
        request: Box<Request<Body>>,
        sender: Sender,
    ) -> impl Future<Output = Response> + Send;
}

impl Answers for Router {
    async fn answer(&self, request: Box<Request<Body>>, _: Sender) -> Response {
        let Ok(answer) = self.clone().call(*request).await;
        answer
    }
}

/// Serves `answers` on `listener` until `stop` and the drain time after it, then lets running requests
/// finish.
pub async fn serve(
    listener: TcpListener,
    answers: impl Answers,
    serving: Serving,
    stop: CancellationToken,
) {
    let graceful = GracefulShutdown::new();
    let all = Arc::new(Semaphore::new(serving.connections));
    let by_peer = ByPeer {
        counts: Arc::default(),
        open: metrics::gauge!("perennial_connections_open", "listener" => serving.name),
    };
    let stopping = Arc::new(AtomicBool::new(false));
    let drained = async {
        stop.cancelled().await;
        stopping.store(true, Ordering::Relaxed);
        tokio::time::sleep(serving.drain).await;
    };
    tokio::pin!(drained);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &all) => accepted,
            () = &mut drained => break,
        };
        let (stream, address, permit) = accepted;
        let limit = (!serving.proxies.contains(address)).then_some(serving.connections_per_peer);
        let Some(place) = by_peer.enter(Peer(address).network(), limit, permit) else {
            metrics::counter!("perennial_shed_total", "by" => "connections_per_peer").increment(1);
            continue;
        };
        let connection = Connection {
            address,
            proxies: serving.proxies.clone(),
            turn: Turn::of_peer(),
            stopping: stopping.clone(),
            answers: answers.clone(),
        };
        let connection = connection.over(stream);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A peer that hangs up or sends nonsense is its own affair; hyper has answered it.
            if let Err(error) = watched.await {
                tracing::debug!(%error, "connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    all: &Arc<Semaphore>,
) -> (TcpStream, IpAddr, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so there is always a permit in the end.
    let permit = all.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address.ip().to_canonical(), permit),
            Err(error) => {
                // Out of file descriptors, most likely: give others time to close theirs.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// How many connections each peer has.
#[derive(Clone)]
struct ByPeer {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    open: metrics::Gauge,
}

/// A connection's place, given back when it ends.
struct Place {
    peer: IpAddr,
    by_peer: ByPeer,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ByPeer {
    /// A place for one more connection of this peer, unless it has as many as it may.
    fn enter(
        &self,
        peer: IpAddr,
        limit: Option<usize>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<Place> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(peer).or_default();
        if limit.is_some_and(|limit| *count >= limit) {
            return None;
        }
        *count += 1;
        self.open.increment(1);
        Some(Place {
            peer,
            by_peer: self.clone(),
            _permit: permit,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.by_peer.open.decrement(1);
        let mut counts = self
            .by_peer
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.peer);
            }
        }
    }
}

/// What the requests of one connection share.
struct Connection<A> {
    address: IpAddr,
    proxies: TrustedProxies,
    turn: Turn,
    /// Whether it is to end soon.
    stopping: Arc<AtomicBool>,
    answers: A,
}

impl<A: Answers> Connection<A> {
    /// From its first request to its end.
    fn over(
        self,
        stream: TcpStream,
    ) -> impl GracefulConnection<Error = hyper::Error> + Send + use<A> {
        // Answers are written whole; waiting for more to fill a packet only adds latency.
        let _ = stream.set_nodelay(true);
        let socket = Socket::new(stream, self.turn.clone());
        // One for each connection: what all share, all would have to count.
        let own = Arc::new(self);
        let service = service_fn(move |request| {
            let own = own.clone();
            own.turn.is_ours();
            let (request, unread) = Unread::watch(request);
            async move { Ok::<_, Infallible>(own.answer(request, unread).await) }
        });
        http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(socket), service)
    }

    async fn answer(&self, request: Box<Request<Body>>, unread: Option<Unread>) -> Response {
        let sender = self.proxies.sender(self.address, request.headers());
        let mut answer = self.answers.answer(request, sender).await;
        let goes_on = match unread {
            Some(unread) => unread.out_of_the_way().await,
            None => true,
        };
        if !goes_on || self.stopping.load(Ordering::Relaxed) {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        self.turn.is_over();
        answer
    }
}
