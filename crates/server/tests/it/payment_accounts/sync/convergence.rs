//! Random histories of subscriptions at Stripe, with notifications that are late, repeated, lost and out of order, two
//! instances, and workers that are killed. The records must end as the payment provider's objects are.

use std::collections::BTreeMap;

use perennial::randomness::Randomness;
use serde_json::{Value, json};

use super::{StripeShop, id_of};
use crate::{
    harness::{env_number, process::Server},
    lifecycle::simulation::SplitMix64,
};

/// Subscriptions whose histories run at the same time.
const BATCH: usize = 10;
const STEPS: u64 = 60;

/// Changes a subscription in a random way. A change that the present state does not allow has no effect.
async fn change(shop: &StripeShop, dice: &mut SplitMix64, id: &str, prices: &[String]) {
    let subscription = shop.object(id).await;
    let (status, invoice) = (&subscription["status"], &subscription["latest_invoice"]);
    let invoice = invoice.as_str().unwrap();
    let path = format!("/subscriptions/{id}");
    let object = format!("subscriptions/{id}");
    let is_live = ["active", "trialing", "past_due"].contains(&status.as_str().unwrap());
    match dice.below(12) {
        0 | 1 if is_live => {
            let body = json!({"outcome": "succeed"});
            shop.stand_in.post(&format!("{path}/renew"), body).await;
        }
        2 if is_live => {
            let body = json!({"outcome": "fail"});
            shop.stand_in.post(&format!("{path}/renew"), body).await;
        }
        3 if status == "past_due" => {
            let recover = format!("{path}/recover");
            try_post(shop, &recover, json!({})).await;
        }
        4 if is_live => {
            let item = subscription["items"]["data"][0]["id"].as_str().unwrap();
            let price = dice.pick(prices);
            let quantity = (1 + dice.below(3)).to_string();
            let form = [
                ("items[0][id]", item),
                ("items[0][price]", &price),
                ("items[0][quantity]", &quantity),
                ("proration_behavior", "none"),
            ];
            shop.stand_in.stripe(&object, &form).await;
        }
        5 if is_live => {
            let form = [("pause_collection[behavior]", "void")];
            shop.stand_in.stripe(&object, &form).await;
        }
        6 if is_live => {
            shop.stand_in
                .stripe(&object, &[("pause_collection", "")])
                .await;
        }
        7 if is_live => {
            let scheduled = dice.below(2) == 0;
            let form = [(
                "cancel_at_period_end",
                if scheduled { "true" } else { "false" },
            )];
            shop.stand_in.stripe(&object, &form).await;
        }
        8 | 9 => {
            let refund = format!("/invoices/{invoice}/refund");
            let amount = 100 + dice.below(400);
            try_post(shop, &refund, json!({ "amount": amount })).await;
        }
        10 => {
            let dispute = format!("/invoices/{invoice}/dispute");
            if let Some(dispute) = try_post(shop, &dispute, json!({})).await {
                let outcome = dice.pick(&["", "won", "lost"]);
                if !outcome.is_empty() {
                    let close = format!("/disputes/{}/close", id_of(&dispute));
                    shop.stand_in.post(&close, json!({"status": outcome})).await;
                }
            }
        }
        11 if is_live && dice.below(4) == 0 => {
            shop.stand_in
                .post(&format!("{path}/cancel"), json!({}))
                .await;
        }
        _ => {}
    }
}

/// Sends a request to the control API that the present state may not allow.
async fn try_post(shop: &StripeShop, path: &str, body: Value) -> Option<Value> {
    let url = format!("{}/_control{path}", shop.stand_in.url);
    let request = reqwest::Client::new().post(url).body(body.to_string());
    let response = request.send().await.unwrap();
    let is_accepted = response.status().is_success();
    let value: Value = response.json().await.unwrap();
    is_accepted.then_some(value)
}

