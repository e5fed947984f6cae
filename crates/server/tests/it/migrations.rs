//! Migrations: their safety, and the command that applies them.

use std::{collections::BTreeSet, time::Duration};

use perennial::db::{
    ConnectOptions,
    migrate::{self, MIGRATIONS, Migration, SchemaState},
};
use tokio_postgres::Client;

use crate::{
    architecture::crate_path,
    harness::{
        database::Database,
        process::{Server, run, run_err, run_ok, sandbox},
        wait_until,
    },
};

/// The names and texts of migrations of a later release, one for each way to apply them.
pub const LATER: [(&str, &str); 3] = [
    (
        "later_table",
        "
            ALTER TABLE users ADD COLUMN later text;
            CREATE TABLE later (tenant_id uuid NOT NULL, id uuid NOT NULL, PRIMARY KEY (tenant_id, id));",
    ),
    (
        "later_index",
        "-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS users_later;
CREATE INDEX CONCURRENTLY users_later ON users (tenant_id, created_at, email_key);
",
    ),
    // Each row that a SELECT returns is a statement: what an interrupted build has left is dropped, then the index is built
    // on one partition after the other. A partition that was created meanwhile has the index. Attaching waits for the writers
    // of a partition, and new ones wait behind it.
    (
        "later_index_of_partitions",
        "-- no-transaction
CREATE INDEX IF NOT EXISTS events_later ON ONLY events (kind, at);
SELECT format('DROP INDEX CONCURRENTLY %I', index.relname)
FROM pg_class AS index
JOIN pg_index ON indexrelid = index.oid AND NOT indisvalid
JOIN pg_inherits ON inhrelid = indrelid AND inhparent = 'events'::regclass
WHERE index.relname LIKE 'events\\_%\\_later';
SELECT format('CREATE INDEX CONCURRENTLY %I ON %I (kind, at)', child.relname || '_later', child.relname)
FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = 'events'::regclass AND to_regclass(child.relname || '_later') IS NULL AND NOT EXISTS (
    SELECT FROM pg_index JOIN pg_inherits AS attached ON attached.inhrelid = indexrelid
    WHERE indrelid = child.oid AND attached.inhparent = 'events_later'::regclass);
SET lock_timeout = '1s';
SELECT format('ALTER INDEX events_later ATTACH PARTITION %I', index.relname)
FROM pg_class AS index
WHERE index.relname LIKE 'events\\_%\\_later' AND NOT index.relispartition;
RESET lock_timeout;
",
    ),
];

/// Returns all migrations and the first ones of a later release.
pub fn with_later(count: usize) -> Vec<Migration> {
    let later = LATER.iter().take(count).zip(MIGRATIONS.len() + 1..);
    let later = later.map(|(&(name, text), version)| Migration {
        version: version as i32,
        name,
        text,
    });
    MIGRATIONS.iter().copied().chain(later).collect()
}

/// Applies migrations in the process of the test.
pub async fn apply(url: &str, migrations: &[Migration]) -> anyhow::Result<Vec<&'static str>> {
    let options = ConnectOptions::parse(&url.to_owned().into())?;
    migrate::apply(&options, migrations).await
}

#[test]
fn migration_files_are_registered_and_consecutive() {
    let files: BTreeSet<String> = std::fs::read_dir(crate_path("../../migrations"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".sql").map(str::to_owned))
        .collect();
    assert_eq!(
        files,
        MIGRATIONS.iter().map(|step| step.name.to_owned()).collect()
    );
    for (index, step) in MIGRATIONS.iter().enumerate() {
        assert_eq!(step.version as usize, index + 1);
        assert!(
            step.name.starts_with(&format!("{:04}_", step.version)),
            "{}",
            step.name
        );
    }
}

/// Returns what would hurt running instances or prevent a second attempt.
fn unsafe_operations(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"));
    let code = lines.collect::<Vec<_>>().join("\n");
    // Function bodies do not run during the migration.
    let code: String = code.split("$$").step_by(2).collect::<Vec<_>>().join(" ");
    let created_here = |table: &str| code.contains(&format!("CREATE TABLE {table} "));
    for statement in code.split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let statement = words.join(" ");
        for forbidden in [
            "DROP TABLE",
            "DROP COLUMN",
            "RENAME",
            "ALTER COLUMN",
            "SET NOT NULL",
            "TRUNCATE",
        ] {
            // A default changes no row.
            let is_default = forbidden == "ALTER COLUMN" && statement.contains("SET DEFAULT");
            if statement.contains(forbidden) && !is_default {
                problems.push(format!(
                    "{forbidden}: expand first, contract in a later release"
                ));
            }
        }
        let alters_existing = words.starts_with(&["ALTER", "TABLE"])
            && !words.get(2).is_some_and(|table| created_here(table));
        if alters_existing
            && statement.contains("ADD CONSTRAINT")
            && !statement.contains("NOT VALID")
        {
            problems.push("ADD CONSTRAINT reads the whole table under a lock: add it NOT VALID, then validate".to_owned());
        }
        if alters_existing
            && statement.contains("ADD COLUMN")
            && statement.contains("NOT NULL")
            && !statement.contains("DEFAULT")
        {
            problems.push(
                "ADD COLUMN … NOT NULL needs a default: the previous version does not fill it"
                    .to_owned(),
            );
        }
        let Some(index) = words
            .iter()
            .position(|word| *word == "INDEX")
            .filter(|_| words[0] == "CREATE")
        else {
            continue;
        };
        let table = words
            .iter()
            .position(|word| *word == "ON")
            .map(|on| words[on + 1]);
        if words[index + 1] != "CONCURRENTLY" {
            // The index of a partitioned table alone has no rows.
            if table != Some("ONLY") && !table.is_some_and(created_here) {
                problems.push("an index on a table with rows is built CONCURRENTLY".to_owned());
            }
            continue;
        }
        if !text.starts_with("-- no-transaction\n") {
            problems.push("CONCURRENTLY needs -- no-transaction".to_owned());
        }
        let drop_first = format!("DROP INDEX CONCURRENTLY IF EXISTS {};", words[index + 2]);
        if !code.contains(&drop_first) {
            problems.push(format!(
                "{drop_first} must come first, so that it can be built again"
            ));
        }
    }
    problems
}

