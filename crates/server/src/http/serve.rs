//! The accept loop: sockets in, requests to the router, an orderly end.
//!
//! We own it, instead of `axum::serve`, because a peer that sends half a header must not hold a
//! connection for ever, and because a stop must let running requests finish.

use std::{net::IpAddr, time::Duration};

use axum::{Router, body::Body, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::Service;

/// How long a peer may take to send its request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long running requests may take to finish after a stop was asked for.
const GRACE: Duration = Duration::from_secs(15);

/// The address at the other end of the socket, IPv4 also when it came over an IPv6 socket.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Serves `router` on `listener` until `stop`, then lets running requests finish.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let peer = Peer(address.ip().to_canonical());
                tokio::spawn(connection(stream, peer, router.clone(), &graceful));
            }
            Err(error) => {
                // Out of file descriptors, most likely: give others time to close theirs.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

/// One connection, from its first request to its end.
fn connection(
    stream: TcpStream,
    peer: Peer,
    router: Router,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<> {
    // Answers are written whole; waiting for more to fill a packet only adds latency.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().call(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let watched = graceful.watch(connection);
    async move {
        // A peer that hangs up or sends nonsense is its own affair; hyper has answered it.
        if let Err(error) = watched.await {
            tracing::debug!(%error, "connection ended early");
        }
    }
}
