//! Two database roles: one owns the schema and migrates, the other serves and cannot change it.

use std::time::Duration;

use reqwest::Url;
use serde_json::json;
use tokio_postgres::error::SqlState;

use crate::{
    harness::{
        api::ApiClient,
        block_on,
        client::create_client,
        database::{Database, connect},
        process::{Server, Variables, run, run_err, run_ok, sandbox},
        unique_name, wait_until,
    },
    migrations::{apply, with_later},
    subscription_plans::minimal_plan,
};

/// Drops a role of the server that the tests share. Its databases must be dropped first.
struct Role(String);

impl Role {
    async fn create(prefix: &str) -> Self {
        let name = unique_name(prefix);
        let admin = Database::empty().await;
        let create = format!("CREATE ROLE {name} LOGIN");
        admin.connect().await.batch_execute(&create).await.unwrap();
        Self(name)
    }

    /// Returns the URL of a database with this role.
    fn url(&self, database: &Database) -> String {
        let mut url = Url::parse(&database.url).unwrap();
        url.set_username(&self.0).unwrap();
        url.to_string()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        block_on(async {
            let admin = Database::empty().await;
            let drop = format!("DROP ROLE {}", self.0);
            let _ = admin.connect().await.batch_execute(&drop).await;
        });
    }
}

/// Two cells that `owner` owns and has migrated, and in which `app` can serve.
struct Installation {
    // Dropped in this order: the databases before the roles that have privileges in them.
    home: Database,
    second: Database,
    owner: Role,
    app: Role,
}

impl Installation {
    async fn create() -> Self {
        let (owner, app) = (Role::create("owner_").await, Role::create("app_").await);
        let options = format!("OWNER {}", owner.0);
        let installation = Self {
            home: Database::create_with(&options).await,
            second: Database::create_with(&options).await,
            owner,
            app,
        };
        let variables = installation.variables(&installation.owner);
        for expected in ["applied ", "nothing to do"] {
            let output = run_ok(&variables, &["migrate", "--grant-to", &installation.app.0]);
            assert!(output.starts_with(expected), "{output}");
            assert!(output.contains("cannot change the schema"), "{output}");
        }
        installation
    }

    fn variables(&self, role: &Role) -> Variables {
        let mut variables = sandbox(&role.url(&self.home));
        variables.insert(
            "PERENNIAL_CELLS",
            format!("second={}", role.url(&self.second)),
        );
        variables
    }
}