#[test]
fn migrations_are_safe_for_running_instances() {
    for step in with_later(LATER.len()) {
        let problems = unsafe_operations(step.text);
        assert_eq!(problems, Vec::<String>::new(), "{}", step.name);
    }
    for sql in [
        "DROP TABLE plans;",
        "ALTER TABLE plans DROP COLUMN slug;",
        "ALTER TABLE plans ADD CONSTRAINT x CHECK (true);",
        "ALTER TABLE plans ADD COLUMN x text NOT NULL;",
        "CREATE UNIQUE INDEX x ON plans (slug);",
        "DROP INDEX CONCURRENTLY IF EXISTS x;\nCREATE UNIQUE INDEX CONCURRENTLY x ON plans (slug);",
        "-- no-transaction\nCREATE INDEX CONCURRENTLY x ON plans (slug);",
    ] {
        assert_eq!(unsafe_operations(sql).len(), 1, "{sql}");
    }
    let safe = "CREATE TABLE plans (x text);\nCREATE INDEX x ON plans (x);\nALTER TABLE plans ADD CONSTRAINT y CHECK (true);";
    assert_eq!(unsafe_operations(safe), Vec::<String>::new());
}

#[tokio::test]
async fn unique_indexes_start_with_the_tenant() {
    let database = Database::create().await;
    let rows = database
        .connect()
        .await
        .query(
            "SELECT index.relname, (SELECT attname FROM pg_attribute WHERE attrelid = table_.oid AND attnum = i.indkey[0])
             FROM pg_index AS i JOIN pg_class AS index ON index.oid = i.indexrelid JOIN pg_class AS table_ ON table_.oid = i.indrelid
             WHERE i.indisunique AND table_.relnamespace = 'public'::regnamespace",
            &[],
        )
        .await
        .unwrap();
    // Tables of the instance, and lookups that find the tenant.
    let exceptions = [
        "instance_pkey",
        "schema_migrations_pkey",
        "task_leases_pkey",
        "event_log_months_pkey",
        "event_log_state_pkey",
        "report_installation_pkey",
        "tenants_name",
        "signing_keys_pkey",
        "client_values_hash",
        "staff_members_pkey",
        "staff_links_pkey",
        "staff_sessions_pkey",
        // A queue of all tenants, in the order of time.
        "pending_revenue_changes_pkey",
    ];
    for row in rows {
        let (index, column): (String, Option<String>) = (row.get(0), row.get(1));
        assert!(
            exceptions.contains(&index.as_str()) || column.as_deref() == Some("tenant_id"),
            "{index}"
        );
    }
}

#[tokio::test]
async fn migrate_prints_each_migration_once() {
    let database = Database::empty().await;
    let output = run(&sandbox(&database.url), &["migrate"]);
    let output = [output.stdout.as_slice(), &output.stderr].concat();
    let output = String::from_utf8(output).unwrap();
    for step in MIGRATIONS {
        assert_eq!(output.matches(step.name).count(), 1, "{output}");
    }
    let done = format!("applied {} migration", MIGRATIONS.len());
    assert!(output.starts_with(&done), "{output}");
}

#[tokio::test]
async fn concurrent_starts_apply_each_migration_once() {
    let database = Database::empty().await;
    let servers: Vec<Server> = (0..4)
        .map(|_| Server::spawn(&sandbox(&database.url)))
        .collect();
    for server in &servers {
        server.wait_for_ok("/readyz").await;
    }
    let applied: usize = servers
        .iter()
        .map(|server| server.process.log().matches("migrating").count())
        .sum();
    assert_eq!(applied, MIGRATIONS.len(), "each migration was applied once");
    let client = database.connect().await;
    let count = async |query: &str| -> i64 { client.query_one(query, &[]).await.unwrap().get(0) };
    assert_eq!(
        count("SELECT count(*) FROM schema_migrations WHERE finished_at IS NOT NULL").await,
        MIGRATIONS.len() as i64
    );
    assert_eq!(count("SELECT count(*) FROM tenants").await, 1);
    assert_eq!(count("SELECT count(*) FROM instance").await, 1);
}

