//! Removal of expired and revoked sessions while session checks continue.
//!
//! `SESSIONS` sets the number of sessions. `just prove session-cleanup` uses 5,000,000 and a release build, and
//! limits the slowdown of checks to a factor of two. The default only shows that it works.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::Client;

use crate::harness::{
    api::ApiClient,
    client::create_client,
    cluster::Cluster,
    database::connect,
    env_number,
    process::{Process, Server, sandbox},
    raw_connection::send_at_rate,
    wait_until,
};

/// Returns the number of sessions, and whether to check times.
fn sessions() -> (i64, bool) {
    env_number("SESSIONS").map_or((20_000, false), |number| (number, true))
}

/// Inserts ten sessions per user, of which five have ended days ago or have expired.
async fn insert_sessions(database: &Client, sessions: i64) {
    let sql = format!(
        "SET session_replication_role = replica;
         INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at)
         SELECT tenant_id, md5('user' || n)::uuid, n || '@example.com', n || '@example.com', now() - interval '60 days', now()
         FROM tenants, generate_series(0, {sessions} / 10 - 1) AS n;
         INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
            confirmed_generation, refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id, ended_at)
         SELECT tenant_id, gen_random_uuid(), md5('user' || n % ({sessions} / 10))::uuid, gen_random_uuid(),
            'https://accounts.example.com', '203.0.113.7', 'a phone', decode(md5(n::text), 'hex'), 3, 3, began, began,
            began, began + interval '14 days', nextval('session_numbers'), 0,
            CASE WHEN n / ({sessions} / 10) < 3 THEN began + interval '1 hour' END
         FROM tenants, generate_series(0, {sessions} - 1) AS n,
            LATERAL (SELECT now() - CASE WHEN n / ({sessions} / 10) < 3 THEN interval '4 days'
                WHEN n / ({sessions} / 10) < 5 THEN interval '31 days' ELSE interval '2 days' END
                - n % 86400 * interval '1 second' AS began) AS times;
         SET session_replication_role = origin;
         ANALYZE users, sessions"
    );
    database.batch_execute(&sql).await.unwrap();
}

async fn count(database: &Client, query: &str) -> i64 {
    database.query_one(query, &[]).await.unwrap().get(0)
}

const EXPIRED: &str = "SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL OR created_at < now() - interval '30 days'";

#[tokio::test]
async fn expired_sessions_are_removed_without_slowing_checks() {
    let (sessions, timed) = sessions();
    let (rate, time) = if timed { (1_000, 30) } else { (100, 2) };
    let time = Duration::from_secs(time);
    let cluster = Cluster::start_for_measurement();
    let mut variables = sandbox(&cluster.url());
    variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    let server = Server::start(&variables).await;
    let (_, client) = create_client(&cluster.url(), &[]);
    let api = ApiClient::new(&server.url).with("client-id", &client);
    let database = connect(&cluster.url()).await;
    let started = Instant::now();
    insert_sessions(&database, sessions).await;
    println!("{sessions} sessions in {:.0?}", started.elapsed());

    let mut requests = Vec::new();
    for number in 0..if timed { 2_000 } else { 50 } {
        // A user has at most 100 sessions.
        let email = format!("user{}@example.com", number / 50);
        let tokens = match number % 50 {
            0 => api.sign_up(&email).await,
            _ => api.sign_in(&email).await,
        };
        let request = format!(
            "POST /authentication/user-logged-in HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\nauthorization: Bearer {}\r\n\r\n",
            tokens.access()
        );
        requests.push(request.into_bytes());
    }
    let requests = Arc::new(requests);
    // Warms up the caches.
    send_at_rate(&server.url, &requests, rate, time / 4).await;
    let (half, before) = send_at_rate(&server.url, &requests, rate, time).await;
    println!("idle: p50 {half:.2?}, p99 {before:.2?}");

    let started = Instant::now();
    let worker = Process::spawn(&variables, &["work"]);
    let (half, during) = send_at_rate(&server.url, &requests, rate, time).await;
    let left = count(&database, EXPIRED).await;
    println!("meanwhile: p50 {half:.2?}, p99 {during:.2?}; {left} left");
    if timed {
        assert!(
            left > 0,
            "finished before the measurement; use more sessions"
        );
        let ratio = during.as_secs_f64() / before.as_secs_f64();
        println!("p99: {ratio:.2} times as long");
        assert!(ratio < 2.0, "{ratio}");
    }
    wait_until(
        "the sessions are removed",
        Duration::from_mins(20),
        async || {
            tokio::time::sleep(Duration::from_millis(500)).await;
            count(&database, EXPIRED).await == 0
        },
    )
    .await;
    println!("all removed after {:.0?}", started.elapsed());
    drop(worker);
    // Active sessions are kept, and a user's are found through an index.
    let active = i64::try_from(requests.len()).unwrap() + sessions / 2;
    assert_eq!(
        count(&database, "SELECT count(*) FROM sessions").await,
        active
    );
    let plan = "EXPLAIN (FORMAT JSON) SELECT id FROM sessions WHERE tenant_id = (SELECT min(tenant_id::text)::uuid FROM tenants)
        AND user_id = md5('user7')::uuid AND ended_at IS NULL AND expires_at > now()
        ORDER BY created_at DESC, id DESC LIMIT 1000";
    let plan: serde_json::Value = database.query_one(plan, &[]).await.unwrap().get(0);
    if timed {
        assert!(plan.to_string().contains("sessions_of_user"), "{plan}");
    }
}
