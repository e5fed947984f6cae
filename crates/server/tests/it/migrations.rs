//! The schema and the runner that brings a database to it.

use std::{collections::BTreeSet, time::Duration};

use perennial::db::migrate::MIGRATIONS;

use crate::{
    architecture::source,
    harness::{
        database::Database,
        process::{Process, Server, run, run_err, run_ok, sandbox},
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

/// What is wrong with a step, if it would hurt a service that runs while it is applied, or could not
/// be done twice.
fn unsafe_in(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"));
    let code = lines.collect::<Vec<_>>().join("\n");
    // Function bodies are text here; what they do, they do when they are called.
    let code: String = code.split("$$").step_by(2).collect::<Vec<_>>().join(" ");
    let made_here = |table: &str| code.contains(&format!("CREATE TABLE {table} "));
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
            if statement.contains(forbidden) {
                wrong.push(format!(
                    "{forbidden}: expand first, contract in a later release"
                ));
            }
        }
        let alters_old = words.starts_with(&["ALTER", "TABLE"])
            && !words.get(2).is_some_and(|table| made_here(table));
        if alters_old && statement.contains("ADD CONSTRAINT") && !statement.contains("NOT VALID") {
            wrong.push("ADD CONSTRAINT reads the whole table under a lock: add it NOT VALID, then validate".to_owned());
        }
        if alters_old
            && statement.contains("ADD COLUMN")
            && statement.contains("NOT NULL")
            && !statement.contains("DEFAULT")
        {
            wrong.push(
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
            if !table.is_some_and(made_here) {
                wrong.push("an index on a table with rows is built CONCURRENTLY".to_owned());
            }
            continue;
        }
        if !text.starts_with("-- no-transaction\n") {
            wrong.push("CONCURRENTLY needs -- no-transaction".to_owned());
        }
        let drop_first = format!("DROP INDEX CONCURRENTLY IF EXISTS {};", words[index + 2]);
        if !code.contains(&drop_first) {
            wrong.push(format!(
                "{drop_first} must come first, so that it can be built again"
            ));
        }
    }
    wrong
}

#[test]
fn steps_are_safe() {
    for step in MIGRATIONS {
        assert_eq!(
            unsafe_in(step.text()),
            Vec::<String>::new(),
            "{}",
            step.name
        );
    }
    for hurts in [
        "DROP TABLE plans;",
        "ALTER TABLE plans DROP COLUMN slug;",
        "ALTER TABLE plans ADD CONSTRAINT x CHECK (true);",
        "ALTER TABLE plans ADD COLUMN x text NOT NULL;",
        "CREATE UNIQUE INDEX x ON plans (slug);",
        "DROP INDEX CONCURRENTLY IF EXISTS x;\nCREATE UNIQUE INDEX CONCURRENTLY x ON plans (slug);",
        "-- no-transaction\nCREATE INDEX CONCURRENTLY x ON plans (slug);",
    ] {
        assert_eq!(unsafe_in(hurts).len(), 1, "{hurts}");
    }
    let fine = "CREATE TABLE plans (x text);\nCREATE INDEX x ON plans (x);\nALTER TABLE plans ADD CONSTRAINT y CHECK (true);";
    assert_eq!(unsafe_in(fine), Vec::<String>::new());
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
        "signing_keys_pkey",
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

/// Whoever watches sees each step when it begins, and at the end that it is done; nothing twice.
#[tokio::test]
async fn migrate_tells_each_step_once() {
    let database = Database::empty().await;
    let output = run(&sandbox(&database.url), &["migrate"]);
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    for step in MIGRATIONS {
        assert_eq!(said.matches(step.name).count(), 1, "{said}");
    }
    let done = format!("applied {} steps; the schema is current", MIGRATIONS.len());
    assert!(said.starts_with(&done), "{said}");
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
    assert!(
        run_ok(&sandbox(&database.url), &["migrate", "--status"])
            .contains(&format!("{0} of {0} steps", MIGRATIONS.len()))
    );
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
        .batch_execute("DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)")
        .await
        .unwrap();
    let said = run_err(&sandbox(&behind.url), &["client", "list"]);
    assert!(said.contains("run `perennial migrate` first"), "{said}");
}
