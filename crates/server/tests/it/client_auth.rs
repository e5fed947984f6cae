//! Client authentication: the header `client-id`, scopes, origins, address allowlists and rotation.

use std::time::Duration;

use crate::{
    harness::{
        api::ApiResponse,
        process::{run_err, run_ok},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

const PLANS: &str = "/subscription-plans";

fn problem(response: &ApiResponse) -> (u16, String) {
    (response.status, response.problem())
}

/// Malformed input: 53.
#[tokio::test]
async fn missing_unknown_disabled_and_expired_clients_get_one_response() {
    let service = Service::start_in_process().await;
    let anonymous = service.anonymous();
    let (disabled, disabled_value) = service.create_client(&[]);
    run_ok(&service.variables, &["client", "disable", &disabled]);
    let (rotated, rotated_value) = service.create_client(&[]);
    run_ok(
        &service.variables,
        &["client", "rotate", &rotated, "--keep-old", "0s"],
    );
    let (_, good) = service.create_client(&[]);

    let clients = [
        ("missing", anonymous.clone()),
        ("empty", anonymous.with("client-id", "")),
        ("unknown", anonymous.with("client-id", "prn_sk_unknown")),
        ("huge", anonymous.with("client-id", &"x".repeat(10_000))),
        ("SQL", anonymous.with("client-id", "' OR 1=1 --")),
        (
            "a character more",
            anonymous.with("client-id", &format!("{good}x")),
        ),
        ("a character less", anonymous.with("client-id", &good[1..])),
        (
            "in capitals",
            anonymous.with("client-id", &good.to_uppercase()),
        ),
        ("another header", anonymous.with("client_id", &good)),
        ("bearer token", anonymous.with_bearer(&good)),
        (
            "two",
            anonymous.with("client-id", &good).with("client-id", "x"),
        ),
        (
            "twice",
            anonymous.with("client-id", &good).with("client-id", &good),
        ),
        (
            "list",
            anonymous.with("client-id", &format!("{good},{good}")),
        ),
        (
            "its id instead of its value",
            anonymous.with("client-id", &disabled),
        ),
        ("disabled", anonymous.with("client-id", &disabled_value)),
        ("expired", anonymous.with("client-id", &rotated_value)),
    ];
    let mut bodies = Vec::new();
    for (what, api) in clients {
        for response in [
            api.get("/subscription-plans/x").await,
            api.post(PLANS, &minimal_plan("x").to_string()).await,
        ] {
            assert_eq!(
                problem(&response),
                (401, "invalid_client".to_owned()),
                "{what}"
            );
            let mut body = response.json();
            body["request_id"].take();
            body["instance"].take();
            bodies.push(body);
        }
    }
    assert!(
        bodies.windows(2).all(|pair| pair[0] == pair[1]),
        "{bodies:?}"
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        0
    );
    assert_eq!(
        anonymous
            .with("client-id", &good)
            .get("/subscription-plans/x")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn missing_scope_is_named_before_the_body_is_read() {
    let service = Service::start_in_process().await;
    let reader = service.api(&["--scope", "plans:read"]);
    let missing = reader.post(PLANS, "{nonsense").await;
    assert_eq!(problem(&missing), (403, "insufficient_scope".to_owned()));
    assert!(missing.text.contains("plans:write"), "{}", missing.text);
}

#[tokio::test]
async fn secret_client_from_a_browser_is_rejected() {
    let service = Service::start_in_process().await;
    let secret = service.api(&[]);
    for (name, value) in [
        ("origin", "https://app.example.com"),
        ("origin", "https://perennial.example"),
        ("origin", "http://perennial.example:8080"),
        ("origin", "null"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "none"),
    ] {
        let response = secret.with(name, value).get("/subscription-plans/x").await;
        assert_eq!(
            problem(&response),
            (403, "secret_client_in_browser".to_owned()),
            "{name}: {value}"
        );
    }
    let browser = service.api(&[
        "--kind",
        "publishable",
        "--allowed-origin",
        "https://app.example.com",
    ]);
    assert_eq!(
        browser
            .with("origin", "https://app.example.com")
            .get("/subscription-plans/x")
            .await
            .status,
        404
    );
    assert_eq!(browser.get("/subscription-plans/x").await.status, 404);
    for origin in [
        "https://evil.example.com",
        "http://app.example.com",
        "https://app.example.com:8443",
        "null",
    ] {
        let response = browser
            .with("origin", origin)
            .get("/subscription-plans/x")
            .await;
        assert_eq!(
            problem(&response),
            (403, "origin_not_allowed".to_owned()),
            "{origin}"
        );
    }
}

/// The API explorer is a page of the service itself.
#[tokio::test]
async fn secret_client_from_an_own_page_is_accepted_in_sandbox_mode_only() {
    for (mode, status) in [("sandbox", 404), ("live", 403)] {
        let service = Service::start_in_process_with(|variables| {
            variables.insert("PERENNIAL_MODE", mode.to_owned());
        })
        .await;
        let secret = service.api(&[]);
        let local = secret.with("host", "127.0.0.1:8080");
        for browser in [
            secret.with("sec-fetch-site", "same-origin"),
            secret.with("origin", "http://perennial.example"),
            local.with("origin", "http://127.0.0.1:8080"),
            local
                .with("origin", "http://127.0.0.1:8080")
                .with("sec-fetch-site", "same-origin"),
        ] {
            let response = browser.get("/subscription-plans/x").await;
            assert_eq!(response.status, status, "{mode}: {}", response.text);
        }
        // Another application on the same machine.
        let other = local.with("origin", "http://127.0.0.1:3000");
        let response = other.get("/subscription-plans/x").await;
        response.assert_problem(403, "secret_client_in_browser");
    }
}

#[tokio::test]
async fn address_allowlist_uses_the_socket_address() {
    let service = Service::start_in_process().await;
    let demo = service.api(&["--id", "DEMO", "--allow-address", "10.0.0.0/8"]);
    for api in [demo.clone(), demo.with("x-forwarded-for", "10.1.2.3")] {
        let response = api.get("/subscription-plans/x").await;
        assert_eq!(problem(&response), (403, "address_not_allowed".to_owned()));
    }
    let local = service.api(&[
        "--id",
        "DEMO2",
        "--allow-address",
        "127.0.0.1",
        "--allow-address",
        "10.0.0.0/8",
    ]);
    assert_eq!(local.get("/subscription-plans/x").await.status, 404);
    let taken = run_err(&service.variables, &["client", "create", "--id", "DEMO"]);
    assert!(
        taken.contains("another client already uses this key"),
        "{taken}"
    );
}

#[tokio::test]
async fn rotated_client_accepts_old_and_new_value() {
    let service = Service::start_in_process().await;
    let (id, old) = service.create_client(&[]);
    let call = async |value: &str| {
        service
            .anonymous()
            .with("client-id", value)
            .get("/subscription-plans/x")
            .await
            .status
    };
    assert_eq!(call(&old).await, 404);
    let rotated = service.run_json(&["client", "rotate", &id, "--keep-old", "1h", "--json"]);
    assert_eq!(rotated["id"], id.as_str());
    let new = rotated["client_id"].as_str().unwrap();
    assert_eq!((call(&old).await, call(new).await), (404, 404));

    // After a second rotation, the two newest values are valid.
    let newest = service.run_json(&["client", "rotate", &id, "--json"])["client_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let limit = Duration::from_millis(1_500);
    wait_until("the oldest value is refused", limit, async || {
        call(&old).await == 401
    })
    .await;
    assert_eq!((call(new).await, call(&newest).await), (404, 404));

    // A disabled client is rejected within a second and cannot be rotated.
    run_ok(&service.variables, &["client", "disable", &id]);
    wait_until("a disabled client is refused", limit, async || {
        call(&newest).await == 401
    })
    .await;
    assert!(run_err(&service.variables, &["client", "rotate", &id]).contains("disabled"));
}

#[tokio::test]
async fn client_value_is_neither_stored_nor_logged() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_LOG", "trace".to_owned());
    })
    .await;
    let (_, value) = service.create_client(&[]);
    assert!(
        value.starts_with("prn_sk_") && value.len() == 7 + 43,
        "{value}"
    );
    service
        .anonymous()
        .with("client-id", &value)
        .post(PLANS, &minimal_plan("x").to_string())
        .await;
    let secret = &value[7..];
    assert!(!service.database.dump().contains(secret));
    let log = service.server.process.log();
    assert!(log.contains("response status="), "the log is at trace");
    assert!(!log.contains(secret));
}
