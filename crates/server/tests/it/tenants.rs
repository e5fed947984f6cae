//! Tenants and cells: isolation, and cells that are unavailable or of another mode.

use crate::{
    harness::{
        api::ApiClient,
        client::create_client,
        cluster::Cluster,
        database::Database,
        process::{Server, run_err, run_ok, sandbox},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

#[tokio::test]
async fn tenants_in_two_databases_are_isolated() {
    let (home, second) = (Database::create().await, Database::create().await);
    let mut variables = sandbox(&home.url);
    variables.insert("PERENNIAL_CELLS", format!("second={}", second.url));
    let server = Server::start(&variables).await;
    run_ok(
        &variables,
        &[
            "tenant",
            "create",
            "--name",
            "acme",
            "--cell",
            "second",
            "--default-currency",
            "JPY",
        ],
    );

    let api = |tenant: &str| {
        let (_, client) = create_client(&home.url, &["--tenant", tenant]);
        ApiClient::new(&server.url).with("client-id", &client)
    };
    let (ours, theirs) = (api("default"), api("acme"));
    let plan = |price: &str| minimal_plan("pro").to_string().replace("19.99", price);
    assert_eq!(
        ours.post("/subscription-plans", &plan("19.99"))
            .await
            .status,
        201
    );
    assert_eq!(theirs.get("/subscription-plans/pro").await.status, 404);
    // Slugs and the default currency are per tenant.
    let created = theirs.post("/subscription-plans", &plan("2500")).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert!(
        theirs
            .get("/subscription-plans/pro")
            .await
            .text
            .contains(r#""price":2500,"currency":"JPY""#)
    );
    assert!(
        ours.get("/subscription-plans/pro")
            .await
            .text
            .contains(r#""price":19.99,"currency":"USD""#)
    );

    // Each plan is in its tenant's database only, with its event.
    for (database, price) in [(&home, 1999_i64), (&second, 2500)] {
        let client = database.connect().await;
        let rows = client
            .query("SELECT price_minor FROM subscription_plans", &[])
            .await
            .unwrap();
        assert_eq!(
            rows.iter()
                .map(|row| row.get::<_, i64>(0))
                .collect::<Vec<_>>(),
            [price]
        );
        let events = client
            .query("SELECT 1 FROM events WHERE kind = 'plan.created'", &[])
            .await
            .unwrap();
        assert_eq!(events.len(), 1);
    }

    // An unavailable cell returns 503 to its tenants; the others are served.
    let name = second.url.rsplit('/').next().unwrap().to_owned();
    let admin = home.connect().await;
    let close = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
    admin.batch_execute(&close).await.unwrap();
    admin
        .query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
            &[&name],
        )
        .await
        .unwrap();
    for _ in 0..5 {
        assert_eq!(theirs.get("/subscription-plans/pro").await.status, 503);
        assert_eq!(ours.get("/subscription-plans/pro").await.status, 200);
    }
}

/// Readiness names the missing cell.
#[tokio::test]
async fn cell_missing_at_startup_is_served_once_back() {
    let home = Database::create().await;
    let cluster = Cluster::start();
    let mut variables = sandbox(&home.url);
    variables.insert("PERENNIAL_CELLS", format!("second={}", cluster.url()));
    run_ok(&variables, &["migrate"]);
    run_ok(
        &variables,
        &["tenant", "create", "--name", "acme", "--cell", "second"],
    );
    let values =
        ["default", "acme"].map(|tenant| create_client(&home.url, &["--tenant", tenant]).1);
    cluster.stop();
    let server = Server::start(&variables).await;
    let [ours, theirs] = values.map(|value| ApiClient::new(&server.url).with("client-id", &value));
    let (status, output) = server.admin("/readyz").await.unwrap();
    assert_eq!(
        (status, output.as_str()),
        (200, "ready\ncell second: the database is not ready\n")
    );
    assert_eq!(ours.get("/subscription-plans/pro").await.status, 404);
    assert_eq!(theirs.get("/subscription-plans/pro").await.status, 503);
    cluster.resume();
    let limit = std::time::Duration::from_secs(2);
    wait_until("the cell is served", limit, async || {
        theirs.get("/subscription-plans/pro").await.status == 404
    })
    .await;
}

#[tokio::test]
async fn cell_of_another_mode_is_not_used() {
    let home = Database::create().await;
    let cluster = Cluster::start();
    let mut live = sandbox(&cluster.url());
    live.insert("PERENNIAL_MODE", "live".to_owned());
    run_ok(&live, &["migrate"]);
    let mut variables = sandbox(&home.url);
    variables.insert("PERENNIAL_CELLS", format!("second={}", cluster.url()));
    let output = run_err(&variables, &["serve"]);
    assert!(
        output.contains("cell second was set up in live mode"),
        "{output}"
    );

    cluster.stop();
    let server = Server::start(&variables).await;
    cluster.resume();
    let limit = std::time::Duration::from_secs(3);
    wait_until("it is noticed", limit, async || {
        server.process.log().contains("cell cannot be used")
    })
    .await;
    let (status, output) = server.admin("/readyz").await.unwrap();
    assert_eq!(
        (status, output.as_str()),
        (200, "ready\ncell second: the database is not ready\n")
    );
}

#[tokio::test]
async fn tenant_and_client_commands_explain_errors() {
    let service = Service::start_in_process().await;
    let assert_error = |arguments: &[&str], what: &str| {
        let output = run_err(&service.variables, arguments);
        assert!(output.contains(what), "{arguments:?}: {output}");
    };
    assert_error(
        &["tenant", "create", "--name", "default"],
        "there is already a tenant default",
    );
    assert_error(
        &["tenant", "create", "--name", "x", "--cell", "moon"],
        "moon is not in PERENNIAL_CELLS",
    );
    assert_error(
        &[
            "tenant",
            "create",
            "--name",
            "x",
            "--default-currency",
            "DOGE",
        ],
        "is not a supported currency",
    );
    assert_error(&["tenant", "set"], "nothing to set");
    assert_error(
        &["tenant", "set", "--tenant", "moon", "--name", "x"],
        "there is no tenant moon",
    );
    assert_error(
        &["client", "disable", "cli_01920000000070008000000000000001"],
        "no client has this id",
    );
    assert_error(
        &["client", "disable", "plan_01920000000070008000000000000001"],
        "expected the prefix \"cli_\"",
    );
    let listed = service.run_json(&["tenant", "list", "--json"]);
    assert_eq!(
        (listed["name"].as_str(), listed["cell"].as_str()),
        (Some("default"), Some("home"))
    );
    run_ok(&service.variables, &["tenant", "create", "--name", "acme"]);
    assert_error(&["client", "create"], "--tenant");
}
