//! Tenants: each sees its own, wherever its data is.

use crate::{
    harness::{
        api::Api,
        database::Database,
        process::{Server, run_err, run_ok, sandbox},
    },
    subscription_plans::minimal,
};

#[tokio::test]
async fn two_tenants_in_two_databases() {
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

    let caller = |tenant: &str| {
        let made: serde_json::Value = serde_json::from_str(&run_ok(
            &variables,
            &["client", "create", "--tenant", tenant, "--json"],
        ))
        .unwrap();
        Api::new(&server.url).with("client-id", made["client_id"].as_str().unwrap())
    };
    let (ours, theirs) = (caller("default"), caller("acme"));
    let plan = |price: &str| minimal("pro").to_string().replace("19.99", price);
    assert_eq!(
        ours.post("/subscription-plans", &plan("19.99"))
            .await
            .status,
        201
    );
    assert_eq!(theirs.get("/subscription-plans/pro").await.status, 404);
    // The same slug is free there, and the other tenant's currency holds.
    let made = theirs.post("/subscription-plans", &plan("2500")).await;
    assert_eq!(made.status, 201, "{}", made.text);
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

    // Each row is in its own database and nowhere else, with its event beside it.
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

    // One cell away: its tenants are told 503, the others are served.
    let gone = second.url.rsplit('/').next().unwrap().to_owned();
    let admin = home.connect().await;
    let close = format!("ALTER DATABASE {gone} ALLOW_CONNECTIONS false");
    admin.batch_execute(&close).await.unwrap();
    admin
        .query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
            &[&gone],
        )
        .await
        .unwrap();
    for _ in 0..5 {
        assert_eq!(theirs.get("/subscription-plans/pro").await.status, 503);
        assert_eq!(ours.get("/subscription-plans/pro").await.status, 200);
    }
}

/// An instance that starts while a cell is away serves the others, says what is missing, and serves
/// that cell's tenants once it is back.
#[tokio::test]
async fn a_cell_that_is_away_at_the_start() {
    let home = Database::create().await;
    let cluster = crate::harness::cluster::Cluster::start();
    let mut variables = sandbox(&home.url);
    variables.insert("PERENNIAL_CELLS", format!("second={}", cluster.url()));
    run_ok(&variables, &["migrate"]);
    run_ok(
        &variables,
        &["tenant", "create", "--name", "acme", "--cell", "second"],
    );
    let values = ["default", "acme"].map(|tenant| {
        let made = run_ok(
            &variables,
            &["client", "create", "--tenant", tenant, "--json"],
        );
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        made["client_id"].as_str().unwrap().to_owned()
    });
    cluster.stop();
    let server = Server::start(&variables).await;
    let [ours, theirs] = values.map(|value| Api::new(&server.url).with("client-id", &value));
    let (status, said) = server.admin("/readyz").await.unwrap();
    assert_eq!(
        (status, said.as_str()),
        (
            200,
            "ready\nbut in the cell second, the database is not prepared yet\n"
        )
    );
    assert_eq!(ours.get("/subscription-plans/pro").await.status, 404);
    assert_eq!(theirs.get("/subscription-plans/pro").await.status, 503);
    cluster.resume();
    let limit = std::time::Duration::from_secs(2);
    crate::harness::wait_until("the cell is served", limit, async || {
        theirs.get("/subscription-plans/pro").await.status == 404
    })
    .await;
}

/// A cell that comes back as something else than expected is not touched.
#[tokio::test]
async fn a_cell_of_another_mode_stays_closed() {
    let home = Database::create().await;
    let cluster = crate::harness::cluster::Cluster::start();
    let mut live = sandbox(&cluster.url());
    live.insert("PERENNIAL_MODE", "live".to_owned());
    run_ok(&live, &["migrate"]);
    let mut variables = sandbox(&home.url);
    variables.insert("PERENNIAL_CELLS", format!("second={}", cluster.url()));
    let said = run_err(&variables, &["serve"]);
    assert!(said.contains("the cell second is a live one"), "{said}");

    cluster.stop();
    let server = Server::start(&variables).await;
    cluster.resume();
    let limit = std::time::Duration::from_secs(3);
    crate::harness::wait_until("it is noticed", limit, async || {
        server.process.log().contains("a cell cannot be used")
    })
    .await;
    let (status, said) = server.admin("/readyz").await.unwrap();
    assert_eq!(
        (status, said.as_str()),
        (
            200,
            "ready\nbut in the cell second, the database is not prepared yet\n"
        )
    );
}

#[tokio::test]
async fn two_tenants_in_one_database() {
    let service = crate::harness::service::Service::start().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "acme"]);
    let ambiguous = run_err(&service.variables, &["client", "create"]);
    assert!(ambiguous.contains("--tenant"), "{ambiguous}");
    let (ours, theirs) = (
        service.caller(&["--tenant", "default"]),
        service.caller(&["--tenant", "acme"]),
    );
    assert_eq!(
        ours.post("/subscription-plans", &minimal("pro").to_string())
            .await
            .status,
        201
    );
    assert_eq!(theirs.get("/subscription-plans/pro").await.status, 404);
    assert_eq!(
        theirs
            .post("/subscription-plans", &minimal("PRO").to_string())
            .await
            .status,
        201
    );
    assert!(
        ours.get("/subscription-plans/pro")
            .await
            .text
            .contains(r#""slug":"pro""#)
    );
    assert!(
        theirs
            .get("/subscription-plans/pro")
            .await
            .text
            .contains(r#""slug":"PRO""#)
    );
}

#[tokio::test]
async fn commands_explain_themselves() {
    let service = crate::harness::service::Service::start().await;
    let fails = |arguments: &[&str], what: &str| {
        let said = run_err(&service.variables, arguments);
        assert!(said.contains(what), "{arguments:?}: {said}");
    };
    fails(
        &["tenant", "create", "--name", "default"],
        "a tenant with the name default exists",
    );
    fails(
        &["tenant", "create", "--name", "x", "--cell", "moon"],
        "there is no cell moon",
    );
    fails(
        &[
            "tenant",
            "create",
            "--name",
            "x",
            "--default-currency",
            "DOGE",
        ],
        "not a currency",
    );
    fails(&["tenant", "set"], "nothing to set");
    fails(
        &["tenant", "set", "--tenant", "moon", "--name", "x"],
        "there is no tenant moon",
    );
    fails(
        &["client", "disable", "cli_01920000000070008000000000000001"],
        "there is no client",
    );
    fails(
        &["client", "disable", "plan_01920000000070008000000000000001"],
        "expected the prefix \"cli_\"",
    );
    let listed = service.command(&["tenant", "list", "--json"]);
    assert_eq!(
        (listed["name"].as_str(), listed["cell"].as_str()),
        (Some("default"), Some("home"))
    );
}
