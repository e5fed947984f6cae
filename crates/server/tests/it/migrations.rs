//! The schema and the runner that brings a database to it.

use std::{collections::BTreeSet, time::Duration};

use perennial::db::migrate::MIGRATIONS;

use crate::{
    architecture::source,
    harness::{
        database::Database,
        process::{Process, Server, run_err, run_ok, sandbox},
        wait_until,
    },
};

#[test]
fn every_file_is_a_step_and_steps_are_consecutive() {
    let files: BTreeSet<String> = std::fs::read_dir(source("../../migrations"))
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

/// What would hurt a service that runs while the step is applied, or could not be done twice.
#[test]
fn steps_are_safe() {
    for step in MIGRATIONS {
        let text = step.text();
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"))
            .collect::<Vec<_>>()
            .join("\n");
        let own_table = |statement: &str| {
            let table = statement
                .split(" ON ")
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next());
            table.is_some_and(|table| code.contains(&format!("CREATE TABLE {table} ")))
        };
        for statement in code.split(';') {
            let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            for forbidden in [
                "DROP TABLE ",
                "DROP COLUMN",
                "RENAME ",
                "ALTER COLUMN",
                "SET NOT NULL",
                "TRUNCATE",
            ] {
                let inside_function = words.contains("EXECUTE format");
                assert!(
                    inside_function || !words.contains(forbidden),
                    "{}: {forbidden}: expand first, contract in a later release",
                    step.name
                );
            }
            if words.starts_with("CREATE INDEX ") || words.starts_with("CREATE UNIQUE INDEX ") {
                assert!(
                    words.contains("CONCURRENTLY") || own_table(&words),
                    "{}: an index on a table with rows is built CONCURRENTLY",
                    step.name
                );
            }
            if words.starts_with("CREATE INDEX CONCURRENTLY") {
                assert!(text.starts_with("-- no-transaction\n"), "{}", step.name);
                let name = words.split_whitespace().nth(3).unwrap();
                assert!(
                    code.contains(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name};")),
                    "{}: {name} must be able to be built again",
                    step.name
                );
            }
        }
    }
}

#[tokio::test]
async fn keys_begin_with_the_tenant() {
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
    // About the instance, its tenants as a whole, or the look-up that finds the tenant.
    let exceptions = [
        "instance_pkey",
        "schema_migrations_pkey",
        "task_leases_pkey",
        "tenants_name",
        "client_values_hash",
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
async fn four_instances_start_at_once_on_an_empty_database() {
    let database = Database::empty().await;
    let servers: Vec<Server> = (0..4)
        .map(|_| Server::spawn(&sandbox(&database.url)))
        .collect();
    for server in &servers {
        server.wait_for("/readyz").await;
    }
    let applied: usize = servers
        .iter()
        .map(|server| server.process.log().matches("migrating").count())
        .sum();
    assert_eq!(applied, MIGRATIONS.len(), "each step was applied once");
    let client = database.connect().await;
    let count = async |query: &str| -> i64 { client.query_one(query, &[]).await.unwrap().get(0) };
    assert_eq!(
        count("SELECT count(*) FROM schema_migrations WHERE finished_at IS NOT NULL").await,
        MIGRATIONS.len() as i64
    );
    assert_eq!(count("SELECT count(*) FROM tenants").await, 1);
    assert_eq!(count("SELECT count(*) FROM instance").await, 1);
}

/// Killed while an index is built concurrently, which leaves an invalid index behind: the next start
/// builds it anew.
#[tokio::test]
async fn a_killed_index_build_goes_on_at_the_next_start() {
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

    // A writer's open transaction holds the build up.
    let mut blocker = database.connect().await;
    let open = blocker.transaction().await.unwrap();
    open.execute("LOCK TABLE client_values IN ROW EXCLUSIVE MODE", &[])
        .await
        .unwrap();
    let mut migrating = Process::spawn(&sandbox(&database.url), &["migrate"]);
    let invalid = "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('client_values_expiry') AND NOT indisvalid";
    let count = async |query: &str| -> i64 { client.query_one(query, &[]).await.unwrap().get(0) };
    wait_until(
        "the build is half-way",
        Duration::from_secs(10),
        async || count(invalid).await == 1,
    )
    .await;
    migrating.kill();
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'perennial migrate' AND datname = current_database()").await.unwrap();
    open.rollback().await.unwrap();
    assert_eq!(count(invalid).await, 1, "what a crash leaves behind");
    assert!(run_err(&sandbox(&database.url), &["migrate", "--status"]).contains("not current"));

    let server = Server::start(&sandbox(&database.url)).await;
    assert_eq!(count(invalid).await, 0);
    assert_eq!(count("SELECT count(*) FROM pg_index WHERE indexrelid = 'client_values_expiry'::regclass AND indisvalid").await, 1);
    drop(server);
    let said = run_ok(&sandbox(&database.url), &["migrate"]);
    assert!(said.contains("nothing to do"), "{said}");
    assert!(run_ok(&sandbox(&database.url), &["migrate", "--status"]).contains("5 of 5 steps"));
}

#[tokio::test]
async fn what_this_binary_cannot_have_made_is_refused() {
    let database = Database::create().await;
    let client = database.connect().await;
    client
        .batch_execute("INSERT INTO schema_migrations VALUES (99, 'future', 'x', now(), now())")
        .await
        .unwrap();
    let said = run_err(&sandbox(&database.url), &["serve"]);
    assert!(
        said.contains("step 99") && said.contains("Run that version, or restore the backup"),
        "{said}"
    );
    client.batch_execute("DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'x' WHERE version = 3").await.unwrap();
    let said = run_err(&sandbox(&database.url), &["migrate"]);
    assert!(
        said.contains("step 0003_subscription_plans of the schema was applied with another text"),
        "{said}"
    );
}

/// A command on a database that is behind leaves the upgrade to the operator.
#[tokio::test]
async fn small_commands_set_up_but_do_not_upgrade() {
    let empty = Database::empty().await;
    assert!(run_ok(&sandbox(&empty.url), &["client", "create", "--json"]).contains("prn_sk_"));
    let behind = Database::create().await;
    behind
        .connect()
        .await
        .batch_execute("DELETE FROM schema_migrations WHERE version = 5")
        .await
        .unwrap();
    let said = run_err(&sandbox(&behind.url), &["client", "list"]);
    assert!(said.contains("run `perennial migrate` first"), "{said}");
}
