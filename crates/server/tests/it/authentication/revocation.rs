//! A session revoked on one instance is rejected on every other within a second, even if the
//! notification listener fails.
//!
//! `ROUNDS` sets how often each fault is injected; `just revocation` uses 200.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use perennial::randomness::Randomness;
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    client::create_client,
    cluster::{Backend, Cluster},
    database::connect,
    env_number,
    process::{Server, Variables, sandbox},
    proxy::FreezableProxy,
    wait_until,
};

fn rounds() -> usize {
    env_number("ROUNDS").unwrap_or(5)
}

/// Two instances on a private cluster. The second one connects through a proxy that can freeze.
struct RevocationFixture {
    cluster: Cluster,
    proxy: FreezableProxy,
    first: ApiClient,
    second: ApiClient,
    first_server: Server,
    second_server: Server,
}

impl RevocationFixture {
    async fn start() -> Self {
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
        let direct = with(&cluster.url());
        let first_server = Server::start(&direct).await;
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
            proxy.port
        );
        let second_server = Server::start(&with(&url)).await;
        let (_, client) = create_client(&cluster.url(), &[]);
        let first = ApiClient::new(&first_server.url).with("client-id", &client);
        first.sign_up("ada@example.com").await;
        Self {
            second: ApiClient::new(&second_server.url).with("client-id", &client),
            first,
            cluster,
            proxy,
            first_server,
            second_server,
        }
    }

    async fn session(&self) -> SessionTokens {
        self.first.sign_in("ada@example.com").await
    }

    /// Revokes all sessions of the user on the first instance.
    async fn revoke(&self, access: &str) {
        let bearer = self.first.with_bearer(access);
        let response = bearer.post("/authentication/tokens/revoke-all", "").await;
        assert_eq!(response.status, 200, "{}", response.text);
    }

    /// Returns how many checks the other instance has served from its cache.
    async fn cached_checks(&self) -> f64 {
        let series = "perennial_session_checks_total{by=\"memory\"}";
        self.second_server.metric(series).await.unwrap_or_default()
    }

    /// Checks the session until the other instance serves it from its cache.
    async fn wait_until_cached(&self, access: &str) {
        wait_until(
            "the session is cached",
            Duration::from_secs(10),
            async || {
                let before = self.cached_checks().await;
                assert_eq!(self.second.check(access).await.status, 200);
                self.cached_checks().await > before
            },
        )
        .await;
    }

    /// Revokes a session and returns how long the other instance accepts it after the response.
    async fn time_to_reject(&self, access: &str) -> Duration {
        self.revoke(access).await;
        let ended = Instant::now();
        assert_eq!(
            self.first.check(access).await.status,
            401,
            "immediately on the same instance"
        );
        loop {
            let elapsed = ended.elapsed();
            let status = self.second.check(access).await.status;
            match status {
                401 => return elapsed,
                200 => assert!(
                    elapsed < Duration::from_secs(1),
                    "accepted after {elapsed:?}"
                ),
                _ => panic!("{status}"),
            }
        }
    }

    /// Returns the PostgreSQL processes of the instances' notification listeners.
    async fn listeners(&self, admin: &Client) -> Vec<i32> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'perennial feed'";
        let rows = admin.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{what}: {} rounds, p50 {middle:.0?}, max {last:.0?}",
        times.len()
    );
}

/// Sleeps up to 255 ms, so that faults occur at any moment between two heartbeats.
async fn random_delay() {
    let [random] = Randomness.bytes();
    tokio::time::sleep(Duration::from_millis(u64::from(random))).await;
}

#[tokio::test]
async fn revoked_session_is_rejected_everywhere() {
    let fixture = RevocationFixture::start().await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = fixture.session().await;
        fixture.wait_until_cached(session.access()).await;
        times.push(fixture.time_to_reject(session.access()).await);
    }
    report("listener working", times);
}