/// Delivers some of the queued notifications in a random order, some of them twice, and loses some.
async fn deliver_some(shop: &StripeShop, dice: &mut SplitMix64) {
    let mut queued = shop.stand_in.notifications("queued").await;
    dice.shuffle(&mut queued);
    let lost: Vec<String> = { queued.iter() }
        .filter(|_| dice.below(6) == 0)
        .cloned()
        .collect();
    let drop = json!({ "ids": lost });
    shop.stand_in.post("/notifications/drop", drop).await;
    queued.retain(|id| !lost.contains(id));
    queued.truncate(queued.len() / 2 + 1);
    let repeated: Vec<String> = { queued.iter() }
        .filter(|_| dice.below(5) == 0)
        .cloned()
        .collect();
    queued.extend(repeated);
    dice.shuffle(&mut queued);
    shop.stand_in.deliver(&queued).await;
}

/// Returns the status that a subscription must have.
fn expected_status(subscription: &Value) -> &'static str {
    let is_void = subscription["pause_collection"]["behavior"] == "void";
    let is_scheduled =
        subscription["cancel_at_period_end"] == true || !subscription["cancel_at"].is_null();
    match subscription["status"].as_str().unwrap() {
        "active" | "past_due" | "trialing" if is_void => "paused",
        "active" | "trialing" if is_scheduled => "cancelled",
        "active" => "active",
        "trialing" => "on_trial",
        "past_due" => "past_due",
        "unpaid" => "unpaid",
        "incomplete" => "pending",
        "canceled" | "incomplete_expired" => "expired",
        other => panic!("{other}"),
    }
}

/// Returns the payments that the invoices of a subscription must have: status, amount and refunded amount in cents.
async fn expected_payments(
    shop: &StripeShop,
    id: &str,
) -> BTreeMap<String, (&'static str, i64, i64)> {
    let list = format!("invoices?subscription={id}&limit=100");
    let invoices = shop.stand_in.stripe_get(&list).await;
    let mut expected = BTreeMap::new();
    for invoice in invoices["data"].as_array().unwrap() {
        let is_paid = invoice["status"] == "paid";
        let field = if is_paid { "amount_paid" } else { "amount_due" };
        let total = invoice[field].as_i64().unwrap();
        if total == 0 {
            continue;
        }
        let mut refunded = 0;
        let mut status = match invoice["status"].as_str().unwrap() {
            "paid" => "completed",
            "open" if invoice["attempted"] == true => "failed",
            "open" | "draft" => "pending",
            "void" => "void",
            "uncollectible" => "failed",
            other => panic!("{other}"),
        };
        if status == "completed" {
            let charge = invoice["charge"].as_str().unwrap();
            let charged = shop.stand_in.stripe_get(&format!("charges/{charge}")).await;
            refunded = charged["amount_refunded"].as_i64().unwrap().min(total);
            let list = format!("disputes?charge={charge}&limit=100");
            let disputes = shop.stand_in.stripe_get(&list).await;
            let disputes = disputes["data"].as_array().unwrap();
            let has = |status: &str| disputes.iter().any(|dispute| dispute["status"] == status);
            if has("needs_response") {
                status = "disputed";
            } else if has("lost") || refunded == total {
                status = "refunded";
                refunded = total;
            } else if refunded > 0 {
                status = "partially_refunded";
            }
        }
        expected.insert(id_of(invoice), (status, total, refunded));
    }
    expected
}

