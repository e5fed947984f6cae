//! Migrations: their safety, and the command that applies them.

use std::{collections::BTreeSet, time::Duration};

use perennial::db::migrate::MIGRATIONS;

use crate::{
    architecture::crate_path,
    harness::{
        database::Database,
        process::{Process, Server, run, run_err, run_ok, sandbox},
        wait_until,
    },
};

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
    for step in MIGRATIONS {
        assert_eq!(
            unsafe_operations(step.text()),
            Vec::<String>::new(),
            "{}",
            step.name
        );
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
    let done = format!(
        "applied {} migrations; the schema is current",
        MIGRATIONS.len()
    );
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

/// A killed concurrent build leaves an invalid index.
#[tokio::test]
async fn interrupted_index_build_is_repeated_on_next_start() {
    let database = Database::create().await;
    let client = database.connect().await;
    let step = MIGRATIONS
        .iter()
        .find(|step| step.text().contains("CREATE INDEX CONCURRENTLY"))
        .unwrap();
    client
        .batch_execute("DROP INDEX client_values_expiry")
        .await
        .unwrap();
    client
        .execute(
            "DELETE FROM schema_migrations WHERE version = $1",
            &[&step.version],
        )
        .await
        .unwrap();

    // An open transaction blocks the build.
    let mut blocker = database.connect().await;
    let open = blocker.transaction().await.unwrap();
    open.execute("LOCK TABLE client_values IN ROW EXCLUSIVE MODE", &[])
        .await
        .unwrap();
    let mut migrating = Process::spawn(&sandbox(&database.url), &["migrate"]);
    let invalid = "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('client_values_expiry') AND NOT indisvalid";
    let count = async |query: &str| -> i64 { client.query_one(query, &[]).await.unwrap().get(0) };
    wait_until(
        "the build has started",
        Duration::from_secs(10),
        async || count(invalid).await == 1,
    )
    .await;
    migrating.kill();
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'perennial migrate' AND datname = current_database()").await.unwrap();
    open.rollback().await.unwrap();
    assert_eq!(count(invalid).await, 1, "the invalid index remains");
    assert!(run_err(&sandbox(&database.url), &["migrate", "--status"]).contains("not current"));

    let server = Server::start(&sandbox(&database.url)).await;
    assert_eq!(count(invalid).await, 0);
    assert_eq!(count("SELECT count(*) FROM pg_index WHERE indexrelid = 'client_values_expiry'::regclass AND indisvalid").await, 1);
    drop(server);
    let output = run_ok(&sandbox(&database.url), &["migrate"]);
    assert!(output.contains("nothing to do"), "{output}");
    assert!(
        run_ok(&sandbox(&database.url), &["migrate", "--status"])
            .contains(&format!("{0} of {0} migrations", MIGRATIONS.len()))
    );
}

/// The index on a partitioned table is built for each partition. A killed build leaves some of them, one invalid.
#[tokio::test]
async fn interrupted_index_build_on_partitions_is_repeated_on_next_start() {
    let database = Database::create().await;
    let client = database.connect().await;
    let version = MIGRATIONS
        .iter()
        .find(|step| step.name == "0033_event_log_index");
    let version = version.unwrap().version;
    // The schema before the migration, and a partition that was created during the upgrade.
    let prepare = format!(
        "DROP INDEX events_xact; CREATE INDEX events_xact ON ONLY events (xact) WHERE xact IS NOT NULL;
         SELECT events_make_month('2020-01-01Z'); DELETE FROM schema_migrations WHERE version = {version}"
    );
    client.batch_execute(&prepare).await.unwrap();
    let count = async |query: &str| -> i64 { client.query_one(query, &[]).await.unwrap().get(0) };
    let valid = "SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid
        WHERE relname LIKE 'events\\_%\\_xact' AND indisvalid";
    let invalid = &valid.replace("AND indisvalid", "AND NOT indisvalid");

    // An open transaction blocks the build on one partition.
    let mut blocker = database.connect().await;
    let open = blocker.transaction().await.unwrap();
    open.execute("LOCK TABLE events_default IN ROW EXCLUSIVE MODE", &[])
        .await
        .unwrap();
    let mut migrating = Process::spawn(&sandbox(&database.url), &["migrate"]);
    wait_until(
        "the build is blocked",
        Duration::from_secs(10),
        async || count(invalid).await == 1,
    )
    .await;
    migrating.kill();
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'perennial migrate' AND datname = current_database()").await.unwrap();
    open.rollback().await.unwrap();
    assert_eq!(count(invalid).await, 1);

    run_ok(&sandbox(&database.url), &["migrate"]);
    assert_eq!(count(invalid).await, 0);
    assert!(count(valid).await >= 4);
    let attached = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events_xact'::regclass";
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass";
    assert_eq!(count(attached).await, count(partitions).await);
    let complete =
        "SELECT count(*) FROM pg_index WHERE indexrelid = 'events_xact'::regclass AND indisvalid";
    assert_eq!(count(complete).await, 1);
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
    client.batch_execute("DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'x' WHERE version = 3").await.unwrap();
    let output = run_err(&sandbox(&database.url), &["migrate"]);
    assert!(
        output.contains("migration 0003_subscription_plans was applied with a different text"),
        "{output}"
    );
}

/// A command on an outdated schema leaves the upgrade to the operator.
#[tokio::test]
async fn client_commands_initialize_but_do_not_upgrade() {
    let empty = Database::empty().await;
    assert!(run_ok(&sandbox(&empty.url), &["client", "create", "--json"]).contains("prn_sk_"));
    let behind = Database::create().await;
    behind
        .connect()
        .await
        .batch_execute("DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)")
        .await
        .unwrap();
    let output = run_err(&sandbox(&behind.url), &["client", "list"]);
    assert!(output.contains("run `perennial migrate` first"), "{output}");
}
