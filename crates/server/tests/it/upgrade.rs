//! Upgrades of the schema while the service runs.
//!
//! `PREVIOUS_BINARY` is the previous release (`just prove upgrade-drill` builds it). It keeps serving while the new
//! one migrates, and afterwards.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::{
    harness::{
        api::ApiClient,
        client::create_client,
        database::Database,
        process::{Server, command_for, run_err, sandbox},
    },
    migrations::{LATER, apply, count, with_later},
    subscription_plans::minimal_plan,
};

const RATE: u32 = 200;
/// A migration waits one second for a table, and requests wait behind it.
const MAX_LATENCY: Duration = Duration::from_secs(2);

/// Rows of the first tenant, so that building an index takes a while.
const ROWS: &str = "
    INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at)
    SELECT tenant_id, md5('u' || n)::uuid, n || '@example.com', n || '@example.com', now(), now()
    FROM tenants, generate_series(1, 50000) AS n;
    INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
    SELECT tenant_id, now(), md5('e' || n)::uuid, 'user.created', md5('u' || n)::uuid, '{}'
    FROM tenants, generate_series(1, 50000) AS n";

/// Requests that are sent at a fixed rate until they are stopped. The task returns the number of requests and the
/// longest time from when one was due to its response.
struct Load {
    is_stopped: Arc<AtomicBool>,
    task: JoinHandle<(u32, Duration)>,
}

impl Load {
    /// Reads a plan and creates users and plans. The first request that fails ends the task with a panic.
    async fn start(api: &ApiClient) -> Self {
        let plan = minimal_plan("pro").to_string();
        assert_eq!(api.post("/subscription-plans", &plan).await.status, 201);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(Self::run(api.clone(), is_stopped.clone()));
        Self { is_stopped, task }
    }

    async fn run(api: ApiClient, is_stopped: Arc<AtomicBool>) -> (u32, Duration) {
        let started = Instant::now();
        let (mut count, mut slowest) = (0, Duration::ZERO);
        while !is_stopped.load(Ordering::Relaxed) {
            let due = started + Duration::from_secs(1) / RATE * count;
            tokio::time::sleep_until(due.into()).await;
            let response = match count % 4 {
                0 => {
                    let plan = minimal_plan(&format!("p{count}")).to_string();
                    api.post("/subscription-plans", &plan).await
                }
                1 => {
                    let user = json!({"email": format!("load{count}@example.com")}).to_string();
                    api.post("/users", &user).await
                }
                _ => api.get("/subscription-plans/pro").await,
            };
            let is_ok = [200, 201].contains(&response.status);
            assert!(is_ok, "request {count}: {}", response.text);
            slowest = slowest.max(due.elapsed());
            count += 1;
        }
        (count, slowest)
    }

    /// Fails if a request failed or was slow.
    async fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let (count, slowest) = self.task.await.unwrap();
        println!("no request of {count} failed; the slowest took {slowest:.0?}");
        assert!(count > RATE, "{count} requests");
        assert!(slowest < MAX_LATENCY, "{slowest:?}");
    }
}

/// Reads tables in a transaction that takes longer than a migration waits for them.
async fn read_slowly(mut client: Client) {
    let open = client.transaction().await.unwrap();
    let lock = "LOCK TABLE users, events IN ACCESS SHARE MODE";
    open.batch_execute(lock).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    open.rollback().await.unwrap();
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

    /// The running version keeps serving while a later release migrates, whichever way it does.
    #[tokio::test]
    async fn running_service_fails_no_request_during_an_upgrade() {
        let database = Database::create().await;
        let (_, client) = create_client(&database.url, &[]);
        database.connect().await.batch_execute(ROWS).await.unwrap();
        let server = Server::start(&sandbox(&database.url)).await;
        let load = Load::start(&ApiClient::new(&server.url).with("client-id", &client)).await;
        for (index, (name, _)) in LATER.iter().enumerate() {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let reader = tokio::spawn(read_slowly(database.connect().await));
            let started = Instant::now();
            let migrations = with_later(index + 1);
            let applied = apply(&database.url, &migrations).await.unwrap();
            reader.await.unwrap();
            println!("{name}: {:.0?}", started.elapsed());
            assert_eq!(applied, [*name]);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        load.stop().await;
    }

    #[tokio::test]
    async fn previous_binary_keeps_serving_during_upgrade() {
        let Ok(previous) = std::env::var("PREVIOUS_BINARY") else {
            println!("PREVIOUS_BINARY is not set; skipped (just prove upgrade-drill builds it)");
            return;
        };
        let database = Database::empty().await;
        let variables = sandbox(&database.url);
        let old = Server::spawn_command(command_for(&previous), &variables);
        old.wait_for_ok("/readyz").await;
        let created = command_for(&previous)
            .args(["client", "create", "--json"])
            .envs(&variables)
            .output()
            .unwrap();
        let created: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
        let client = created["client_id"].as_str().unwrap();
        let load = Load::start(&ApiClient::new(&old.url).with("client-id", client)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let migrations = "SELECT count(*) FROM schema_migrations";
        let database = database.connect().await;
        let before = count(&database, migrations).await;
        let new = Server::start(&variables).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        load.stop().await;
        let newer = ApiClient::new(&new.url).with("client-id", client);
        assert_eq!(newer.get("/subscription-plans/pro").await.status, 200);
        if count(&database, migrations).await == before {
            println!("the new release has no migration");
            return;
        }
        // The previous release does not start on the new schema.
        let again = command_for(&previous)
            .arg("migrate")
            .envs(&variables)
            .output()
            .unwrap();
        assert!(!again.status.success());
        assert!(String::from_utf8_lossy(&again.stderr).contains("newer"));
    }
}
