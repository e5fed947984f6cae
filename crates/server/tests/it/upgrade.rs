//! Upgrades from every earlier schema, with rows and under load.
//!
//! `PREVIOUS_BINARY` is the previous release (`just upgrade-drill` builds it). It keeps serving while the new
//! one migrates, and afterwards.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use perennial::db::migrate::MIGRATIONS;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio_postgres::Client;

use crate::{
    harness::{
        api::ApiClient,
        client::create_client,
        database::Database,
        process::{Server, command_for, run_err, sandbox},
    },
    subscription_plans::minimal_plan,
};

const RATE: u32 = 200;
const MAX_LATENCY: Duration = Duration::from_secs(1);

/// The rows to insert after a migration.
const ROWS: &[(i32, &str)] = &[
    (
        1,
        "INSERT INTO instance (mode) VALUES ('sandbox');
         INSERT INTO tenants (tenant_id, name, cell, default_currency, created_at)
         SELECT md5('t' || n)::uuid, 't' || n, 'home', 'USD', now() FROM generate_series(1, 20) AS n;
         INSERT INTO clients (tenant_id, id, kind, name, scopes, allow_addresses, allowed_origins, created_at)
         SELECT md5('t' || n % 20 + 1)::uuid, md5('c' || n)::uuid, 'secret', 'c', '{}', '{}', '{}', now()
         FROM generate_series(1, 20000) AS n;
         INSERT INTO client_values (tenant_id, client_id, value_hash, created_at)
         SELECT tenant_id, id, sha256(id::text::bytea), now() FROM clients",
    ),
    (
        2,
        "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
         SELECT md5('t' || n % 20 + 1)::uuid, now(), md5('e' || n)::uuid, 'plan.created', md5('s' || n)::uuid, '{}'
         FROM generate_series(1, 20000) AS n",
    ),
    (
        3,
        "INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
            node_quota, most_popular, tier, is_active, created_at, updated_at)
         SELECT md5('t' || n % 20 + 1)::uuid, md5('p' || n)::uuid, 'plan-' || n, 'P', '{}', 1999, 'USD', 'monthly', 0, false, 0,
            true, now(), now() FROM generate_series(1, 20000) AS n",
    ),
    (
        10,
        "INSERT INTO users (tenant_id, id, email, email_key, created_at)
         SELECT md5('t' || n % 20 + 1)::uuid, md5('u' || n)::uuid, n || '@example.com', n || '@example.com', now()
         FROM generate_series(1, 20000) AS n;
         INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, salt, generation, confirmed_generation,
            refreshed_at, created_at, last_used_at, expires_at)
         SELECT tenant_id, gen_random_uuid(), id, id, 'https://i.example', '192.0.2.1', '0123456789abcdef', 0, 0, now(), now(),
            now(), now() + interval '1 day' FROM users",
    ),
    (
        16,
        "INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, billing_cycle,
            status, suspended, starts_at, renews_at, anchor, created_at, updated_at)
         SELECT md5('t' || n % 20 + 1)::uuid, md5('s' || n)::uuid, md5('u' || n)::uuid, md5('p' || n)::uuid, 1999, 'USD', 'monthly',
            'monthly', 'active', false, now(), now() + interval '30 days', now(), now(), now()
         FROM generate_series(1, 20000) AS n;
         INSERT INTO subscription_payments (tenant_id, id, subscription_id, amount_minor, currency, status, refunded_minor,
            created_at, updated_at)
         SELECT tenant_id, md5('y' || id)::uuid, id, 1999, 'USD', 'completed', 0, now(), now() FROM subscriptions",
    ),
];

/// Creates a database with the first `step` migrations and their rows.
async fn database_at(step: i32) -> Database {
    migrated_database(step, ROWS).await
}

/// Creates a database with the first `step` migrations, and the rows to insert after each.
pub async fn migrated_database(step: i32, rows: &[(i32, &str)]) -> Database {
    let database = Database::empty().await;
    let client = database.connect().await;
    client
        .batch_execute(
            "CREATE TABLE schema_migrations (version integer NOT NULL PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
                started_at timestamptz NOT NULL DEFAULT now(), finished_at timestamptz)",
        )
        .await
        .unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    for (number, migration) in (1..=step).zip(MIGRATIONS) {
        for statement in migration.text().split_inclusive(";\n") {
            if migration.text().starts_with("-- no-transaction") {
                client.batch_execute(statement).await.unwrap();
            }
        }
        if !migration.text().starts_with("-- no-transaction") {
            client.batch_execute(migration.text()).await.unwrap();
        }
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(&format!("{number:04}_")))
            .collect();
        let name = files.pop().unwrap().trim_end_matches(".sql").to_owned();
        let checksum = BASE64_STANDARD.encode(Sha256::digest(migration.text()));
        client
            .execute(
                "INSERT INTO schema_migrations (version, name, checksum, finished_at) VALUES ($1, $2, $3, now())",
                &[&number, &name, &checksum],
            )
            .await
            .unwrap();
        for (_, sql) in rows.iter().filter(|(from, _)| *from == number) {
            client.batch_execute(sql).await.unwrap();
        }
    }
    database
}

