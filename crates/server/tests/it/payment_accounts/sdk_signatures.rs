//! Notifications that the official SDK of Stripe signs, and Node's HMAC for Lemon Squeezy.
//!
//! The other direction, notifications that the stand-ins sign and the SDK verifies, is in
//! `tests/payment_providers/judges/*_webhooks.test.mjs`.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde::Serialize;

use super::{LEMON_SECRET, STRIPE_SECRET, TestAccount, lemon_event, subscription_event};
use crate::{architecture::crate_path, harness::service::InProcessService};

/// A request to sign, and the status that the service responds with.
#[derive(Serialize)]
struct SignedCase {
    name: &'static str,
    provider: &'static str,
    secrets: Vec<&'static str>,
    /// In Unix seconds.
    timestamp: i64,
    body: String,
    #[serde(skip)]
    status: u16,
}

/// Returns the signature header of each case.
fn sign(cases: &[SignedCase]) -> Vec<String> {
    let mut child = Command::new("node")
        .arg(crate_path("tests/payment_providers/signers/sign.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("node: {error}; run tools/setup"));
    let input = serde_json::to_vec(cases).unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns a signature in which one bit differs.
fn with_one_bit_off(header: &str) -> String {
    let (start, last) = header.split_at(header.len() - 1);
    let digit = u8::from_str_radix(last, 16).unwrap() ^ 1;
    format!("{start}{digit:x}")
}

async fn check(account: &TestAccount, cases: &[SignedCase]) {
    for (case, header) in cases.iter().zip(sign(cases)) {
        let (name, body) = (case.name, case.body.as_bytes());
        let response = account.send_with(&header, body).await;
        assert_eq!(response.status, case.status, "{name}: {}", response.text);
        if case.status == 200 {
            if case.secrets.len() == 1 {
                let changed = account.send_with(&with_one_bit_off(&header), body).await;
                assert_eq!(changed.status, 401, "{name}, one bit off");
            }
            let changed = [body, b" "].concat();
            let changed = account.send_with(&header, &changed).await;
            changed.assert_problem(401, "invalid_signature");
        }
    }
}

#[tokio::test]
async fn signatures_of_the_stripe_sdk_are_verified() {
    const NEW: &str = "whsec_second_secret";
    const OTHER: &str = "whsec_of_another_account";
    let service = InProcessService::start_in_process_with_fixed_clock().await;
    let (api, anonymous) = (service.api(&[]), service.anonymous());
    let account = TestAccount::stripe(&api, &anonymous).await;
    let other = TestAccount::stripe(&api, &anonymous).await;
    other.rotate(&api, OTHER).await;
    let now = service.server.app.clock.now().as_second();
    let case = |name, secrets: &[&'static str], timestamp, status| SignedCase {
        name,
        provider: "stripe",
        secrets: secrets.to_vec(),
        timestamp,
        body: subscription_event("evt_1", "sub_Zoë🌱").to_string(),
        status,
    };
    let cases = [
        case("valid", &[STRIPE_SECRET], now, 200),
        case("300 s old", &[STRIPE_SECRET], now - 300, 200),
        case("301 s old", &[STRIPE_SECRET], now - 301, 401),
        case("300 s ahead", &[STRIPE_SECRET], now + 300, 200),
        // The SDK itself accepts any time in the future.
        case("301 s ahead", &[STRIPE_SECRET], now + 301, 401),
        case("empty secret", &[""], now, 401),
        case("another account's secret", &[OTHER], now, 401),
        case("secret not known yet", &[NEW], now, 401),
        case(
            "two secrets, the first known",
            &[STRIPE_SECRET, NEW],
            now,
            200,
        ),
        case("two unknown secrets", &[OTHER, NEW], now, 401),
    ];
    check(&account, &cases).await;
    account.rotate(&api, NEW).await;
    let cases = [
        case("previous secret", &[STRIPE_SECRET], now, 200),
        case("new secret", &[NEW], now, 200),
        case("both secrets", &[STRIPE_SECRET, NEW], now, 200),
        case(
            "known secret between unknown ones",
            &[OTHER, STRIPE_SECRET, OTHER],
            now,
            200,
        ),
        case("neither secret", &[OTHER], now, 401),
    ];
    check(&account, &cases).await;
}

#[tokio::test]
async fn signatures_of_the_node_hmac_are_verified_for_lemon_squeezy() {
    const NEW: &str = "another-chosen-secret";
    let service = InProcessService::start_in_process().await;
    let (api, anonymous) = (service.api(&[]), service.anonymous());
    let account = TestAccount::lemon_squeezy(&api, &anonymous).await;
    let case = |name, secret, status| SignedCase {
        name,
        provider: "lemonsqueezy",
        secrets: vec![secret],
        timestamp: 0,
        body: lemon_event("order_created", "orders", "Zoë🌱").to_string(),
        status,
    };
    let cases = [
        case("valid", LEMON_SECRET, 200),
        case("empty secret", "", 401),
        case("secret not known yet", NEW, 401),
    ];
    check(&account, &cases).await;
    account.rotate(&api, NEW).await;
    let cases = [
        case("previous secret", LEMON_SECRET, 200),
        case("new secret", NEW, 200),
        case("neither secret", "a-third-secret", 401),
    ];
    check(&account, &cases).await;
}
