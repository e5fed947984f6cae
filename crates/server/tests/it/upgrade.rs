//! Upgrades: from every earlier schema, with rows in it, while it is in use.
//!
//! `PREVIOUS_BINARY` is the release before (`just upgrade-drill` builds it): it goes on serving while the new one migrates, and
//! afterwards.

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
        api::Api,
        database::Database,
        process::{Server, build, run_ok, sandbox},
    },
    subscription_plans::minimal,
};

const RATE: u32 = 200;
const SLOWEST: Duration = Duration::from_secs(1);

/// What a table is filled with, from the step on that makes it.
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

/// A database at a step.
async fn at_step(step: i32) -> Database {
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
        for (_, sql) in ROWS.iter().filter(|(from, _)| *from == number) {
            client.batch_execute(sql).await.unwrap();
        }
    }
    database
}

/// Reads and writes what there is, as an instance would that knows no more than that step; answers how many, and the slowest.
async fn use_it(client: Client, step: i32, over: Arc<AtomicBool>) -> (u32, Duration) {
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
    let begun = Instant::now();
    let (mut count, mut slowest) = (0, Duration::ZERO);
    while !over.load(Ordering::Relaxed) {
        let due = begun + Duration::from_secs(1) / RATE * count;
        tokio::time::sleep_until(due.into()).await;
        let sql = if count % 4 == 0 { write } else { read };
        client.batch_execute(sql).await.unwrap();
        slowest = slowest.max(due.elapsed());
        count += 1;
    }
    (count, slowest)
}

/// The newest binary, started on a database at any earlier step, brings it to the newest, and those who use it meanwhile hardly
/// wait.
#[tokio::test]
async fn from_every_earlier_schema_alone() {
    let newest = i32::try_from(MIGRATIONS.len()).unwrap();
    for step in 1..newest {
        let database = at_step(step).await;
        let over = Arc::new(AtomicBool::new(false));
        let load = tokio::spawn(use_it(database.connect().await, step, over.clone()));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = Instant::now();
        let variables = sandbox(&database.url);
        let server = Server::start(&variables).await;
        let took = begun.elapsed();
        let made = run_ok(
            &variables,
            &["client", "create", "--tenant", "t2", "--json"],
        );
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        let caller = Api::new(&server.url).with("client-id", made["client_id"].as_str().unwrap());
        // What was there is there, and what is new works.
        if step >= 3 {
            let plan = caller.get("/subscription-plans/plan-1").await;
            assert_eq!(plan.status, 200, "step {step}: {}", plan.text);
        }
        let plan = caller
            .post("/subscription-plans", &minimal("new").to_string())
            .await
            .json();
        let user = caller
            .post("/users", r#"{"email": "ada@example.com"}"#)
            .await
            .json();
        let fields = json!({"user_id": user["id"], "subscription_plan_id": plan["id"]});
        let made = caller.post("/subscriptions", &fields.to_string()).await;
        assert_eq!(made.status, 201, "step {step}: {}", made.text);
        over.store(true, Ordering::Relaxed);
        let (count, slowest) = load.await.unwrap();
        println!(
            "from step {step}: ready after {took:.1?}; of {count} statements meanwhile the slowest took {slowest:.0?}"
        );
        assert!(slowest < SLOWEST, "step {step}: {slowest:?}");
    }
}

/// A newer schema than this binary knows is refused, with what to do.
#[tokio::test]
async fn a_newer_schema_is_refused() {
    let database = Database::create().await;
    database
        .connect()
        .await
        .execute("INSERT INTO schema_migrations (version, name, checksum, finished_at) VALUES (9999, 'x', 'x', now())", &[])
        .await
        .unwrap();
    let said = crate::harness::process::run_err(&sandbox(&database.url), &["migrate"]);
    assert!(
        said.contains("upgraded by a newer one")
            && said.contains("Run that version, or restore the backup"),
        "{said}"
    );
}

/// The release before goes on serving while the new one migrates, and on the new schema.
#[tokio::test]
async fn the_previous_binary_goes_on_alone() {
    let Ok(previous) = std::env::var("PREVIOUS_BINARY") else {
        println!(
            "PREVIOUS_BINARY is not set: nothing to go on with (just upgrade-drill builds it)"
        );
        return;
    };
    let database = Database::empty().await;
    let variables = sandbox(&database.url);
    // A key that it does not know would be a mistake to it.
    let mut known = variables.clone();
    known.retain(|name, _| !name.contains("SIGN_INS") && !name.contains("REFUSED_TOKENS"));
    let old = Server::spawn_build(build(&previous), &known);
    old.wait_for("/readyz").await;
    let made = build(&previous)
        .args(["client", "create", "--json"])
        .envs(&known)
        .output()
        .unwrap();
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let caller = Api::new(&old.url).with("client-id", made["client_id"].as_str().unwrap());
    assert_eq!(
        caller
            .post("/subscription-plans", &minimal("pro").to_string())
            .await
            .status,
        201
    );
    let stop = Arc::new(AtomicBool::new(false));
    let load = {
        let (caller, stop) = (caller.clone(), stop.clone());
        tokio::spawn(async move {
            let begun = Instant::now();
            let (mut count, mut slowest) = (0_u32, Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let due = begun + Duration::from_secs(1) / RATE * count;
                tokio::time::sleep_until(due.into()).await;
                let status = if count % 4 == 0 {
                    caller
                        .post(
                            "/subscription-plans",
                            &minimal(&format!("p{count}")).to_string(),
                        )
                        .await
                        .status
                } else {
                    caller.get("/subscription-plans/pro").await.status
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
    println!(
        "the previous binary answered {count} requests meanwhile and after, the slowest in {slowest:.0?}"
    );
    assert!(slowest < SLOWEST, "{slowest:?}");
    let newer = Api::new(&new.url).with("client-id", made["client_id"].as_str().unwrap());
    assert_eq!(newer.get("/subscription-plans/pro").await.status, 200);
    // It is not started anew on what it does not know.
    let again = build(&previous)
        .arg("migrate")
        .envs(&known)
        .output()
        .unwrap();
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("newer"));
}
