//! What `perennial import` prints and returns: its rate, failed and waiting objects. And an import into managed billing.

use serde_json::json;

use super::import::FullShop;
use crate::harness::process::{run, run_ok};

const IMPORT: [&str; 3] = ["import", "stripe", "--create-plans"];

#[tokio::test]
async fn failed_objects_are_named_and_set_the_exit_status() {
    let shop = FullShop::with_records("stripe", 12, 12).await;
    let list = shop.stand_in.stripe_get("subscriptions?limit=1").await;
    let id = list["data"][0]["id"].as_str().unwrap();
    let overrides = format!("/objects/{id}/overrides");
    let unknown = json!({"fields": {"status": "hibernating"}});
    shop.stand_in.post(&overrides, unknown).await;
    let output = run(&shop.service.variables, &IMPORT);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let failed = format!("{id} failed: subscription status: ");
    let waits = "1 object waits; the running service applies them when their plan, user or subscription appears";
    for expected in [failed.as_str(), waits, ": 24 objects in "] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "perennial: 1 object failed; repair the causes and run the import again\n";
    assert!(error.ends_with(expected), "{error}");

    // All others were applied, and so is this one when its cause is gone.
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 11);
    let repaired = json!({"fields": null});
    shop.stand_in.post(&overrides, repaired).await;
    let printed = run_ok(&shop.service.variables, &IMPORT);
    assert!(!printed.contains("failed:"), "{printed}");
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 12);
}

/// The payment provider charges what it reports, also in a tenant whose other subscriptions the service manages.
#[tokio::test]
async fn import_into_managed_billing_leaves_renewals_to_the_provider() {
    let shop = FullShop::with_records("stripe", 12, 24).await;
    let switch = ["tenant", "set", "--lifecycle", "managed"];
    run_ok(&shop.service.variables, &switch);
    let report = shop.import(&["--create-plans"]);
    assert_eq!(report["subscriptions"]["created"], 12, "{report}");
    let list = shop.service.api(&[]).get_json("/subscriptions").await;
    let subscriptions = list["data"].as_array().unwrap();
    assert_eq!(subscriptions.len(), 12);
    for subscription in subscriptions {
        assert_eq!(subscription["lifecycle"], "provider", "{subscription}");
        assert_eq!(subscription["credit"], json!(null), "{subscription}");
    }
    let entries = "SELECT count(*) FROM ledger_entries";
    assert_eq!(shop.count(entries).await, 0, "the service charges nothing");
    let payments = shop
        .count("SELECT count(*) FROM subscription_payments")
        .await;
    let created = report["invoices"]["created"].as_i64().unwrap();
    assert_eq!(payments, created);
    let again = shop.import(&["--create-plans"]);
    assert_eq!(again["subscriptions"]["unchanged"], 12, "{again}");
    assert_eq!(again["invoices"]["created"], 0, "{again}");
}

/// Statements that were planned for empty tables would read all rows of the tenant for each object.
#[tokio::test]
async fn tables_are_analyzed_after_the_first_page() {
    let shop = FullShop::with_records("stripe", 12, 12).await;
    let analyzed = "SELECT count(*) FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL
        AND relname IN ('users', 'subscriptions', 'subscription_payments', 'payment_objects')";
    shop.import(&["--create-plans", "--dry-run"]);
    assert_eq!(shop.count(analyzed).await, 0);
    shop.import(&["--create-plans"]);
    assert_eq!(shop.count(analyzed).await, 4);
}
