//! Dead sessions are removed, and nobody who is signed in notices.
//!
//! `SESSIONS` says how many there are; `just housekeeping` takes 5,000,000 and the optimised build, and holds the
//! slowest checks to twice the time that they take without it. A few, in a debug build, only show that it works.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::Client;

use crate::harness::{
    api::Api,
    cluster::Cluster,
    database::connect,
    line::at_rate,
    process::{Process, Server, run_ok, sandbox},
    wait_until,
};

/// How many there are, and whether time counts.
fn sessions() -> (i64, bool) {
    let given = std::env::var("SESSIONS").ok();
    given.map_or((20_000, false), |given| (given.parse().unwrap(), true))
}

/// Ten sessions for each of many users, five of which are dead: ended days ago, or begun too long ago.
async fn fill(database: &Client, sessions: i64) {
    let sql = format!(
        "SET session_replication_role = replica;
         INSERT INTO users (tenant_id, id, email, email_key, created_at)
         SELECT tenant_id, md5('user' || n)::uuid, n || '@example.com', n || '@example.com', now() - interval '60 days'
         FROM tenants, generate_series(0, {sessions} / 10 - 1) AS n;
         INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
            confirmed_generation, refreshed_at, created_at, last_used_at, expires_at, ended_at)
         SELECT tenant_id, gen_random_uuid(), md5('user' || n % ({sessions} / 10))::uuid, gen_random_uuid(),
            'https://accounts.example.com', '203.0.113.7', 'a phone', decode(md5(n::text), 'hex'), 3, 3, began, began,
            began, began + interval '14 days',
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

const DEAD: &str = "SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL OR created_at < now() - interval '30 days'";

#[tokio::test]
async fn half_of_them_dead_alone() {
    let (sessions, timed) = sessions();
    let (rate, time) = if timed { (1_000, 30) } else { (100, 2) };
    let time = Duration::from_secs(time);
    let cluster = Cluster::start_with(&["shared_buffers = '1GB'", "max_wal_size = '8GB'"]);
    let mut variables = sandbox(&cluster.url());
    variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    let server = Server::start(&variables).await;
    let made = run_ok(&variables, &["client", "create", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let client = made["client_id"].as_str().unwrap();
    let caller = Api::new(&server.url).with("client-id", client);
    let database = connect(&cluster.url()).await;
    let began = Instant::now();
    fill(&database, sessions).await;
    println!("{sessions} sessions in {:.0?}", began.elapsed());

    caller.sign_up("ada@example.com").await;
    let mut requests = Vec::new();
    for _ in 0..if timed { 2_000 } else { 50 } {
        let tokens = caller.sign_in("ada@example.com").await;
        let request = format!(
            "POST /authentication/user-logged-in HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\nauthorization: Bearer {}\r\n\r\n",
            tokens.access()
        );
        requests.push(request.into_bytes());
    }
    let requests = Arc::new(requests);
    // So that all are known, before and after.
    at_rate(&server.url, &requests, rate, time / 4).await;
    let (half, before) = at_rate(&server.url, &requests, rate, time).await;
    println!("at rest: half within {half:.2?}, 99 of 100 within {before:.2?}");

    let began = Instant::now();
    let worker = Process::spawn(&variables, &["work"]);
    let (half, during) = at_rate(&server.url, &requests, rate, time).await;
    let left = count(&database, DEAD).await;
    println!("meanwhile: half within {half:.2?}, 99 of 100 within {during:.2?}; {left} are left");
    if timed {
        assert!(
            left > 0,
            "it was over before the measurement; take more sessions"
        );
        let ratio = during.as_secs_f64() / before.as_secs_f64();
        println!("99 of 100: {ratio:.2} times as long");
        assert!(ratio < 2.0, "{ratio}");
    }
    wait_until("they are gone", Duration::from_mins(20), async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        count(&database, DEAD).await == 0
    })
    .await;
    println!("all gone after {:.0?}", began.elapsed());
    drop(worker);
    // The living stay, and a user's are found without reading the rest.
    let living = i64::try_from(requests.len()).unwrap() + 1 + sessions / 2;
    assert_eq!(
        count(&database, "SELECT count(*) FROM sessions").await,
        living
    );
    let plan = "EXPLAIN (FORMAT JSON) SELECT id FROM sessions WHERE tenant_id = (SELECT min(tenant_id::text)::uuid FROM tenants)
        AND user_id = md5('user7')::uuid AND ended_at IS NULL AND expires_at > now()
        ORDER BY created_at DESC, id DESC LIMIT 1000";
    let plan: serde_json::Value = database.query_one(plan, &[]).await.unwrap().get(0);
    if timed {
        assert!(plan.to_string().contains("sessions_of_user"), "{plan}");
    }
}
