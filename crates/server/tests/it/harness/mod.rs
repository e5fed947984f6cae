//! Starts real parts for the tests: databases, clusters, the binary.

pub mod process;

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// A port nobody listens on, below the range from which the system picks a caller's own port: there
/// a reconnecting client could connect to itself and keep the port from its server.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 10_000 + (std::process::id() % 1_000) as u16 * 20;
    for _ in 0..20_000 {
        let port = 10_000 + (start - 10_000 + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}
