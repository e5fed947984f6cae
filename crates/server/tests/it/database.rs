//! Database access: outages, locks, lost connections, an exhausted pool, and TLS.

use std::time::{Duration, Instant};

use perennial::db::{
    ConnectOptions,
    migrate::{self, MIGRATIONS},
};
use reqwest::Method;
use serde_json::json;

use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        client::create_client,
        cluster::Cluster,
        database::connect,
        process::{Server, run_ok, sandbox},
        proxy::FreezableProxy,
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

const PLANS: &str = "/subscription-plans";

fn api_client(server: &Server, database_url: &str) -> ApiClient {
    let (_, client) = create_client(database_url, &[]);
    ApiClient::new(&server.url).with("client-id", &client)
}

fn assert_unavailable(response: &ApiResponse) {
    assert_503(response, "unavailable");
}

fn assert_503(response: &ApiResponse, code: &str) {
    assert_eq!(
        (response.status, response.problem().as_str()),
        (503, code),
        "{}",
        response.text
    );
    assert_eq!(response.header("retry-after"), "1");
    assert!(
        !response.text.contains("postgres") && !response.text.contains("refused"),
        "{}",
        response.text
    );
}

/// A distant database takes longer to connect to than a read waits for a connection that is being
/// replaced.
#[tokio::test]
async fn command_waits_for_its_first_connection() {
    let cluster = Cluster::start();
    let variables = sandbox(&cluster.url());
    run_ok(&variables, &["migrate"]);
    let proxy = FreezableProxy::start(cluster.port, "perennial lane").await;
    proxy.set_frozen(true);
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
        proxy.port
    );
    let switch = ["tenant", "set", "--lifecycle", "managed"];
    let command = tokio::task::spawn_blocking(move || run_ok(&sandbox(&url), &switch));
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert!(!command.is_finished());
    proxy.set_frozen(false);
    command.await.unwrap();
}

#[tokio::test]
async fn outage_returns_503_and_recovery_takes_under_two_seconds() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    let api = api_client(&server, &cluster.url());
    let post = async |slug: &str| api.post(PLANS, &minimal_plan(slug).to_string()).await;
    assert_eq!(post("first").await.status, 201);

    for round in 0..3 {
        cluster.stop();
        // Cached, expired and unknown clients get the same response.
        let unknown_client = ApiClient::new(&server.url).with("client-id", "prn_sk_stranger");
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(2_500) {
            assert_unavailable(&api.get("/subscription-plans/first").await);
            assert_unavailable(&post("none").await);
            assert_unavailable(&unknown_client.get("/subscription-plans/first").await);
        }
        let (ready, output) = server.admin("/readyz").await.unwrap();
        assert_eq!(
            (ready, output.as_str()),
            (503, "the database is unavailable\n")
        );
        assert_eq!(server.admin("/livez").await.unwrap().0, 200);

        cluster.resume();
        let resumed = Instant::now();
        let limit = Duration::from_secs(2);
        let slug = format!("again-{round}");
        wait_until("a read is served", limit, async || {
            api.get("/subscription-plans/first").await.status == 200
        })
        .await;
        wait_until("a write is served", limit, async || {
            post(&slug).await.status == 201
        })
        .await;
        wait_until("all pipelined connections are open", limit, async || {
            server
                .admin("/metrics")
                .await
                .unwrap()
                .1
                .contains(r#"perennial_database_lanes_open{cell="home"} 2"#)
        })
        .await;
        // The worker continues as well.
        let database = connect(&cluster.url()).await;
        database
            .batch_execute(
                "INSERT INTO client_values (tenant_id, client_id, value_hash, created_at, expires_at)
                 SELECT tenant_id, id, sha256(random()::text::bytea), now(), now() FROM clients LIMIT 1",
            )
            .await
            .unwrap();
        let expired = "SELECT count(*) FROM client_values WHERE expires_at IS NOT NULL";
        wait_until("the worker continues", Duration::from_secs(4), async || {
            database
                .query_one(expired, &[])
                .await
                .unwrap()
                .get::<_, i64>(0)
                == 0
        })
        .await;
        println!(
            "round {round}: recovered {:?} after the database was back",
            resumed.elapsed()
        );
    }
}

/// The response takes less than 4 s, and later requests succeed.
#[tokio::test]
async fn locked_table_returns_503() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let mut locker = service.database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE subscription_plans IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let plan = minimal_plan("pro").to_string();
    let started = Instant::now();
    let (read, write) = tokio::join!(api.get("/subscription-plans/pro"), api.post(PLANS, &plan));
    assert_unavailable(&read);
    assert_unavailable(&write);
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    lock.rollback().await.unwrap();
    assert_eq!(api.post(PLANS, &plan).await.status, 201);
    assert_eq!(api.get("/subscription-plans/pro").await.status, 200);
}