/// Applies the migrations, the last one while a transaction writes to a table, until the build of an index waits for it; then
/// ends the session, as a killed process does. Returns how many indexes are invalid.
async fn interrupt_build(database: &Database, migrations: &[Migration], table: &str) -> i64 {
    let before = &migrations[..migrations.len() - 1];
    apply(&database.url, before).await.unwrap();
    let client = database.connect().await;
    let mut writer = database.connect().await;
    let open = writer.transaction().await.unwrap();
    let lock = format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE");
    open.execute(&lock, &[]).await.unwrap();
    let (url, list) = (database.url.clone(), migrations.to_vec());
    let migrating = tokio::spawn(async move { apply(&url, &list).await });
    let is_waiting = "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE datname = current_database() AND lockers_total > 0)";
    wait_until(
        "the build waits",
        Duration::from_secs(10),
        async || -> bool { client.query_one(is_waiting, &[]).await.unwrap().get(0) },
    )
    .await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'perennial migrate' AND datname = current_database()";
    client.batch_execute(end).await.unwrap();
    assert!(migrating.await.unwrap().is_err());
    open.rollback().await.unwrap();
    count(&client, &format!("{INDEXES} AND NOT indisvalid")).await
}

/// Selects the number of indexes that migrations of a later release build.
const INDEXES: &str =
    "SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname ~ '_later$'";

pub async fn count(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

/// A killed concurrent build leaves an invalid index.
#[tokio::test]
async fn interrupted_index_build_is_repeated_by_the_next_attempt() {
    let database = Database::create().await;
    let migrations = with_later(2);
    assert_eq!(interrupt_build(&database, &migrations, "users").await, 1);
    let options = ConnectOptions::parse(&database.url.clone().into()).unwrap();
    let state = migrate::state(&options, &migrations).await.unwrap();
    let done = migrations.len() - 1;
    assert_eq!(state, SchemaState::Behind { done });

    let applied = apply(&database.url, &migrations).await.unwrap();
    assert_eq!(applied, ["later_index"]);
    let client = database.connect().await;
    assert_eq!(
        count(&client, &format!("{INDEXES} AND indisvalid")).await,
        1
    );
    assert_eq!(count(&client, INDEXES).await, 1);
    assert!(apply(&database.url, &migrations).await.unwrap().is_empty());
    let state = migrate::state(&options, &migrations).await.unwrap();
    assert_eq!(state, SchemaState::Current);
}

/// The index on a partitioned table is built for each partition. A killed build leaves some of them, one invalid.
#[tokio::test]
async fn interrupted_index_build_on_partitions_is_repeated_by_the_next_attempt() {
    let database = Database::create().await;
    let client = database.connect().await;
    let migrations = with_later(3);
    // The build of the default partition, and the index of the parent.
    let invalid = interrupt_build(&database, &migrations, "events_default").await;
    assert_eq!(invalid, 2);
    // A partition that was created meanwhile.
    let create = "SELECT create_partition('events', '2020-01-01Z')";
    client.batch_execute(create).await.unwrap();

    apply(&database.url, &migrations).await.unwrap();
    assert_eq!(
        count(&client, &format!("{INDEXES} AND NOT indisvalid")).await,
        0
    );
    let indexes = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events_later'::regclass";
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass";
    let partitions = count(&client, partitions).await;
    assert!(partitions >= 5, "{partitions}");
    assert_eq!(count(&client, indexes).await, partitions);
}

#[tokio::test]
async fn unknown_or_altered_migration_is_rejected() {
    let database = Database::create().await;
    let client = database.connect().await;
    client
        .batch_execute("INSERT INTO schema_migrations VALUES (99, 'future', 'x', now(), now())")
        .await
        .unwrap();
    let output = run_err(&sandbox(&database.url), &["serve"]);
    assert!(
        output.contains("migration 99")
            && output.contains("Run that version, or restore the backup"),
        "{output}"
    );
    let alter = "DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'x'";
    client.batch_execute(alter).await.unwrap();
    let altered = "migration 0001_schema was applied with a different text";
    // A sandbox may be from a development build. Its data is not kept.
    for arguments in [&["serve"][..], &["migrate"], &["client", "list"]] {
        let output = run_err(&sandbox(&database.url), arguments);
        assert!(output.contains(altered), "{output}");
        assert!(
            output.contains("start fresh with an empty database"),
            "{output}"
        );
    }
    let live = "UPDATE instance SET mode = 'live'";
    client.batch_execute(live).await.unwrap();
    let error = apply(&database.url, MIGRATIONS).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains(altered), "{error}");
    assert!(!error.contains("fresh"), "{error}");
}

#[tokio::test]
async fn client_commands_initialize_an_empty_database() {
    let empty = Database::empty().await;
    assert!(run_ok(&sandbox(&empty.url), &["client", "create", "--json"]).contains("prn_sk_"));
}
