//! Starts real parts for the tests: databases, clusters, the binary.

pub mod api;
pub mod balancer;
pub mod cluster;
pub mod database;
pub mod held;
pub mod line;
pub mod people;
pub mod process;
pub mod provider;
pub mod proxy;
pub mod service;

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

/// A port nobody listens on, below the range from which the system picks a caller's own port: there
/// a reconnecting client could connect to itself and keep the port from its server.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 1_000) as u16 * 20;
    for _ in 0..20_000 {
        let port = 10_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}

/// Waits until `condition` holds, and answers how long that took.
pub async fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> Duration {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}