/// Calls most endpoints that write, as the tenant of this client.
async fn use_api(api: &ApiClient) {
    let plan = api
        .create("/subscription-plans", &minimal_plan("pro"))
        .await;
    let path = "/subscription-plans/pro";
    assert_eq!(api.put(path, r#"{"tier": 3}"#).await.status, 200);
    let user = api.sign_up("ada@example.com").await;
    let subscription = json!({"user_id": user.user(), "subscription_plan_id": plan["id"]});
    let subscription = api.create("/subscriptions", &subscription).await;
    let pending =
        json!({"subscription_id": subscription["id"], "amount": 19.99, "currency": "USD"});
    let mut completed = pending.clone();
    completed["status"] = json!("completed");
    api.create("/subscription-payments", &completed).await;
    let payment = api.create("/subscription-payments", &pending).await;
    let id = |record: &serde_json::Value| record["id"].as_str().unwrap().to_owned();
    let subscription = format!("/subscriptions/{}", id(&subscription));
    assert_eq!(api.get(&format!("{subscription}/ledger")).await.status, 200);
    let cancelled = api.put(&subscription, r#"{"status": "cancelled"}"#).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    let payment = format!("/subscription-payments/{}", id(&payment));
    assert_eq!(api.delete(&payment).await.status, 204);
    assert_eq!(api.refresh(user.refresh()).await.status, 200);
    let user = api.sign_in("ada@example.com").await;
    let own = api.with_bearer(user.access());
    let all = "/authentication/tokens/revoke-all-except-current";
    assert_eq!(own.post(all, "").await.status, 200);
    let account = format!("/authentication/delete-my-account/{}", user.user());
    let deleted = own.delete(&account).await;
    assert!(deleted.status < 300, "{}", deleted.text);
}

#[tokio::test]
async fn service_and_worker_run_with_a_role_that_cannot_change_the_schema() {
    let installation = Installation::create().await;
    let (home, second) = (&installation.home, &installation.second);
    // Partitions that the worker must create and drop in both cells.
    let month =
        "SELECT 'events_' || to_char((now() AT TIME ZONE 'UTC') + interval '2 months', 'YYYY_MM')";
    for database in [home, second] {
        let owner = connect(&installation.owner.url(database)).await;
        let next: String = owner.query_one(month, &[]).await.unwrap().get(0);
        let prepare =
            format!("DROP TABLE {next}; SELECT create_partition('events', '2020-01-01Z')");
        owner.batch_execute(&prepare).await.unwrap();
    }
    let mut variables = installation.variables(&installation.app);
    variables.insert("PERENNIAL_EVENT_RETENTION_MONTHS", "1".to_owned());
    let app = ["--tenant", "default"];
    let theirs = ["--tenant", "acme"];
    run_ok(
        &variables,
        &["tenant", "create", "--name", "acme", "--cell", "second"],
    );
    run_ok(
        &variables,
        &[
            "tenant",
            "set",
            "--tenant",
            "acme",
            "--lifecycle",
            "managed",
        ],
    );
    let server = Server::start(&variables).await;
    for arguments in [app, theirs] {
        let (_, value) = create_client(&installation.app.url(home), &arguments);
        use_api(&ApiClient::new(&server.url).with("client-id", &value)).await;
    }
    for database in [home, second] {
        let client = database.connect().await;
        let limit = Duration::from_secs(10);
        wait_until("the worker maintains partitions", limit, async || {
            let months = format!("SELECT to_regclass(({month})) IS NOT NULL AND to_regclass('events_2020_01') IS NULL");
            client.query_one(&months, &[]).await.unwrap().get(0)
        })
        .await;
    }
    let log = server.process.log();
    assert!(!log.contains("permission denied"), "{log}");
    drop(server);
    // Commands that read or write many tables.
    run_ok(&variables, &["sandbox", "clock", "advance", "40d"]);
    run_ok(&variables, &["keys", "rotate"]);
    let folder = std::env::temp_dir().join(unique_name("perennial-roles-"));
    run_ok(&variables, &["backup", folder.to_str().unwrap()]);
    std::fs::remove_dir_all(folder).unwrap();
    let output = run(&variables, &["doctor"]);
    let output = String::from_utf8(output.stdout).unwrap();
    for cell in ["home", "second"] {
        let finding = format!("✔ {cell}: role {}, cannot change", installation.app.0);
        assert!(output.contains(&finding), "{output}");
    }
}

/// A database that was restored into another cluster is read as a whole once, with the serving role's privileges.
#[tokio::test]
async fn worker_reads_a_copy_of_another_cluster() {
    let installation = Installation::create().await;
    let owner = connect(&installation.owner.url(&installation.home)).await;
    let copy = "UPDATE event_log_state SET system_identifier = 1;
        UPDATE report_installation SET system_identifier = 1";
    owner.batch_execute(copy).await.unwrap();
    let variables = installation.variables(&installation.app);
    let check = ["report", "check", "--all"];
    let incomplete =
        "the reports of default are not complete yet: a restored database is still being read";
    let output = run_ok(&variables, &check);
    assert!(output.contains(incomplete), "{output}");
    let (_, value) = create_client(&installation.app.url(&installation.home), &[]);
    let server = Server::start(&variables).await;
    use_api(&ApiClient::new(&server.url).with("client-id", &value)).await;
    let limit = Duration::from_secs(10);
    wait_until("the worker reads all events", limit, async || {
        let read = "SELECT EXISTS (SELECT FROM revenue_changes) AND NOT EXISTS (SELECT FROM all_pending_revenue_changes WHERE at <= now())
            AND (SELECT count(*) FROM event_log) = (SELECT count(*) FROM events)";
        owner.query_one(read, &[]).await.unwrap().get(0)
    })
    .await;
    let log = server.process.log();
    assert!(!log.contains("permission denied"), "{log}");
    let output = run_ok(&variables, &check);
    let equal = "the reports of default equal the subscriptions";
    assert!(output.contains(equal), "{output}");
}

#[tokio::test]
async fn serving_role_cannot_change_the_schema_or_the_history() {
    let installation = Installation::create().await;
    for database in [&installation.home, &installation.second] {
        let app = connect(&installation.app.url(database)).await;
        let month = "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')";
        let month: String = app.query_one(month, &[]).await.unwrap().get(0);
        for statement in [
            "CREATE TABLE mine (id integer)",
            "CREATE SCHEMA mine",
            "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "CREATE INDEX mine ON users (email)",
            "CREATE TRIGGER mine BEFORE INSERT ON users EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "ALTER TABLE users ADD COLUMN mine integer",
            "ALTER TABLE users DISABLE TRIGGER ALL",
            "ALTER FUNCTION create_partitions(text) RESET search_path",
            "DROP TABLE idempotency_keys",
            "TRUNCATE sessions",
            "DELETE FROM events",
            "UPDATE events SET kind = 'x'",
            "UPDATE ledger_entries SET amount_minor = 0",
            "DELETE FROM ledger_entries",
            "DELETE FROM schema_migrations",
            "SELECT create_partition('events', '2030-01-01Z')",
            "COPY users TO PROGRAM 'cat'",
            &format!("DELETE FROM events_{month}"),
            &format!("DROP TABLE events_{month}"),
        ] {
            let error = app.batch_execute(statement).await.expect_err(statement);
            assert_eq!(
                error.code(),
                Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                "{statement}: {error:?}"
            );
        }
        // The function that drops partitions keeps at least one month.
        for keep in ["interval '0'", "interval '-100 months'", "NULL"] {
            let drop = format!("SELECT drop_partitions('events', {keep})");
            let error = app.batch_execute(&drop).await.expect_err(&drop);
            assert_eq!(
                error.code(),
                Some(&SqlState::INVALID_PARAMETER_VALUE),
                "{keep}"
            );
        }
    }
}

/// Functions that run with the privileges of their owner have a fixed search path, and only roles
/// that were granted it can call them.
#[tokio::test]
async fn owner_functions_are_restricted() {
    let database = Database::create().await;
    let rows = database
        .connect()
        .await
        .query(
            "SELECT proname::text, array_to_string(proconfig, ' '), EXISTS (
                SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)
             FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let functions: Vec<(String, String, bool)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let expected = [
        "create_partitions",
        "drop_partitions",
        "events_advance_sequence",
        "events_lock",
    ]
    .map(|name| {
        (
            name.to_owned(),
            "search_path=public, pg_temp".to_owned(),
            false,
        )
    });
    assert_eq!(functions, expected);
}

#[tokio::test]
async fn new_tables_are_granted_to_the_serving_role_by_the_next_migration() {
    let installation = Installation::create().await;
    let app = connect(&installation.app.url(&installation.home)).await;
    // A later release has a new table.
    let migrations = with_later(1);
    // The serving role does not migrate, and is told who can.
    let url = installation.app.url(&installation.home);
    let error = format!("{:#}", apply(&url, &migrations).await.unwrap_err());
    assert!(
        error.contains("first run `perennial migrate` as the role that owns the tables"),
        "{error}"
    );
    let url = installation.owner.url(&installation.home);
    let applied = apply(&url, &migrations).await.unwrap();
    assert_eq!(applied, ["later_table"]);
    let insert = "INSERT INTO later VALUES (gen_random_uuid(), gen_random_uuid())";
    app.batch_execute(insert).await.unwrap();
    let created = "CREATE TABLE mine (id integer)";
    assert!(app.batch_execute(created).await.is_err());
}

#[tokio::test]
async fn privileges_are_granted_only_to_roles_that_cannot_change_the_schema() {
    let installation = Installation::create().await;
    let variables = installation.variables(&installation.owner);
    let refused = |role: &str, reason: &str| {
        let output = run_err(&variables, &["migrate", "--grant-to", role]);
        assert!(output.contains(reason), "{role}: {output}");
        assert!(output.contains("docs/how-to/database-roles"), "{output}");
    };
    refused(
        "nobody_has_this_name",
        "CREATE ROLE nobody_has_this_name LOGIN",
    );
    refused(&installation.owner.0, "owns the tables");
    refused("postgres", "is a superuser");
    let owner = connect(&installation.owner.url(&installation.home)).await;
    let app = &installation.app.0;
    let grant = format!("GRANT CREATE ON SCHEMA public TO {app}");
    owner.batch_execute(&grant).await.unwrap();
    refused(app, "has the privilege CREATE on the schema public");
    let revoke = format!(
        "REVOKE CREATE ON SCHEMA public FROM {app}; GRANT CREATE ON DATABASE {} TO {app}",
        { installation.home.url.rsplit('/').next().unwrap() }
    );
    owner.batch_execute(&revoke).await.unwrap();
    refused(app, "has the privilege CREATE on the database");
}

#[tokio::test]
async fn doctor_warns_in_live_mode_about_a_role_that_can_change_the_schema() {
    let database = Database::empty().await;
    let mut variables = sandbox(&database.url);
    variables.insert("PERENNIAL_MODE", "live".to_owned());
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "https://billing.example.com".to_owned(),
    );
    run_ok(&variables, &["migrate"]);
    let output = run(&variables, &["doctor", "--json"]);
    let output: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = output["findings"].as_array().unwrap();
    let role = findings.iter().find(|finding| {
        finding["message"]
            .as_str()
            .unwrap()
            .starts_with("home: role ")
    });
    let role = role.unwrap();
    assert_eq!(role["severity"], "warning", "{role}");
    assert!(
        role["message"]
            .as_str()
            .unwrap()
            .contains("can change the schema")
    );
    assert!(
        role["fix"].as_str().unwrap().contains("--grant-to"),
        "{role}"
    );
}
