//! Commands to payment providers that cannot be sent.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::sync::lemon_squeezy::LemonShop,
    commands::{LIMIT, set_status, start},
};
use crate::{harness::wait_until, subscriptions::record_path};

#[tokio::test]
async fn command_is_postponed_if_the_api_key_cannot_be_opened() {
    let (shop, _, bought) = start().await;
    let corrupt = "UPDATE payment_accounts SET api_key = 'no sealed value'::bytea";
    shop.database.batch_execute(corrupt).await.unwrap();
    set_status(&shop, &bought, "", "cancelled").await;
    wait_until("three attempts fail", LIMIT, async || {
        let failed = "SELECT coalesce(max(attempts), 0)::bigint FROM payment_commands WHERE reason LIKE 'internal error%'";
        shop.count(failed).await >= 3
    })
    .await;
    let unstored = "SELECT max(lease_generation - attempts)::bigint FROM payment_commands WHERE leased_until IS NULL";
    assert!(shop.count(unstored).await <= 1, "each claim is an attempt");
}

#[tokio::test]
async fn limited_account_is_paused_with_all_its_commands() {
    let (shop, _, _) = start().await;
    let fault = json!({"kind": "status", "status": 429, "retry_after": 60, "path": "/v1/subscriptions/*", "method": "POST"});
    shop.stand_in.add_fault(fault).await;
    let requests = "/requests";
    let control = async |method| shop.stand_in.control(method, requests, Value::Null).await;
    control(Method::DELETE).await;
    let insert = "INSERT INTO payment_commands (tenant_id, account_id, external_id, command, next_attempt_at, created_at)
        SELECT tenant_id, id, 'sub_' || number, 'cancel', now(), now() FROM payment_accounts, generate_series(1, 100) AS number";
    shop.database.batch_execute(insert).await.unwrap();
    wait_until("an attempt fails", LIMIT, async || {
        let failed = "SELECT count(*) FROM payment_commands WHERE reason LIKE '%429%'";
        shop.count(failed).await > 0
    })
    .await;
    // Several times as long as the pause between two searches for commands.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let total = control(Method::GET).await["total"].as_i64().unwrap();
    assert!(total <= 16, "{total} requests, and 16 are sent at a time");
}

#[tokio::test]
async fn account_without_an_api_key_gets_no_command() {
    let shop = LemonShop::start(false).await;
    shop.buy("USD", 1_999).await;
    shop.settle().await;
    let list = shop.api.get_json("/subscriptions").await;
    let path = record_path(&list["data"][0]);
    let cancelled = shop.api.put(&path, r#"{"status": "cancelled"}"#).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    let accounts = shop.api.get_json("/payment-accounts").await;
    assert_eq!(accounts["data"][0]["pending_commands"], 0, "{accounts}");
}
