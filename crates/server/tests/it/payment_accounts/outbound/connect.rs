//! `perennial payment-account connect` and `check`

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    payment_stand_in::{PaymentStandIn, TEST_KEY},
    process::{Process, run_err, run_ok},
    service::Service,
    unique_name, wait_until,
};

async fn start(folder: &str, variable: &'static str) -> (Service, PaymentStandIn, String) {
    let stand_in = PaymentStandIn::start(folder).await;
    let base = stand_in.url.clone();
    let service = Service::start_with(|variables| {
        variables.insert(variable, base);
    })
    .await;
    let path = std::env::temp_dir().join(unique_name("api-key"));
    std::fs::write(&path, TEST_KEY).unwrap();
    (service, stand_in, path.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn stripe_is_connected_with_one_command() {
    let (service, stand_in, key) = start("stripe", "PERENNIAL_STRIPE_API_BASE").await;
    let url = service.server.url.clone();
    let connect = [
        "payment-account",
        "connect",
        "stripe",
        "--api-key-file",
        &key,
        "--url",
        &url,
    ];
    let connected = run_ok(&service.variables, &[&connect[..], &["--json"]].concat());
    let account: Value = serde_json::from_str(&connected).unwrap();
    let id = account["id"].as_str().unwrap();
    assert_eq!(account["mode"], "test");
    assert_eq!(account["has_secret"], true);
    assert!(account["external_account_id"].is_string(), "{account}");
    assert!(!connected.contains(TEST_KEY));
    let list = stand_in.stripe_get("webhook_endpoints").await;
    let endpoint = &list["data"][0];
    assert_eq!(endpoint["url"], format!("{url}/payment-notifications/{id}"));
    let events = endpoint["enabled_events"].to_string();
    assert!(
        events.contains("invoice.paid") && !events.contains("invoice.created"),
        "{events}"
    );
    let checked = run_ok(&service.variables, &["payment-account", "check", id]);
    assert!(
        checked.contains("the API key works, in test mode"),
        "{checked}"
    );
    let again = run_err(&service.variables, &connect);
    assert!(again.contains("already connected"), "{again}");
    // A webhook that was changed is found.
    let endpoint = format!("webhook_endpoints/{}", endpoint["id"].as_str().unwrap());
    let events = [("enabled_events[]", "invoice.created")];
    stand_in.stripe(&endpoint, &events).await;
    let check = ["payment-account", "check", id];
    let problems = run_err(&service.variables, &check);
    assert!(problems.contains("problems: 2"), "{problems}");
    let revoked = json!({"key": TEST_KEY, "revoked": true});
    stand_in.control(Method::POST, "/keys", revoked).await;
    let problems = run_err(&service.variables, &check);
    assert!(problems.contains("problems: 1"), "{problems}");
}

#[tokio::test]
async fn lemon_squeezy_is_connected_with_one_command() {
    let (service, stand_in, key) = start("lemonsqueezy", "PERENNIAL_LEMON_SQUEEZY_API_BASE").await;
    let url = service.server.url.clone();
    let connect = [
        "payment-account",
        "connect",
        "lemonsqueezy",
        "--api-key-file",
        &key,
        "--url",
        &url,
        "--json",
    ];
    let account: Value = serde_json::from_str(&run_ok(&service.variables, &connect)).unwrap();
    assert_eq!(account["external_account_id"], "1");
    assert_eq!(account["mode"], "test");
    let id = account["id"].as_str().unwrap();
    // The webhook is found on a later page too.
    for number in 0..100 {
        let webhook = json!({
            "type": "webhooks",
            "attributes": {"url": format!("https://example.com/{number}"), "events": ["order_created"], "secret": "123456"},
            "relationships": {"store": {"data": {"type": "stores", "id": "1"}}},
        });
        stand_in
            .lemon_squeezy(Method::POST, "webhooks", webhook)
            .await;
    }
    run_ok(&service.variables, &["payment-account", "check", id]);
}

/// Returns the arguments that connect an account with the API key in a file.
fn connect_arguments<'a>(provider: &'a str, key: &'a str, url: &'a str) -> [&'a str; 8] {
    [
        "payment-account",
        "connect",
        provider,
        "--api-key-file",
        key,
        "--url",
        url,
        "--json",
    ]
}

/// Returns the URLs of the webhooks at Stripe.
async fn stripe_webhooks(stand_in: &PaymentStandIn) -> Vec<String> {
    let list = stand_in.stripe_get("webhook_endpoints").await;
    let list = list["data"].as_array().unwrap().iter();
    list.map(|webhook| webhook["url"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the URLs of the webhooks at Lemon Squeezy.
async fn lemon_webhooks(stand_in: &PaymentStandIn) -> Vec<String> {
    let list = stand_in
        .lemon_squeezy(Method::GET, "webhooks", Value::Null)
        .await;
    let list = list.as_array().unwrap().iter();
    list.map(|webhook| webhook["attributes"]["url"].as_str().unwrap().to_owned())
        .collect()
}

/// Connects an account, and checks it. Returns its id.
fn connect_and_check(service: &Service, connect: &[&str]) -> String {
    let account: Value = serde_json::from_str(&run_ok(&service.variables, connect)).unwrap();
    let id = account["id"].as_str().unwrap().to_owned();
    run_ok(&service.variables, &["payment-account", "check", &id]);
    id
}

#[tokio::test]
async fn account_and_webhook_are_not_kept_if_the_response_is_lost() {
    let (service, stand_in, key) = start("stripe", "PERENNIAL_STRIPE_API_BASE").await;
    let connect = connect_arguments("stripe", &key, &service.server.url);
    for executes in [false, true] {
        let fault = json!({
            "kind": "status", "status": 500, "path": "/v1/webhook_endpoints", "method": "POST", "count": 1,
            "executes": executes,
        });
        stand_in.add_fault(fault).await;
        let failed = run_err(&service.variables, &connect);
        assert!(failed.contains("cannot create the webhook"), "{failed}");
        let list = run_ok(&service.variables, &["payment-account", "list", "--json"]);
        assert_eq!(list.trim(), "");
        assert_eq!(stripe_webhooks(&stand_in).await, Vec::<String>::new());
    }
    connect_and_check(&service, &connect);
}

#[tokio::test]
async fn connect_is_completed_by_another_run_if_the_provider_was_down() {
    let (service, stand_in, key) = start("stripe", "PERENNIAL_STRIPE_API_BASE").await;
    let connect = connect_arguments("stripe", &key, &service.server.url);
    let path = "/v1/webhook_endpoints";
    for fault in [
        json!({"kind": "status", "status": 500, "path": path, "method": "POST", "executes": true}),
        json!({"kind": "status", "status": 500, "path": path}),
    ] {
        stand_in.add_fault(fault).await;
    }
    let failed = run_err(&service.variables, &connect);
    assert!(failed.contains("run the command again"), "{failed}");
    stand_in.clear_faults().await;
    let id = connect_and_check(&service, &connect);
    let url = format!("{}/payment-notifications/{id}", service.server.url);
    assert_eq!(stripe_webhooks(&stand_in).await, [url]);
}

/// Kills a command as soon as the provider has created the webhook, and before its response.
async fn kill_connect(service: &Service, stand_in: &PaymentStandIn, connect: &[&str], path: &str) {
    let fault = json!({
        "kind": "slow", "delay_ms": 60_000, "path": path, "method": "POST", "count": 1, "executes": true,
    });
    stand_in.add_fault(fault).await;
    let mut process = Process::spawn(&service.variables, connect);
    let limit = Duration::from_secs(30);
    wait_until("the webhook is created", limit, async || {
        let webhooks = if path.contains("endpoints") {
            stripe_webhooks(stand_in).await
        } else {
            lemon_webhooks(stand_in).await
        };
        !webhooks.is_empty()
    })
    .await;
    process.kill();
}

#[tokio::test]
async fn killed_connect_of_stripe_is_completed_by_another_run() {
    let (service, stand_in, key) = start("stripe", "PERENNIAL_STRIPE_API_BASE").await;
    let connect = connect_arguments("stripe", &key, &service.server.url);
    kill_connect(&service, &stand_in, &connect, "/v1/webhook_endpoints").await;
    let id = connect_and_check(&service, &connect);
    let url = format!("{}/payment-notifications/{id}", service.server.url);
    assert_eq!(
        stripe_webhooks(&stand_in).await,
        [url],
        "the lost one is gone"
    );
}

#[tokio::test]
async fn killed_connect_of_lemon_squeezy_has_stored_the_secret_of_its_webhook() {
    let (service, stand_in, key) = start("lemonsqueezy", "PERENNIAL_LEMON_SQUEEZY_API_BASE").await;
    let connect = connect_arguments("lemonsqueezy", &key, &service.server.url);
    kill_connect(&service, &stand_in, &connect, "/v1/webhooks").await;
    let again = run_err(&service.variables, &connect);
    assert!(again.contains("already connected"), "{again}");
    let account = service.run_json(&["payment-account", "list", "--json"]);
    let id = account["id"].as_str().unwrap();
    run_ok(&service.variables, &["payment-account", "check", id]);
    // A webhook that was deleted at the provider is created again.
    stand_in.delete("webhooks/1").await;
    assert_eq!(connect_and_check(&service, &connect), id);
    assert_eq!(lemon_webhooks(&stand_in).await.len(), 1);
}

#[tokio::test]
async fn connect_says_what_is_wrong_and_what_to_do() {
    let (service, stand_in, key) = start("stripe", "PERENNIAL_STRIPE_API_BASE").await;
    let limited = json!({"key": "rk_test_limited", "permissions": {"customer": "read"}});
    stand_in.control(Method::POST, "/keys", limited).await;
    let fail = |content: &str, more: &[&str]| {
        std::fs::write(&key, content).unwrap();
        let connect = ["payment-account", "connect", "stripe"];
        let arguments = [&connect[..], &["--api-key-file", &key], more].concat();
        run_err(&service.variables, &arguments)
    };
    for (content, more, expected) in [
        ("", &[][..], "is empty"),
        ("sk_test_1\nsk_test_2", &[], "one value on one line"),
        (
            "hush",
            &[],
            "expected one that starts with rk_test_, sk_test_",
        ),
        (
            "rk_live_hush",
            &[],
            "a sandbox takes only keys for test mode",
        ),
        ("rk_test_limited", &[], "rak_webhook_write"),
        (
            "sk_test_1",
            &["--url", "nonsense"],
            "such as https://billing.example.com",
        ),
        (
            "sk_test_1",
            &["--store", "acct_1"],
            "the API key is not for it, but for acct_",
        ),
    ] {
        let failed = fail(content, more);
        assert!(failed.contains(expected), "{content} {more:?}: {failed}");
        assert!(!failed.contains("hush"), "{failed}");
    }
    let no_account = run_err(&service.variables, &["import", "stripe"]);
    assert!(
        no_account.contains("payment-account connect stripe"),
        "{no_account}"
    );
    let connected = [
        "payment-account",
        "connect",
        "stripe",
        "--api-key-file",
        &key,
    ];
    std::fs::write(&key, "sk_test_1").unwrap();
    let connected = run_ok(&service.variables, &connected);
    assert!(
        connected.contains("perennial import stripe --dry-run"),
        "{connected}"
    );
}
