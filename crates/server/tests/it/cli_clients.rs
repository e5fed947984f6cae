//! `perennial client update`

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    commands::live,
    harness::{
        database::Database,
        process::{run_err, run_ok},
        service::Service,
        wait_until,
    },
};

#[tokio::test]
async fn client_update_changes_a_running_instance_within_a_second() {
    let service = Service::start_in_process().await;
    let (id, key) = service.create_client(&["--scope", "plans:read"]);
    let api = service.anonymous().with("client-id", &key);
    assert_eq!(api.get("/subscriptions").await.status, 403);
    let updated = service.run_json(&[
        "client",
        "update",
        &id,
        "--name",
        "backend",
        "--all-scopes",
        "--allow-address",
        "127.0.0.0/8",
        "--json",
    ]);
    assert_eq!(updated["name"], "backend");
    assert_eq!(updated["allow_addresses"], json!(["127.0.0.0/8"]));
    assert!(
        updated["scopes"]
            .as_array()
            .unwrap()
            .contains(&json!("subscriptions:read"))
    );
    wait_until("the scopes apply", Duration::from_secs(5), async || {
        api.get("/subscriptions").await.status == 200
    })
    .await;

    // A list replaces the current one; other settings stay.
    run_ok(
        &service.variables,
        &["client", "update", &id, "--scope", "auth"],
    );
    let listed = run_ok(&service.variables, &["client", "list", "--json"]);
    let listed: Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!(listed["scopes"], json!(["auth"]));
    assert_eq!(listed["name"], "backend");
    run_ok(
        &service.variables,
        &["client", "update", &id, "--any-address"],
    );
    // The event has the operator and the old values. A repeated update has none.
    run_ok(
        &service.variables,
        &["client", "update", &id, "--scope", "auth"],
    );
    let recorded =
        "SELECT count(*) FROM events WHERE kind = 'client.updated' AND operator LIKE '%@%'";
    assert_eq!(service.count(recorded).await, 3);
    let previous = "SELECT count(*) FROM events WHERE kind = 'client.updated' AND
        data->'previous'->'allow_addresses' = '[\"127.0.0.0/8\"]'";
    assert_eq!(service.count(previous).await, 1);
}

#[tokio::test]
async fn publishable_client_loses_its_origins() {
    let service = Service::start_in_process().await;
    let origin = "https://app.example.com";
    let arguments = ["--kind", "publishable", "--allowed-origin", origin];
    let (id, key) = service.create_client(&arguments);
    let api = service.anonymous().with("client-id", &key);
    let page = api.with("origin", origin);
    assert_eq!(page.get("/subscription-plans").await.status, 200);
    run_ok(
        &service.variables,
        &["client", "update", &id, "--no-origins"],
    );
    wait_until("no origin is allowed", Duration::from_secs(5), async || {
        page.get("/subscription-plans").await.status == 403
    })
    .await;
    let refused = run_err(
        &service.variables,
        &["client", "update", &id, "--scope", "plans:write"],
    );
    assert!(
        refused.contains("a publishable client cannot have the scope plans:write"),
        "{refused}"
    );
}

#[tokio::test]
async fn client_update_explains_errors() {
    let service = Service::start_in_process().await;
    let (id, _) = service.create_client(&[]);
    let unknown = "cli_01920000000070008000000000000001";
    for (arguments, expected) in [
        (&["client", "update", &id][..], "nothing to change"),
        (
            &["client", "update", unknown, "--all-scopes"],
            "no client has this id: cli_01920000000070008000000000000001",
        ),
        (
            &[
                "client",
                "update",
                &id,
                "--allowed-origin",
                "https://a.example",
            ],
            "allowed origins require a publishable client",
        ),
        (
            &[
                "client",
                "update",
                &id,
                "--allowed-origin",
                "https://a.example/x",
            ],
            "did you mean https://a.example?",
        ),
        (
            &["client", "update", &id, "--scope", "plans:reed"],
            "did you mean \"plans:read\"?",
        ),
        (
            &["client", "update", &id, "--scope", "auth", "--all-scopes"],
            "cannot be used with",
        ),
    ] {
        let output = run_err(&service.variables, arguments);
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
    run_ok(&service.variables, &["client", "disable", &id]);
    let output = run_err(
        &service.variables,
        &["client", "update", &id, "--name", "x"],
    );
    assert!(output.contains("is disabled"), "{output}");
}

/// In live mode, a key that an operator chose must stay limited to addresses.
#[tokio::test]
async fn chosen_key_cannot_be_opened_to_any_address() {
    let database = Database::empty().await;
    let variables = live(&database.url);
    let create = [
        "client",
        "create",
        "--id",
        "DEMO",
        "--allow-address",
        "10.0.0.0/8",
        "--json",
    ];
    let created: Value = serde_json::from_str(&run_ok(&variables, &create)).unwrap();
    let id = created["id"].as_str().unwrap();
    let update = ["client", "update", id, "--any-address"];
    let refused = run_err(&variables, &update);
    assert!(
        refused.contains("rotate the key and let the old one expire"),
        "{refused}"
    );
    run_ok(&variables, &["client", "rotate", id]);
    let grace = run_err(&variables, &update);
    assert!(grace.contains("still has its first key"), "{grace}");
    run_ok(&variables, &["client", "rotate", id, "--keep-old", "0s"]);
    run_ok(&variables, &update);
}
