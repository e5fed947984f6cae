//! A session that is ended on one instance is refused on every other within a second, whatever becomes of the feed.
//!
//! `ROUNDS` says how often each fault is caused; `just revocation` takes 200.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use perennial::randomness::Randomness;
use tokio_postgres::Client;

use crate::harness::{
    api::Api,
    cluster::Cluster,
    database::connect,
    people::Tokens,
    process::{Server, Variables, run_ok, sandbox},
    proxy::Wire,
    wait_until,
};

fn rounds() -> usize {
    let given = std::env::var("ROUNDS").ok();
    given.map_or(8, |rounds| rounds.parse().unwrap())
}

/// Two instances on a cluster of their own; the second one's wire to it can be held.
struct Stage {
    cluster: Cluster,
    wire: Wire,
    one: Api,
    other: Api,
    one_server: Server,
    other_server: Server,
}

impl Stage {
    async fn start() -> Self {
        let cluster = Cluster::start_with(&["fsync = off"]);
        let wire = Wire::to(cluster.port, "perennial feed").await;
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
        let one_server = Server::start(&direct).await;
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
            wire.port
        );
        let other_server = Server::start(&with(&url)).await;
        let made = run_ok(&direct, &["client", "create", "--json"]);
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        let client = made["client_id"].as_str().unwrap();
        let one = Api::new(&one_server.url).with("client-id", client);
        one.sign_up("ada@example.com").await;
        Self {
            other: Api::new(&other_server.url).with("client-id", client),
            one,
            cluster,
            wire,
            one_server,
            other_server,
        }
    }

    async fn session(&self) -> Tokens {
        self.one.sign_in("ada@example.com").await
    }

    /// Ends all of a user's sessions at one instance.
    async fn revoke(&self, access: &str) {
        let bearer = self.one.on_behalf_of(access);
        let answer = bearer.post("/authentication/tokens/revoke-all", "").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// How many checks the other instance has answered from memory.
    async fn remembered_checks(&self) -> f64 {
        let (_, metrics) = self.other_server.admin("/metrics").await.unwrap();
        let line = metrics
            .lines()
            .find(|line| line.starts_with("perennial_session_checks_total{by=\"memory\"}"));
        line.map_or(0.0, |line| {
            line.rsplit(' ').next().unwrap().parse().unwrap()
        })
    }

    /// Checks until the other instance answers from memory.
    async fn is_remembered(&self, access: &str) {
        wait_until(
            "the session is remembered",
            Duration::from_secs(10),
            async || {
                let before = self.remembered_checks().await;
                assert_eq!(self.other.check(access).await.status, 200);
                self.remembered_checks().await > before
            },
        )
        .await;
    }

    /// Ends a session at one instance; how long the other goes on accepting it after that was answered.
    async fn end(&self, access: &str) -> Duration {
        self.revoke(access).await;
        let ended = Instant::now();
        assert_eq!(self.one.check(access).await.status, 401, "here at once");
        loop {
            let asked = ended.elapsed();
            let status = self.other.check(access).await.status;
            match status {
                401 => return asked,
                200 => assert!(asked < Duration::from_secs(1), "accepted after {asked:?}"),
                _ => panic!("{status}"),
            }
        }
    }

    /// The processes of the server that serve the instances' feeds.
    async fn feeds(&self, admin: &Client) -> Vec<i32> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'perennial feed'";
        let rows = admin.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

fn signal(name: &str, processes: &[i32]) {
    for process in processes {
        // It may have ended by itself.
        let _ = Command::new("kill")
            .args([name, &process.to_string()])
            .status();
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{what}: {} rounds, half within {middle:.0?}, all within {last:.0?}",
        times.len()
    );
}

/// Up to a quarter of a second, so that faults fall at any moment between two heartbeats.
async fn a_moment() {
    let [random] = Randomness.bytes();
    tokio::time::sleep(Duration::from_millis(u64::from(random))).await;
}

#[tokio::test]
async fn ended_while_all_is_well() {
    let stage = Stage::start().await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = stage.session().await;
        stage.is_remembered(session.access()).await;
        times.push(stage.end(session.access()).await);
    }
    report("feed alive", times);
}

#[tokio::test]
async fn ended_while_the_feed_is_cut() {
    let stage = Stage::start().await;
    let admin = connect(&stage.cluster.url()).await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = stage.session().await;
        stage.is_remembered(session.access()).await;
        a_moment().await;
        for process in stage.feeds(&admin).await {
            let sql = "SELECT pg_terminate_backend($1)";
            admin.execute(sql, &[&process]).await.unwrap();
        }
        times.push(stage.end(session.access()).await);
    }
    report("feed cut", times);
}

#[tokio::test]
async fn ended_while_the_feed_is_frozen() {
    let stage = Stage::start().await;
    let admin = connect(&stage.cluster.url()).await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = stage.session().await;
        stage.is_remembered(session.access()).await;
        a_moment().await;
        let feeds = stage.feeds(&admin).await;
        signal("-STOP", &feeds);
        let time = stage.end(session.access()).await;
        signal("-CONT", &feeds);
        times.push(time);
    }
    report("feed frozen", times);
}

#[tokio::test]
async fn ended_while_the_feed_is_swallowed() {
    let stage = Stage::start().await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let session = stage.session().await;
        stage.is_remembered(session.access()).await;
        a_moment().await;
        stage.wire.hold(true);
        let time = stage.end(session.access()).await;
        stage.wire.hold(false);
        times.push(time);
    }
    report("feed swallowed", times);
}

/// An answer that was on its way while the session was ended is not remembered. A thousand rounds, several at once.
#[tokio::test]
async fn a_dead_session_never_comes_back() {
    let stage = Arc::new(Stage::start().await);
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let stage = stage.clone();
            tokio::spawn(async move {
                let email = format!("user{worker}@example.com");
                stage.one.sign_up(&email).await;
                for _ in 0..125 {
                    let session = stage.one.sign_in(&email).await;
                    let ending = async {
                        // The other instance has never heard of it: the first checks fill its memory just now.
                        let [random] = Randomness.bytes();
                        tokio::time::sleep(Duration::from_micros(u64::from(random) * 20)).await;
                        stage.revoke(session.access()).await;
                        Instant::now()
                    };
                    let checking = async {
                        let mut dead = 0;
                        let mut last = Instant::now();
                        while dead < 10 {
                            match stage.other.check(session.access()).await.status {
                                200 => {
                                    assert_eq!(dead, 0, "it came back");
                                    last = Instant::now();
                                }
                                401 => dead += 1,
                                status => panic!("{status}"),
                            }
                        }
                        last
                    };
                    let (ended, last) = tokio::join!(ending, checking);
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
        stage.remembered_checks().await > 0.0,
        "nothing was ever remembered"
    );
}

/// While nothing can be asked, a session check is neither yes nor no.
#[tokio::test]
async fn a_database_that_is_away_is_503() {
    let stage = Stage::start().await;
    let session = stage.session().await;
    stage.is_remembered(session.access()).await;
    stage.cluster.stop();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    for caller in [&stage.one, &stage.other] {
        let answer = caller.check(session.access()).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (503, "unavailable")
        );
    }
    stage.cluster.resume();
    for server in [&stage.one_server, &stage.other_server] {
        server.wait_for("/readyz").await;
    }
    assert_eq!(stage.one.check(session.access()).await.status, 200);
    stage.is_remembered(session.access()).await;
}