/// Runs histories until all of them have ended, and compares the records with the payment provider's objects.
async fn run_batch(
    shop: &mut StripeShop,
    other: &mut Server,
    dice: &mut SplitMix64,
    number: usize,
) {
    let prices = [
        shop.create_plan(&format!("basic-{number}")).await,
        shop.create_plan(&format!("pro-{number}")).await,
    ];
    let mut subscriptions = Vec::new();
    for index in 0..BATCH {
        let email = format!("customer-{number}-{index}@example.com");
        let customer = shop.create_customer(&email).await;
        if dice.below(4) == 0 {
            // Pays the first invoice, and a part of the second one.
            let balance = [("balance", "-2500")];
            let object = format!("customers/{customer}");
            shop.stand_in.stripe(&object, &balance).await;
        }
        let trial = [("trial_period_days", "7")];
        let more: &[(&str, &str)] = if dice.below(4) == 0 { &trial } else { &[] };
        let price = dice.pick(&prices);
        subscriptions.push(shop.subscribe(&customer, &price, more).await);
    }
    for step in 0..STEPS {
        let id = dice.pick(&subscriptions);
        change(shop, dice, &id, &prices).await;
        if dice.below(3) == 0 {
            deliver_some(shop, dice).await;
        }
        if step % 20 == 10 {
            let variables = shop.service.variables.clone();
            if dice.below(2) == 0 {
                shop.service.server.restart(&variables).await;
            } else {
                other.restart(&variables).await;
            }
        }
    }
    deliver_some(shop, dice).await;
    // A reconcile names each object once more, so that lost notifications do not matter.
    let mode = json!({"mode": "send"});
    shop.stand_in.post("/notifications/mode", mode).await;
    for id in &subscriptions {
        shop.emit("customer.subscription.updated", id).await;
        for invoice in expected_payments(shop, id).await.keys() {
            shop.emit("invoice.updated", invoice).await;
        }
    }
    shop.stand_in.post("/notifications/retry", json!({})).await;
    shop.settle().await;
    for id in &subscriptions {
        compare(shop, id).await;
    }
}

async fn compare(shop: &StripeShop, id: &str) {
    let object = shop.object(id).await;
    let record = shop.subscription(id).await;
    assert_eq!(record["status"], expected_status(&object), "{object}");
    let item = &object["items"]["data"][0];
    assert_eq!(record["quantity"], item["quantity"], "{id}");
    let query =
        "SELECT payment.external_id, payment.status, amount_minor, coalesce(refunded_minor, 0)
        FROM subscription_payments AS payment JOIN subscriptions AS subscription
            ON subscription.id = payment.subscription_id
        WHERE subscription.external_id = $1";
    let rows = shop.database.query(query, &[&id]).await.unwrap();
    let expected = expected_payments(shop, id).await;
    assert_eq!(rows.len(), expected.len(), "each payment once: {id}");
    for row in rows {
        let invoice: String = row.get(0);
        let actual: (String, i64, i64) = (row.get(1), row.get(2), row.get(3));
        let (status, total, refunded) = expected[&invoice];
        assert_eq!(actual, (status.to_owned(), total, refunded), "{invoice}");
    }
}

/// `SYNC_CASES` sets the number of histories, `SYNC_SEED` repeats a failed run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_converge_however_notifications_arrive() {
    let cases: usize = env_number("SYNC_CASES").unwrap_or(20);
    let seed = env_number("SYNC_SEED").unwrap_or_else(|| u64::from_le_bytes(Randomness.bytes()));
    println!("SYNC_SEED={seed}");
    let mut dice = SplitMix64(seed);
    let mut shop = StripeShop::start().await;
    let mut other = Server::start(&shop.service.variables).await;
    for number in 0..cases.div_ceil(BATCH) {
        shop.stand_in.queue_notifications().await;
        run_batch(&mut shop, &mut other, &mut dice, number).await;
    }
    // One event per change: no update without a difference, and one creation per record.
    let empty =
        "SELECT count(*) FROM events WHERE kind IN ('subscription.updated', 'payment.updated')
        AND data->'previous' = '{}'";
    assert_eq!(shop.count(empty).await, 0);
    for (kind, table) in [
        ("subscription.created", "subscriptions"),
        ("payment.created", "subscription_payments"),
        ("user.created", "users"),
    ] {
        let created = format!("SELECT count(*) FROM events WHERE kind = '{kind}'");
        let stored = format!("SELECT count(*) FROM {table}");
        assert_eq!(
            shop.count(&created).await,
            shop.count(&stored).await,
            "{kind}"
        );
    }
}
