//! Two instances on a private cluster, whose notifications can fail to arrive.

use std::time::{Duration, Instant};

use perennial::randomness::Randomness;
use rustix::process::Signal;

use super::{
    cluster::{Backend, Cluster},
    database::connect,
    env_number,
    process::{Server, Variables, sandbox},
    proxy::FreezableProxy,
};

/// How often each fault is injected. `just prove revocation` sets `ROUNDS` to 200.
pub fn rounds() -> usize {
    env_number("ROUNDS").unwrap_or(5)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerFault {
    None,
    /// The server ends the sessions of the listeners, which reconnect.
    Terminated,
    /// The server processes of the listeners stop until the guard is dropped.
    Frozen,
    /// The second instance's session stays open, but forwards nothing until the guard is dropped.
    Lost,
}

/// Two instances. The second one connects through a proxy.
pub struct FaultyInstances {
    pub first: Server,
    pub second: Server,
    /// The environment of the first instance.
    pub variables: Variables,
    pub proxy: FreezableProxy,
    pub cluster: Cluster,
}

impl FaultyInstances {
    pub async fn start() -> Self {
        let cluster = Cluster::start();
        let proxy = FreezableProxy::start(cluster.port, "perennial feed").await;
        let with = |url: &str| -> Variables {
            let mut variables = sandbox(url);
            variables.insert(
                "PERENNIAL_PUBLIC_URL",
                "http://perennial.example".to_owned(),
            );
            variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
            variables
        };
        let variables = with(&cluster.url());
        let first = Server::start(&variables).await;
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
            proxy.port
        );
        let second = Server::start(&with(&url)).await;
        Self {
            first,
            second,
            variables,
            proxy,
            cluster,
        }
    }

    /// Injects a fault at a random moment between two heartbeats.
    pub async fn inject(&self, fault: ListenerFault) -> InjectedFault<'_> {
        let [random] = Randomness.bytes();
        tokio::time::sleep(Duration::from_millis(u64::from(random))).await;
        let mut frozen = Vec::new();
        match fault {
            ListenerFault::None => {}
            ListenerFault::Terminated => {
                let admin = connect(&self.cluster.url()).await;
                for process in self.listeners().await {
                    let sql = "SELECT pg_terminate_backend($1)";
                    admin.execute(sql, &[&process]).await.unwrap();
                }
            }
            ListenerFault::Frozen => {
                let listeners = self.listeners().await.into_iter();
                frozen.extend(listeners.filter_map(|id| self.cluster.backend(id)));
                assert!(!frozen.is_empty(), "no listener is connected");
                for listener in &frozen {
                    listener.signal(Signal::STOP);
                }
            }
            ListenerFault::Lost => self.proxy.set_frozen(true),
        }
        InjectedFault {
            frozen,
            proxy: &self.proxy,
        }
    }

    /// Returns the PostgreSQL processes of the instances' notification listeners.
    async fn listeners(&self) -> Vec<i32> {
        let admin = connect(&self.cluster.url()).await;
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'perennial feed'";
        let rows = admin.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Ends the fault when dropped.
pub struct InjectedFault<'a> {
    frozen: Vec<Backend>,
    proxy: &'a FreezableProxy,
}

impl Drop for InjectedFault<'_> {
    fn drop(&mut self) {
        self.proxy.set_frozen(false);
        self.frozen
            .iter()
            .for_each(|listener| listener.signal(Signal::CONT));
    }
}

/// Sends requests until one is rejected with 401, and returns how long that took. Panics if one is accepted
/// after a second.
pub async fn time_to_reject(mut status: impl AsyncFnMut() -> u16) -> Duration {
    let started = Instant::now();
    loop {
        let elapsed = started.elapsed();
        match status().await {
            401 => return elapsed,
            // Admission control may reject a request on a busy machine, and so may a lost connection.
            503 => assert!(elapsed < Duration::from_secs(10), "still unavailable"),
            status => assert!(
                status < 500 && elapsed < Duration::from_secs(1),
                "{status} after {elapsed:?}"
            ),
        }
    }
}

pub fn report(fault: ListenerFault, mut times: Vec<Duration>) {
    times.sort();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{fault:?}: {} rounds, p50 {middle:.0?}, max {last:.0?}",
        times.len()
    );
}
