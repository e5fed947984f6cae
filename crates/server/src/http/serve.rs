//! The accept loop: limits connections, passes requests to the handler and shuts down gracefully.
//!
//! `axum::serve` has neither the limits nor the timeouts that keep one client from blocking others.
//!
//! **Limits.** A request header must arrive within 10 seconds and have at most 100 lines and 32 KiB (64 KiB
//! if it arrives in a single read).
//! hyper responds to larger headers and to invalid HTTP with a 400, 414 or 431 without a body. Idle
//! connections are closed after 10 seconds. Connections beyond the limit of their IP address are closed
//! immediately. At the total limit, connections that wait for their peer are closed for new ones (see
//! `connections`).
//!
//! **Shutdown.** On a stop signal readiness fails (see `admin`), and for the drain time every response
//! has `Connection: close`, so that load balancers and clients switch to other instances. Then the
//! listener is closed and running requests are completed. A connection that was accepted just before
//! has a moment to send its request: with socket activation, clients connect until the last instant.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc,
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
use hyper::{body::Body as _, server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, server::graceful::GracefulConnection};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::OwnedSemaphorePermit,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

use super::{
    client_ip::{RemoteAddr, TrustedProxies},
    connections::Connections,
    drain_body::BodyDrain,
    timeout_stream::{ConnectionPhase, TimeoutStream},
};

const MAX_HEADER_BYTES: usize = 32 * 1024;
/// How long running requests may take after the listener is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a new connection may take to send its first request after the listener is closed.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct ListenerConfig {
    /// The metric label.
    pub name: &'static str,
    /// Connections from these are not limited per IP address.
    pub proxies: TrustedProxies,
    pub max_connections: usize,
    pub max_connections_per_ip: usize,
    /// How long to accept connections after a stop signal.
    pub drain_time: Duration,
    /// Canceled when the listener closes, after responses have begun to close their connections.
    pub closing: CancellationToken,
}

/// Handles requests.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    /// Hot path: the request is boxed up to its route, because every future on the way would copy it
    /// (measured: session check 31,300 to 30,200 instructions).
    fn handle(
        &self,
        request: Box<Request<Body>>,
        remote_addr: RemoteAddr,
    ) -> impl Future<Output = Response> + Send;
}

impl RequestHandler for Router {
    async fn handle(&self, request: Box<Request<Body>>, _: RemoteAddr) -> Response {
        let Ok(response) = self.clone().call(*request).await;
        response
    }
}

/// Serves `handler` on `listener` until `stop` is canceled and the drain time has passed, then waits for
/// running requests.
pub async fn serve(
    listener: TcpListener,
    handler: impl RequestHandler,
    config: ListenerConfig,
    stop: CancellationToken,
) {
    let (tasks, closing) = (TaskTracker::new(), &config.closing);
    let connections = Connections::new(config.name, config.max_connections);
    let stopping = Arc::new(AtomicBool::new(false));
    let drained = async {
        stop.cancelled().await;
        stopping.store(true, Ordering::Relaxed);
        tokio::time::sleep(config.drain_time).await;
    };
    tokio::pin!(drained);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            () = &mut drained => break,
        };
        let (stream, address, permit) = accepted;
        let limit = (!config.proxies.contains(address)).then_some(config.max_connections_per_ip);
        let phase = ConnectionPhase::new();
        let Some(slot) = connections.acquire(address, limit, phase.clone(), permit) else {
            metrics::counter!("perennial_shed_total", "by" => "connections_per_peer").increment(1);
            continue;
        };
        let connection = HttpConnection {
            address,
            proxies: config.proxies.clone(),
            phase: phase.clone(),
            stopping: stopping.clone(),
            handler: handler.clone(),
        };
        let connection = run_until_closed(connection.serve(stream), phase, closing.clone());
        let id = slot.id();
        let task = tasks.spawn(async move {
            // Disconnects and invalid HTTP are not errors of the service.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection error");
            }
            drop(slot);
        });
        connections.set_task(id, task.abort_handle());
    }
    drop(listener);
    closing.cancel();
    tasks.close();
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not finish in time and were aborted");
    }
}

/// Serves a connection until its peer or `closing` ends it. Completes a running request, and waits a
/// moment for the first one: hyper would close a connection on which nothing has arrived yet.
async fn run_until_closed<C: GracefulConnection>(
    connection: C,
    phase: ConnectionPhase,
    closing: CancellationToken,
) -> Result<(), C::Error> {
    let may_close = async {
        closing.cancelled().await;
        if phase.awaits_first_request() {
            tokio::time::sleep(FIRST_REQUEST_TIMEOUT).await;
        }
    };
    tokio::pin!(connection);
    tokio::select! {
        result = &mut connection => return result,
        () = may_close => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Waits until a connection is allowed and accepts it.
async fn accept(
    listener: &TcpListener,
    connections: &Connections,
) -> (TcpStream, IpAddr, Option<OwnedSemaphorePermit>) {
    let permit = connections.permit().await;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address.ip().to_canonical(), permit),
            Err(error) => {
                // Most likely out of file descriptors: wait until other connections are closed.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The state that the requests of one connection share.
struct HttpConnection<H> {
    address: IpAddr,
    proxies: TrustedProxies,
    phase: ConnectionPhase,
    stopping: Arc<AtomicBool>,
    handler: H,
}

impl<H: RequestHandler> HttpConnection<H> {
    /// Serves requests until the connection is closed.
    fn serve(
        self,
        stream: TcpStream,
    ) -> impl GracefulConnection<Error = hyper::Error> + Send + use<H> {
        // Each response is one write, so Nagle's algorithm would only add latency.
        let _ = stream.set_nodelay(true);
        let stream = TimeoutStream::new(stream, self.phase.clone());
        // Hot path: each connection has its own reference count, because all threads would write to a
        // shared one (measured with one thread and with two: no difference remains).
        let connection = Arc::new(self);
        let service = service_fn(move |request| {
            let connection = connection.clone();
            let (request, body) = BodyDrain::watch(request, &connection.phase);
            async move { Ok::<_, Infallible>(connection.respond(request, body).await) }
        });
        http1::Builder::new()
            // `TimeoutStream` has its own timeout.
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    }

    async fn respond(&self, request: Box<Request<Body>>, body: Option<BodyDrain>) -> Response {
        let remote_addr = self.proxies.remote_addr(self.address, request.headers());
        let mut response = self.handler.handle(request, remote_addr).await;
        let reusable = match body {
            Some(body) => body.drain().await,
            None => true,
        };
        // Only streams have an unknown length. The phase of a stream has no end, so its connection is closed after it.
        let is_stream = response.body().size_hint().exact().is_none();
        if !reusable || is_stream || self.stopping.load(Ordering::Relaxed) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        if is_stream {
            self.phase.stream_started();
        } else {
            self.phase.response_ready();
        }
        response
    }
}