#[tokio::test]
async fn revoked_session_is_rejected_while_the_listener_is_terminated() {
    let fixture = RevocationFixture::start().await;
    let admin = connect(&fixture.cluster.url()).await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = fixture.session().await;
        fixture.wait_until_cached(session.access()).await;
        random_delay().await;
        for process in fixture.listeners(&admin).await {
            let sql = "SELECT pg_terminate_backend($1)";
            admin.execute(sql, &[&process]).await.unwrap();
        }
        times.push(fixture.time_to_reject(session.access()).await);
    }
    report("listener terminated", times);
}

#[tokio::test]
async fn revoked_session_is_rejected_while_the_listener_is_frozen() {
    let fixture = RevocationFixture::start().await;
    let admin = connect(&fixture.cluster.url()).await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = fixture.session().await;
        fixture.wait_until_cached(session.access()).await;
        random_delay().await;
        let listeners = fixture.listeners(&admin).await;
        let listeners: Vec<Backend> = listeners
            .into_iter()
            .filter_map(|id| fixture.cluster.backend(id))
            .collect();
        assert!(!listeners.is_empty(), "no listener is connected");
        for listener in &listeners {
            listener.signal(Signal::STOP);
        }
        let time = fixture.time_to_reject(session.access()).await;
        for listener in &listeners {
            listener.signal(Signal::CONT);
        }
        times.push(time);
    }
    report("listener frozen", times);
}

#[tokio::test]
async fn revoked_session_is_rejected_while_notifications_are_lost() {
    let fixture = RevocationFixture::start().await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = fixture.session().await;
        fixture.wait_until_cached(session.access()).await;
        random_delay().await;
        fixture.proxy.set_frozen(true);
        let time = fixture.time_to_reject(session.access()).await;
        fixture.proxy.set_frozen(false);
        times.push(time);
    }
    report("notifications lost", times);
}

/// Checks that race a revocation, eight at a time.
#[tokio::test]
async fn check_racing_a_revocation_is_not_cached() {
    let fixture = Arc::new(RevocationFixture::start().await);
    let races = (rounds() * 8).min(125);
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let email = format!("user{worker}@example.com");
                fixture.first.sign_up(&email).await;
                for _ in 0..races {
                    let session = fixture.first.sign_in(&email).await;
                    let revoking = async {
                        // The other instance does not know the session, so that the checks fill its cache.
                        let [random] = Randomness.bytes();
                        tokio::time::sleep(Duration::from_micros(u64::from(random) * 20)).await;
                        fixture.revoke(session.access()).await;
                        Instant::now()
                    };
                    let checking = async {
                        let mut rejected = 0;
                        let mut last = Instant::now();
                        while rejected < 10 {
                            let response = fixture.second.check(session.access()).await;
                            match response.status {
                                200 => {
                                    assert_eq!(rejected, 0, "accepted after a rejection");
                                    last = Instant::now();
                                }
                                401 => rejected += 1,
                                // On a busy machine, admission control may reject a check.
                                503 if response.problem() == "overloaded" => {}
                                _ => panic!("{} {}", response.status, response.text),
                            }
                        }
                        last
                    };
                    let (ended, last) = tokio::join!(revoking, checking);
                    let late = last.saturating_duration_since(ended);
                    assert!(late < Duration::from_secs(1), "accepted {late:?} later");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(
        fixture.cached_checks().await > 0.0,
        "no check was served from the cache"
    );
}

#[tokio::test]
async fn session_check_without_database_returns_503() {
    let fixture = RevocationFixture::start().await;
    let session = fixture.session().await;
    fixture.wait_until_cached(session.access()).await;
    fixture.cluster.stop();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    for api in [&fixture.first, &fixture.second] {
        let response = api.check(session.access()).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (503, "unavailable")
        );
    }
    fixture.cluster.resume();
    for server in [&fixture.first_server, &fixture.second_server] {
        server.wait_for_ok("/readyz").await;
    }
    assert_eq!(fixture.first.check(session.access()).await.status, 200);
    fixture.wait_until_cached(session.access()).await;
}
