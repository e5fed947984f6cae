//! Who may call, and who is told what.

use std::time::Duration;

use crate::{
    harness::{
        api::Answer,
        process::{run_err, run_ok},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal,
};

const PLANS: &str = "/subscription-plans";

fn refused(answer: &Answer) -> (u16, String) {
    (answer.status, answer.problem())
}

#[tokio::test]
async fn one_body_for_missing_unknown_disabled_and_expired() {
    let service = Service::start().await;
    let anonymous = service.anonymous();
    let (disabled, disabled_value) = service.make_client(&[]);
    run_ok(&service.variables, &["client", "disable", &disabled]);
    let (rotated, rotated_value) = service.make_client(&[]);
    run_ok(
        &service.variables,
        &["client", "rotate", &rotated, "--keep-old", "0s"],
    );
    let (_, good) = service.make_client(&[]);

    let callers = [
        ("missing", anonymous.clone()),
        ("empty", anonymous.with("client-id", "")),
        ("unknown", anonymous.with("client-id", "prn_sk_unknown")),
        ("huge", anonymous.with("client-id", &"x".repeat(5_000))),
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
    for (what, caller) in callers {
        for answer in [
            caller.get("/subscription-plans/x").await,
            caller.post(PLANS, &minimal("x").to_string()).await,
        ] {
            assert_eq!(
                refused(&answer),
                (401, "invalid_client".to_owned()),
                "{what}"
            );
            let mut body = answer.json();
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
async fn kinds_and_scopes() {
    let service = Service::start().await;
    let plan = minimal("p").to_string();
    let publishable = service.caller(&["--kind", "publishable"]);
    let wrong_kind = publishable.post(PLANS, &plan).await;
    assert_eq!(refused(&wrong_kind), (403, "insufficient_scope".to_owned()));
    assert!(
        wrong_kind.text.contains("plans:write"),
        "{}",
        wrong_kind.text
    );

    let reader = service.caller(&["--scope", "plans:read"]);
    let missing = reader.post(PLANS, &plan).await;
    assert_eq!(refused(&missing), (403, "insufficient_scope".to_owned()));
    assert!(missing.text.contains("plans:write"));
    assert_eq!(reader.get("/subscription-plans/p").await.status, 404);

    let writer = service.caller(&["--scope", "plans:write", "--scope", "auth"]);
    assert_eq!(writer.post(PLANS, &plan).await.status, 201);
    let unread = writer.get("/subscription-plans/p").await;
    assert_eq!(refused(&unread), (403, "insufficient_scope".to_owned()));
    assert!(unread.text.contains("plans:read"));

    // Authorization comes before the body is looked at.
    assert_eq!(reader.post(PLANS, "{nonsense").await.status, 403);
}

#[tokio::test]
async fn a_secret_client_has_no_business_in_a_browser() {
    let service = Service::start().await;
    let secret = service.caller(&[]);
    for (name, value) in [
        ("origin", "https://app.example.com"),
        ("sec-fetch-site", "same-origin"),
    ] {
        let answer = secret.with(name, value).get("/subscription-plans/x").await;
        assert_eq!(
            refused(&answer),
            (403, "secret_client_in_browser".to_owned()),
            "{name}"
        );
    }
    let browser = service.caller(&[
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
        let answer = browser
            .with("origin", origin)
            .get("/subscription-plans/x")
            .await;
        assert_eq!(
            refused(&answer),
            (403, "origin_not_allowed".to_owned()),
            "{origin}"
        );
    }
}

#[tokio::test]
async fn addresses_are_the_sockets_not_a_headers() {
    let service = Service::start().await;
    let demo = service.caller(&["--id", "DEMO", "--allow-address", "10.0.0.0/8"]);
    for caller in [demo.clone(), demo.with("x-forwarded-for", "10.1.2.3")] {
        let answer = caller.get("/subscription-plans/x").await;
        assert_eq!(refused(&answer), (403, "address_not_allowed".to_owned()));
    }
    let local = service.caller(&[
        "--id",
        "DEMO2",
        "--allow-address",
        "127.0.0.1",
        "--allow-address",
        "10.0.0.0/8",
    ]);
    assert_eq!(local.get("/subscription-plans/x").await.status, 404);
    let taken = run_err(&service.variables, &["client", "create", "--id", "DEMO"]);
    assert!(taken.contains("a client with this id exists"), "{taken}");
}

#[tokio::test]
async fn rotation_without_a_gap() {
    let service = Service::start().await;
    let (id, old) = service.make_client(&[]);
    let call = async |value: &str| {
        service
            .anonymous()
            .with("client-id", value)
            .get("/subscription-plans/x")
            .await
            .status
    };
    assert_eq!(call(&old).await, 404);
    let rotated = service.command(&["client", "rotate", &id, "--keep-old", "1h", "--json"]);
    assert_eq!(rotated["id"], id.as_str());
    let new = rotated["client_id"].as_str().unwrap();
    assert_eq!((call(&old).await, call(new).await), (404, 404));

    // A second rotation leaves two: the newest, and the one before it.
    let newest = service.command(&["client", "rotate", &id, "--json"])["client_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let limit = Duration::from_millis(1_500);
    wait_until("the oldest value is refused", limit, async || {
        call(&old).await == 401
    })
    .await;
    assert_eq!((call(new).await, call(&newest).await), (404, 404));

    // Disabled: within a second, and for good.
    run_ok(&service.variables, &["client", "disable", &id]);
    wait_until("a disabled client is refused", limit, async || {
        call(&newest).await == 401
    })
    .await;
    assert!(run_err(&service.variables, &["client", "rotate", &id]).contains("disabled"));
}

/// Nothing in the database or the log could be used as a client-id.
#[tokio::test]
async fn the_value_is_kept_nowhere() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_LOG", "trace".to_owned());
    })
    .await;
    let (_, value) = service.make_client(&[]);
    assert!(
        value.starts_with("prn_sk_") && value.len() == 7 + 43,
        "{value}"
    );
    service
        .anonymous()
        .with("client-id", &value)
        .post(PLANS, &minimal("x").to_string())
        .await;
    let dump = std::process::Command::new("pg_dump")
        .arg(&service.database.url)
        .output()
        .unwrap();
    assert!(dump.status.success());
    let secret = &value[7..];
    assert!(!String::from_utf8_lossy(&dump.stdout).contains(secret));
    let log = service.server.process.log();
    assert!(log.contains("answered"), "the log is at trace");
    assert!(!log.contains(secret));
}
