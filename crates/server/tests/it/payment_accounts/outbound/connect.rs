//! `perennial payment-account connect` and `check`

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    payment_stand_in::{PaymentStandIn, TEST_KEY},
    process::{run_err, run_ok},
    service::Service,
    unique_name,
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
    let (service, _stand_in, key) = start("lemonsqueezy", "PERENNIAL_LEMON_SQUEEZY_API_BASE").await;
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
    run_ok(&service.variables, &["payment-account", "check", id]);
}

#[tokio::test]
async fn account_is_not_kept_if_its_webhook_cannot_be_created() {
    let (service, stand_in, key) = start("stripe", "PERENNIAL_STRIPE_API_BASE").await;
    let fault = json!({"kind": "status", "status": 500, "path": "/v1/webhook_endpoints"});
    stand_in.add_fault(fault).await;
    let connect = [
        "payment-account",
        "connect",
        "stripe",
        "--api-key-file",
        &key,
    ];
    let failed = run_err(&service.variables, &connect);
    assert!(failed.contains("cannot create the webhook"), "{failed}");
    let list = run_ok(&service.variables, &["payment-account", "list", "--json"]);
    assert_eq!(list.trim(), "");
}
