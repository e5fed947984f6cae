//! Test harness: databases, PostgreSQL clusters, the server as a process or in process, and clients.

pub mod api;
pub mod auth;
pub mod certificates;
pub mod child;
pub mod client;
pub mod cluster;
pub mod cutting_proxy;
pub mod database;
pub mod dns_server;
pub mod event_source;
pub mod generated_file;
pub mod identity_provider;
pub mod in_process;
pub mod listener_faults;
pub mod load_balancer;
pub mod master_key;
pub mod nats;
pub mod payment_stand_in;
pub mod process;
pub mod proxy;
pub mod raw_connection;
pub mod recorder;
pub mod service;
pub mod stored_sessions;
pub mod webhook_receiver;

use std::{
    fmt,
    fs::File,
    net::{Ipv4Addr, TcpListener},
    str::FromStr,
    sync::Mutex,
    time::{Duration, Instant},
};

use perennial::randomness::Randomness;
use serde_json::Value;

/// Reserves a TCP port for as long as the test process runs.
///
/// A locked file per port keeps two test processes from choosing the same one. The range is below
/// the ephemeral ports: there, a reconnecting client could connect to itself and take the port from
/// its server.
pub fn reserve_port() -> u16 {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let locks = std::env::temp_dir().join("perennial-test-ports");
    std::fs::create_dir_all(&locks).unwrap();
    let start = (std::process::id() % 1_000) as u16 * 20;
    for offset in 0..20_000 {
        let port = 10_000 + (start + offset) % 20_000;
        let lock = File::create(locks.join(port.to_string())).unwrap();
        if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            RESERVED.lock().unwrap().push(lock);
            return port;
        }
    }
    panic!("no free port");
}

/// Returns the number in an environment variable, with which a proof of `tools/proofs.toml` asks for a
/// longer form of a test.
pub fn env_number<T: FromStr<Err: fmt::Debug>>(name: &str) -> Option<T> {
    let number = std::env::var(name).ok()?;
    Some(number.parse().unwrap())
}

/// Returns a name that no other test uses.
pub fn unique_name(prefix: &str) -> String {
    let random: [u8; 8] = Randomness.bytes();
    format!("{prefix}{:016x}", u64::from_le_bytes(random))
}

/// Returns an object's fields with further or other values.
pub fn merged(mut fields: Value, extra: &Value) -> Value {
    for (name, value) in extra.as_object().unwrap() {
        fields[name] = value.clone();
    }
    fields
}

/// Waits until `condition` holds and returns how long that took. Panics after `limit`.
pub async fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> Duration {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    started.elapsed()
}

/// Runs a future to completion on a thread with its own runtime, so that synchronous code (such as
/// `Drop`) can wait for it inside another runtime.
pub fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let run = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(future)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}
