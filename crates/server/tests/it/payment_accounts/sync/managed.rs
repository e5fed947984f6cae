//! Payment accounts of a tenant with managed billing.

use serde_json::json;

use super::StripeShop;
use crate::{harness::process::run_ok, subscriptions::record_path};

#[tokio::test]
async fn provider_runs_its_subscriptions_in_a_managed_tenant() {
    let shop = StripeShop::start().await;
    let managed = ["tenant", "set", "--lifecycle", "managed"];
    run_ok(&shop.service.variables, &managed);
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let record = shop.subscription(&id).await;
    assert_eq!(record["lifecycle"], "provider", "{record}");
    assert_eq!(record["status"], "active");
    assert!(record["paid_until"].is_null(), "{record}");
    // The payment does not become credit, so nothing is charged here.
    let ledger = format!("{}/ledger", record_path(&record));
    let ledger = shop.api.get_json(&ledger).await;
    assert_eq!(ledger["data"], json!([]), "{ledger}");
    assert_eq!(shop.count("SELECT count(*) FROM ledger_entries").await, 0);
    // A missing payment is reported by the provider.
    let path = format!("/subscriptions/{id}/renew");
    shop.stand_in.post(&path, json!({"outcome": "fail"})).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "past_due");
}