/// A read whose pipelined connection is lost is retried on another one.
#[tokio::test]
async fn terminated_connections_are_replaced() {
    let service = Service::start().await;
    let api = service.api(&[]);
    api.post(PLANS, &minimal_plan("pro").to_string()).await;
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
            let response = api.get("/subscription-plans/pro").await;
            assert_eq!(response.status, 200, "{}", response.text);
        }
    }
    for round in 0..10 {
        terminate("pool").await;
        wait_until("a write is served", Duration::from_secs(2), async || {
            let plan = minimal_plan(&format!("after-{round}")).to_string();
            let response = api.post(PLANS, &plan).await;
            assert!([201, 503].contains(&response.status), "{}", response.text);
            response.status == 201
        })
        .await;
    }
}

#[tokio::test]
async fn sslmode_behaves_as_in_psql() {
    let plain = Cluster::start();
    let tls = Cluster::start();
    let certificate = tls.enable_tls();
    let copy = std::env::temp_dir().join(format!("perennial-root-{}.crt", std::process::id()));
    std::fs::copy(certificate, &copy).unwrap();
    let root = format!("&sslrootcert={}", copy.display());

    let can_connect = async |cluster: &Cluster, host: &str, query: &str| {
        let url = format!(
            "postgres://postgres@{host}:{}/postgres?{query}",
            cluster.port
        );
        match ConnectOptions::parse(&url.into()) {
            Ok(address) => migrate::state(&address, MIGRATIONS).await.is_ok(),
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
            can_connect(cluster, host, query).await,
            expected,
            "{which} {host} {query}"
        );
    }

    // The server with TLS: pooled and pipelined connections.
    let url = format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=verify-full{root}",
        tls.port
    );
    let server = Server::start(&sandbox(&url)).await;
    let api = api_client(&server, &url);
    assert_eq!(
        api.post(PLANS, &minimal_plan("pro").to_string())
            .await
            .status,
        201
    );
    assert_eq!(api.get("/subscription-plans/pro").await.status, 200);
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

#[tokio::test]
async fn static_endpoints_work_without_database() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    cluster.stop();
    let api = ApiClient::new(&server.url);
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

/// Tests that measure time, and so run without other tests.
mod timing {
    use super::*;

    /// With the pool exhausted, a write waits 1.5 s at most. Once the queue does not move, new writes are
    /// rejected immediately. Reads continue.
    #[tokio::test]
    async fn exhausted_pool_rejects_writes_and_serves_reads() {
        let service = Service::start().await;
        let api = service.api(&[]);
        api.post(PLANS, &minimal_plan("pro").to_string()).await;
        let mut locker = service.database.connect().await;
        let lock = locker.transaction().await.unwrap();
        lock.batch_execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            .await
            .unwrap();
        let writers: Vec<_> = (0..12)
            .map(|number| {
                let api = api.clone();
                tokio::spawn(async move {
                    api.post(PLANS, &minimal_plan(&format!("w{number}")).to_string())
                        .await
                })
            })
            .collect();
        // The sequencer waits too.
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND wait_event_type = 'Lock'";
        wait_until(
            "the pool is exhausted",
            Duration::from_secs(2),
            async || service.count(waiting).await >= 4,
        )
        .await;
        // Longer than the 500 ms after which a queue without progress is stalled.
        tokio::time::sleep(Duration::from_millis(600)).await;
        for _ in 0..20 {
            let started = Instant::now();
            assert_eq!(api.get("/subscription-plans/pro").await.status, 200);
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(
                started.elapsed() < Duration::from_millis(500),
                "{:?}",
                started.elapsed()
            );
        }
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let started = Instant::now();
            let late = api.post(PLANS, &minimal_plan("late").to_string()).await;
            assert_503(&late, "overloaded");
            quickest = quickest.min(started.elapsed());
        }
        assert!(quickest < Duration::from_millis(50), "{quickest:?}");
        // An overloaded database is not an outage.
        let (ready, _) = service.server.admin("/readyz").await.unwrap();
        assert_eq!(ready, 200);
        for writer in writers {
            let response = writer.await.unwrap();
            // Some waited for the table, the others for a connection.
            let code = response.problem();
            assert!(["overloaded", "unavailable"].contains(&code.as_str()));
            assert_503(&response, &code);
        }
        let (_, metrics) = service.server.admin("/metrics").await.unwrap();
        let shed = r#"perennial_shed_total{by="connection"} 13"#;
        assert!(metrics.contains(shed), "{metrics}");
        for measured in [
            r#"perennial_database_wait_seconds_count{cell="home",way="pool"}"#,
            r#"perennial_database_wait_seconds_count{cell="home",way="lane"}"#,
            "perennial_http_requests_in_flight 0",
            r#"perennial_connections_open{listener="api"}"#,
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
}
