//! Brings a database to the schema that this binary knows.
//!
//! Forward only. Runs at every start of `serve` and by `perennial migrate`; however many processes
//! start at once, one does the work and the others wait for it. `migrations/README.md` says how to
//! write one.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, bail};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};
use tokio_postgres::{Client, error::SqlState};

use super::{Address, Error};

/// One step of the schema.
#[derive(Debug)]
pub struct Migration {
    /// Its number; they are consecutive.
    pub version: i32,
    /// The file's name without its ending.
    pub name: &'static str,
    text: &'static str,
}

macro_rules! migrations {
    ($($version:literal $name:literal,)*) => {
        /// All steps, in order.
        pub static MIGRATIONS: &[Migration] = &[$(Migration {
            version: $version,
            name: $name,
            text: include_str!(concat!("../../../../migrations/", $name, ".sql")),
        },)*];
    };
}

migrations! {
    1 "0001_directory",
    2 "0002_events",
    3 "0003_subscription_plans",
    4 "0004_task_leases",
    5 "0005_client_value_expiry",
    6 "0006_plan_lists",
    7 "0007_idempotency_keys",
    8 "0008_client_origins",
    9 "0009_identity_providers",
    10 "0010_users_and_sessions",
    11 "0011_signing_keys",
    12 "0012_erasure",
    13 "0013_idempotency_keys_of_users",
    14 "0014_dead_sessions",
    15 "0015_recent_sign_in",
    16 "0016_subscriptions",
    17 "0017_lifecycle",
    18 "0018_subscriptions_of_plan_by_status",
}

impl Migration {
    /// The file.
    pub fn text(&self) -> &'static str {
        self.text
    }

    fn checksum(&self) -> String {
        BASE64_STANDARD.encode(Sha256::digest(self.text))
    }

    /// Whether its statements run one by one, each for itself, as `CREATE INDEX CONCURRENTLY` must.
    fn without_transaction(&self) -> bool {
        self.text.starts_with("-- no-transaction\n")
    }
}

/// How long opening a session may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a step waits for a lock. Everybody else who wants that table waits behind it, so it gives
/// up soon and tries again.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '1s'";
const LOCK_ATTEMPTS: u32 = 300;

/// Serialises migrations: any number will do, as long as it is ours.
const LOCK: i64 = 0x7065_7265_6e6e;

const LEDGER: &str = "
    CREATE TABLE IF NOT EXISTS schema_migrations (
        version     integer     NOT NULL PRIMARY KEY,
        name        text        NOT NULL,
        checksum    text        NOT NULL,
        started_at  timestamptz NOT NULL DEFAULT now(),
        finished_at timestamptz
    )";

const BEGIN_STEP: &str =
    "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)
    ON CONFLICT (version) DO UPDATE SET checksum = excluded.checksum, started_at = now()";
const FINISH_STEP: &str = "UPDATE schema_migrations SET finished_at = now() WHERE version = $1";

/// How far a database has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing of ours is there.
    Empty,
    /// Some steps are missing.
    Behind {
        /// How many steps are done.
        done: usize,
    },
    /// All is there.
    Current,
}

/// A session that migrates: without time limits, since building an index takes what it takes.
async fn connect(address: &Address) -> Result<Client, Error> {
    let mut address = address.clone();
    address.config.application_name("perennial migrate");
    let opened = tokio::time::timeout(OPEN_TIMEOUT, address.open()).await;
    let (client, connection) =
        opened.map_err(|_| Error::Unavailable("no answer in time".to_owned()))??;
    // Ends when the client is dropped.
    tokio::spawn(connection);
    Ok(client)
}

/// What is finished, by version, with its checksum. Refuses a schema that this binary cannot have
/// made.
async fn finished(client: &Client) -> anyhow::Result<BTreeMap<i32, String>> {
    let rows = client
        .query(
            "SELECT version, checksum FROM schema_migrations WHERE finished_at IS NOT NULL",
            &[],
        )
        .await?;
    let done: BTreeMap<i32, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for (version, checksum) in &done {
        match MIGRATIONS
            .iter()
            .find(|migration| migration.version == *version)
        {
            None => bail!(
                "the database's schema has step {version}, which this binary (perennial {}) does not know: \
                 it was upgraded by a newer one. Run that version, or restore the backup made before the upgrade",
                env!("CARGO_PKG_VERSION")
            ),
            Some(known) if known.checksum() != *checksum => bail!(
                "step {} of the schema was applied with another text than this binary carries; \
                 the binary or the table schema_migrations has been altered",
                known.name
            ),
            Some(_) => {}
        }
    }
    Ok(done)
}

/// How far the database has come; changes nothing.
pub async fn state(address: &Address) -> anyhow::Result<State> {
    let client = connect(address).await?;
    let ledger = client
        .query_one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[])
        .await?;
    if !ledger.get::<_, bool>(0) {
        return Ok(State::Empty);
    }
    Ok(match finished(&client).await?.len() {
        0 => State::Empty,
        done if done == MIGRATIONS.len() => State::Current,
        done => State::Behind { done },
    })
}

/// The mode that a database was set up in, if it was.
pub async fn stamped_mode(address: &Address) -> anyhow::Result<Option<String>> {
    let client = connect(address).await?;
    let there = client
        .query_one("SELECT to_regclass('instance') IS NOT NULL", &[])
        .await?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_opt("SELECT mode FROM instance", &[]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Applies what is missing; answers the names of what it applied.
pub async fn run(address: &Address) -> anyhow::Result<Vec<&'static str>> {
    let client = connect(address).await?;
    // Asked again and again, not waited for: a waiting statement would hold a snapshot, for which
    // CREATE INDEX CONCURRENTLY in the process that works would wait in turn, for ever.
    while !client
        .query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK])
        .await?
        .get::<_, bool>(0)
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.batch_execute(LEDGER).await?;
    let done = finished(&client).await?;
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        if done.contains_key(&migration.version) {
            continue;
        }
        tracing::info!(step = migration.name, "migrating");
        apply(&client, migration)
            .await
            .with_context(|| format!("step {} of the schema failed", migration.name))?;
        applied.push(migration.name);
    }
    // The lock ends with the session.
    Ok(applied)
}

async fn apply(client: &Client, migration: &Migration) -> Result<(), Error> {
    if migration.without_transaction() {
        let Migration {
            version,
            name,
            text,
        } = migration;
        client
            .execute(BEGIN_STEP, &[version, name, &migration.checksum()])
            .await?;
        for statement in text.split_inclusive(";\n") {
            client.batch_execute(statement).await?;
        }
        client.execute(FINISH_STEP, &[version]).await?;
        return Ok(());
    }
    for attempt in 1.. {
        match apply_in_transaction(client, migration).await {
            Err(error)
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
                    && attempt < LOCK_ATTEMPTS =>
            {
                tracing::info!(
                    step = migration.name,
                    attempt,
                    "waiting for a table that is in use"
                );
                client.batch_execute("ROLLBACK").await?;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            outcome => return Ok(outcome?),
        }
    }
    Ok(())
}

async fn apply_in_transaction(
    client: &Client,
    migration: &Migration,
) -> Result<(), tokio_postgres::Error> {
    let Migration {
        version,
        name,
        text,
    } = migration;
    client.batch_execute("BEGIN").await?;
    client.batch_execute(LOCK_TIMEOUT).await?;
    client
        .execute(BEGIN_STEP, &[version, name, &migration.checksum()])
        .await?;
    client.batch_execute(text).await?;
    client.execute(FINISH_STEP, &[version]).await?;
    client.batch_execute("COMMIT").await
}
