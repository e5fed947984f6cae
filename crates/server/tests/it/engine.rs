//! The way to the database: it goes away and comes back, it is slow, it is far behind TLS.

use std::time::{Duration, Instant};

use perennial::db::{Address, migrate};
use reqwest::Method;
use serde_json::json;

use crate::{
    harness::{
        api::{Answer, Api},
        cluster::Cluster,
        database::connect,
        process::{Server, run_ok, sandbox},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal,
};

const PLANS: &str = "/subscription-plans";

fn caller_of(server: &Server, database_url: &str) -> Api {
    let made = run_ok(&sandbox(database_url), &["client", "create", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    Api::new(&server.url).with("client-id", made["client_id"].as_str().unwrap())
}

fn assert_unavailable(answer: &Answer) {
    assert_refused(answer, "unavailable");
}

fn assert_refused(answer: &Answer, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (503, code),
        "{}",
        answer.text
    );
    assert_eq!(answer.header("retry-after"), "1");
    assert!(
        !answer.text.contains("postgres") && !answer.text.contains("refused"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn away_is_503_and_back_is_served_within_two_seconds() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    let caller = caller_of(&server, &cluster.url());
    let post = async |slug: &str| caller.post(PLANS, &minimal(slug).to_string()).await;
    assert_eq!(post("first").await.status, 201);

    for round in 0..3 {
        cluster.stop();
        // Known from before, known no more, and never known: all are told the same.
        let stranger = Api::new(&server.url).with("client-id", "prn_sk_stranger");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2_500) {
            assert_unavailable(&caller.get("/subscription-plans/first").await);
            assert_unavailable(&post("none").await);
            assert_unavailable(&stranger.get("/subscription-plans/first").await);
        }
        let (ready, said) = server.admin("/readyz").await.unwrap();
        assert_eq!((ready, said.as_str()), (503, "the database is away\n"));
        assert_eq!(server.admin("/livez").await.unwrap().0, 200);

        cluster.resume();
        let back = Instant::now();
        let limit = Duration::from_secs(2);
        let slug = format!("again-{round}");
        wait_until("a read is served", limit, async || {
            caller.get("/subscription-plans/first").await.status == 200
        })
        .await;
        wait_until("a write is served", limit, async || {
            post(&slug).await.status == 201
        })
        .await;
        wait_until("all lanes are open", limit, async || {
            server
                .admin("/metrics")
                .await
                .unwrap()
                .1
                .contains(r#"perennial_database_lanes_open{cell="home"} 2"#)
        })
        .await;
        // The worker goes on, too.
        let database = connect(&cluster.url()).await;
        database
            .batch_execute(
                "INSERT INTO client_values (tenant_id, client_id, value_hash, created_at, expires_at)
                 SELECT tenant_id, id, sha256(random()::text::bytea), now(), now() FROM clients LIMIT 1",
            )
            .await
            .unwrap();
        let expired = "SELECT count(*) FROM client_values WHERE expires_at IS NOT NULL";
        wait_until("the worker goes on", Duration::from_secs(4), async || {
            database
                .query_one(expired, &[])
                .await
                .unwrap()
                .get::<_, i64>(0)
                == 0
        })
        .await;
        println!(
            "round {round}: all is well {:?} after the database came back",
            back.elapsed()
        );
    }
}

/// A table that somebody has locked: told to come back, soon, and nothing is stuck afterwards.
#[tokio::test]
async fn a_lock_that_is_held_is_503() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let mut locker = service.database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE subscription_plans IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let plan = minimal("pro").to_string();
    let begun = Instant::now();
    let (read, write) = tokio::join!(
        caller.get("/subscription-plans/pro"),
        caller.post(PLANS, &plan)
    );
    assert_unavailable(&read);
    assert_unavailable(&write);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    lock.rollback().await.unwrap();
    assert_eq!(caller.post(PLANS, &plan).await.status, 201);
    assert_eq!(caller.get("/subscription-plans/pro").await.status, 200);
}

/// Sessions ended by force, again and again: a read whose lane is lost is asked again on another.
#[tokio::test]
async fn terminated_sessions_are_replaced() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller.post(PLANS, &minimal("pro").to_string()).await;
    let database = service.database.connect().await;
    let terminate = async |which: &str| {
        let query = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name LIKE 'perennial {which}' LIMIT 1"
        );
        database.query(&query, &[]).await.unwrap()
    };
    for _ in 0..30 {
        assert_eq!(terminate("lane").await.len(), 1);
        for _ in 0..4 {
            let answer = caller.get("/subscription-plans/pro").await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    }
    for round in 0..10 {
        terminate("pool").await;
        wait_until("a write is served", Duration::from_secs(2), async || {
            let plan = minimal(&format!("after-{round}")).to_string();
            let answer = caller.post(PLANS, &plan).await;
            assert!([201, 503].contains(&answer.status), "{}", answer.text);
            answer.status == 201
        })
        .await;
    }
}

/// With every connection of the pool in use, a write waits in line for 1.5 s at most; once the line
/// does not move, whoever arrives is turned away at once. Reads go on.
#[tokio::test]
async fn a_full_pool_sheds_writes_and_serves_reads() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller.post(PLANS, &minimal("pro").to_string()).await;
    let mut locker = service.database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let writers: Vec<_> = (0..12)
        .map(|number| {
            let caller = caller.clone();
            tokio::spawn(async move {
                caller
                    .post(PLANS, &minimal(&format!("w{number}")).to_string())
                    .await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(400)).await;
    for _ in 0..20 {
        let begun = Instant::now();
        assert_eq!(caller.get("/subscription-plans/pro").await.status, 200);
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(
            begun.elapsed() < Duration::from_millis(500),
            "{:?}",
            begun.elapsed()
        );
    }
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        let late = caller.post(PLANS, &minimal("late").to_string()).await;
        assert_refused(&late, "overloaded");
        quickest = quickest.min(begun.elapsed());
    }
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
    // A database with too much to do is not away.
    let (ready, _) = service.server.admin("/readyz").await.unwrap();
    assert_eq!(ready, 200);
    for writer in writers {
        let answer = writer.await.unwrap();
        // Those that had a connection waited for the table, the others for a connection.
        let code = answer.problem();
        assert!(["overloaded", "unavailable"].contains(&code.as_str()));
        assert_refused(&answer, &code);
    }
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    let shed = r#"perennial_shed_total{by="connection"} 13"#;
    assert!(metrics.contains(shed), "{metrics}");
    for measured in [
        r#"perennial_database_wait_seconds_count{cell="home",way="pool"}"#,
        r#"perennial_database_wait_seconds_count{cell="home",way="lane"}"#,
        "perennial_http_requests_in_flight 0",
        r#"perennial_connections_open{listener="interface"}"#,
    ] {
        assert!(metrics.contains(measured), "{measured}: {metrics}");
    }
    lock.rollback().await.unwrap();
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        1
    );
}

#[tokio::test]
async fn sslmode_means_what_it_means_to_psql() {
    let plain = Cluster::start();
    let tls = Cluster::start();
    let certificate = tls.speak_tls();
    let copy = std::env::temp_dir().join(format!("perennial-root-{}.crt", std::process::id()));
    std::fs::copy(certificate, &copy).unwrap();
    let root = format!("&sslrootcert={}", copy.display());

    let reaches = async |cluster: &Cluster, host: &str, query: &str| {
        let url = format!(
            "postgres://postgres@{host}:{}/postgres?{query}",
            cluster.port
        );
        match Address::parse(&url.into()) {
            Ok(address) => migrate::state(&address).await.is_ok(),
            Err(_) => false,
        }
    };
    let name = "localhost";
    let number = "127.0.0.1";
    for (cluster, host, query, expected) in [
        (&plain, number, "sslmode=disable", true),
        (&plain, number, "sslmode=prefer", true),
        (&plain, number, "", true),
        (&plain, number, "sslmode=require", false),
        (&plain, name, &format!("sslmode=verify-full{root}"), false),
        (&tls, number, "sslmode=disable", true),
        (&tls, number, "sslmode=prefer", true),
        (&tls, number, "sslmode=require", true),
        (&tls, name, "sslmode=verify-full", false),
        (&tls, number, &format!("sslmode=verify-full{root}"), false),
        (&tls, number, &format!("sslmode=verify-ca{root}"), true),
        (&tls, name, &format!("sslmode=verify-full{root}"), true),
        (&tls, name, "sslmode=verify-full&sslrootcert=/none", false),
        (&tls, number, "sslmode=sometimes", false),
    ] {
        let which = if std::ptr::eq(cluster, &raw const plain) {
            "plain"
        } else {
            "tls"
        };
        assert_eq!(
            reaches(cluster, host, query).await,
            expected,
            "{which} {host} {query}"
        );
    }

    // The whole service over it: pool and lanes.
    let url = format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=verify-full{root}",
        tls.port
    );
    let server = Server::start(&sandbox(&url)).await;
    let caller = caller_of(&server, &url);
    assert_eq!(
        caller.post(PLANS, &minimal("pro").to_string()).await.status,
        201
    );
    assert_eq!(caller.get("/subscription-plans/pro").await.status, 200);
    let sessions = connect(&tls.url())
        .await
        .query_one("SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'perennial%'", &[])
        .await
        .unwrap();
    assert!(
        sessions.get::<_, i64>(0) >= 3 && sessions.get::<_, i64>(1) == 0,
        "{sessions:?}"
    );
    std::fs::remove_file(copy).unwrap();
}

/// Requests that need no database are answered without one.
#[tokio::test]
async fn the_reference_needs_no_database() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    cluster.stop();
    let api = Api::new(&server.url);
    assert_eq!(api.get("/openapi.json").await.status, 200);
    assert_eq!(api.get("/nothing").await.status, 404);
    assert_eq!(
        api.try_send(Method::POST, PLANS, Some(json!({}).to_string().into()))
            .await
            .unwrap()
            .status,
        401
    );
}