/// Reads and writes as an instance of that schema would. Returns the number of statements and the slowest
/// time.
async fn run_load(client: Client, step: i32, done: Arc<AtomicBool>) -> (u32, Duration) {
    let read = if step >= 3 {
        "SELECT name FROM subscription_plans WHERE tenant_id = md5('t2')::uuid AND lower(slug) = 'plan-1'"
    } else {
        "SELECT name FROM tenants WHERE tenant_id = md5('t2')::uuid"
    };
    let write = if step >= 2 {
        "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
         VALUES (md5('t1')::uuid, now(), gen_random_uuid(), 'x', gen_random_uuid(), '{}')"
    } else {
        "UPDATE tenants SET default_currency = 'EUR' WHERE tenant_id = md5('t3')::uuid"
    };
    let started = Instant::now();
    let (mut count, mut slowest) = (0, Duration::ZERO);
    while !done.load(Ordering::Relaxed) {
        let due = started + Duration::from_secs(1) / RATE * count;
        tokio::time::sleep_until(due.into()).await;
        let sql = if count % 4 == 0 { write } else { read };
        client.batch_execute(sql).await.unwrap();
        slowest = slowest.max(due.elapsed());
        count += 1;
    }
    (count, slowest)
}

#[tokio::test]
async fn newer_schema_is_rejected() {
    let database = Database::create().await;
    database
        .connect()
        .await
        .execute("INSERT INTO schema_migrations (version, name, checksum, finished_at) VALUES (9999, 'x', 'x', now())", &[])
        .await
        .unwrap();
    let output = run_err(&sandbox(&database.url), &["migrate"]);
    assert!(
        output.contains("a newer version upgraded it")
            && output.contains("Run that version, or restore the backup"),
        "{output}"
    );
}

/// Tests that measure time, and so run without other tests.
mod timing {
    use super::*;

    /// The load must not wait for more than a second.
    #[tokio::test]
    async fn upgrade_from_every_schema_does_not_block_load() {
        let newest = i32::try_from(MIGRATIONS.len()).unwrap();
        for step in 1..newest {
            let database = database_at(step).await;
            let done = Arc::new(AtomicBool::new(false));
            let load = tokio::spawn(run_load(database.connect().await, step, done.clone()));
            tokio::time::sleep(Duration::from_millis(100)).await;
            let started = Instant::now();
            let variables = sandbox(&database.url);
            let server = Server::start(&variables).await;
            let took = started.elapsed();
            let (_, client) = create_client(&database.url, &["--tenant", "t2"]);
            let api = ApiClient::new(&server.url).with("client-id", &client);
            // Existing records remain, and new ones can be created.
            if step >= 3 {
                let plan = api.get("/subscription-plans/plan-1").await;
                assert_eq!(plan.status, 200, "step {step}: {}", plan.text);
            }
            let plan = api
                .post("/subscription-plans", &minimal_plan("new").to_string())
                .await
                .json();
            let user = api
                .post("/users", r#"{"email": "ada@example.com"}"#)
                .await
                .json();
            let fields = json!({"user_id": user["id"], "subscription_plan_id": plan["id"]});
            let created = api.post("/subscriptions", &fields.to_string()).await;
            assert_eq!(created.status, 201, "step {step}: {}", created.text);
            done.store(true, Ordering::Relaxed);
            let (count, slowest) = load.await.unwrap();
            println!(
                "from schema {step}: ready after {took:.1?}; slowest of {count} statements {slowest:.0?}"
            );
            assert!(slowest < MAX_LATENCY, "step {step}: {slowest:?}");
        }
    }

    #[tokio::test]
    async fn previous_binary_keeps_serving_during_upgrade() {
        let Ok(previous) = std::env::var("PREVIOUS_BINARY") else {
            println!("PREVIOUS_BINARY is not set; skipped (just upgrade-drill builds it)");
            return;
        };
        let database = Database::empty().await;
        let variables = sandbox(&database.url);
        // The previous release rejects unknown settings.
        let mut known = variables.clone();
        known.retain(|name, _| !name.contains("SIGN_INS") && !name.contains("REFUSED_TOKENS"));
        let old = Server::spawn_command(command_for(&previous), &known);
        old.wait_for_ok("/readyz").await;
        let created = command_for(&previous)
            .args(["client", "create", "--json"])
            .envs(&known)
            .output()
            .unwrap();
        let created: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
        let api =
            ApiClient::new(&old.url).with("client-id", created["client_id"].as_str().unwrap());
        assert_eq!(
            api.post("/subscription-plans", &minimal_plan("pro").to_string())
                .await
                .status,
            201
        );
        let stop = Arc::new(AtomicBool::new(false));
        let load = {
            let (api, stop) = (api.clone(), stop.clone());
            tokio::spawn(async move {
                let started = Instant::now();
                let (mut count, mut slowest) = (0_u32, Duration::ZERO);
                while !stop.load(Ordering::Relaxed) {
                    let due = started + Duration::from_secs(1) / RATE * count;
                    tokio::time::sleep_until(due.into()).await;
                    let status = if count % 4 == 0 {
                        api.post(
                            "/subscription-plans",
                            &minimal_plan(&format!("p{count}")).to_string(),
                        )
                        .await
                        .status
                    } else {
                        api.get("/subscription-plans/pro").await.status
                    };
                    assert!([200, 201].contains(&status), "request {count}: {status}");
                    slowest = slowest.max(due.elapsed());
                    count += 1;
                }
                (count, slowest)
            })
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        let new = Server::start(&variables).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        stop.store(true, Ordering::Relaxed);
        let (count, slowest) = load.await.unwrap();
        println!("slowest of {count} requests to the previous binary: {slowest:.0?}");
        assert!(slowest < MAX_LATENCY, "{slowest:?}");
        let newer =
            ApiClient::new(&new.url).with("client-id", created["client_id"].as_str().unwrap());
        assert_eq!(newer.get("/subscription-plans/pro").await.status, 200);
        // The previous release does not start on the new schema.
        let again = command_for(&previous)
            .arg("migrate")
            .envs(&known)
            .output()
            .unwrap();
        assert!(!again.status.success());
        assert!(String::from_utf8_lossy(&again.stderr).contains("newer"));
    }
}
