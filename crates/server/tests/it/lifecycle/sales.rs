//! What a merchant expects of managed billing in everyday use.

use serde_json::{Value, json};

use super::fixture::{Managed, START, minute, state};
use crate::subscriptions::create_user;

/// The natural first sale: create with defaults, pay at once.
#[tokio::test]
async fn first_sale_with_defaults_gives_one_month() {
    let managed = Managed::start().await;
    let record = managed.subscribe("pro", json!({})).await;
    assert_eq!(
        state(&record),
        "pending, no access, renews -, paid until -, credit 0.00, due 10.00"
    );
    managed.pay(&record, 10.0).await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 0.00, due 0.00"
    );
    assert_eq!(
        managed.ledger(&record).await,
        [
            "payment/payment +10.00 = 10.00",
            "period/start -10.00 = 0.00 2027-01-01 2027-02-01"
        ]
    );
    managed.advance("2027-02-01T12:01:00Z").await;
    assert_eq!(managed.read(&record).await["status"], "past_due");
}

#[tokio::test]
async fn pending_subscription_paid_on_day_25_is_paid_for_a_month_from_then() {
    let managed = Managed::start().await;
    let record = managed.subscribe("pro", json!({})).await;
    managed.advance("2027-01-26T12:00:00Z").await;
    let payment = managed.pay(&record, 10.0).await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-02-26T12:00, paid until 2027-02-26T12:00, credit 0.00, due 0.00"
    );
    let read = managed.read(&record).await;
    assert_eq!(minute(&read["starts_at"]), "2027-01-26T12:00");
    assert_eq!(minute(&payment["period_starts_at"]), "2027-01-26T12:00");
    assert_eq!(minute(&payment["period_ends_at"]), "2027-02-26T12:00");
    // One that is never paid expires after 30 days.
    let unpaid = managed.subscribe("pro", json!({})).await;
    managed.advance("2027-02-25T11:59:00Z").await;
    assert_eq!(managed.read(&unpaid).await["status"], "pending");
    managed.advance("2027-02-25T12:00:00Z").await;
    assert_eq!(managed.read(&unpaid).await["status"], "expired");
}

#[tokio::test]
async fn won_dispute_on_old_payment_does_not_revive_a_late_subscription() {
    let managed = Managed::start().await;
    let record = managed.subscribe("pro", json!({})).await;
    let payment = managed.pay(&record, 10.0).await;
    managed.advance("2027-02-02T12:00:00Z").await;
    managed.put(&payment, json!({"status": "disputed"})).await;
    assert_eq!(
        managed.state(&record).await,
        "past_due, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit -10.00, due 20.00"
    );
    managed.put(&payment, json!({"status": "completed"})).await;
    assert_eq!(
        managed.state(&record).await,
        "past_due, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 0.00, due 10.00"
    );
    managed.advance("2027-02-08T12:01:00Z").await;
    assert_eq!(managed.read(&record).await["status"], "unpaid");
    assert_eq!(managed.ledger(&record).await.len(), 4);
}

/// GET on the payment says what it paid for, and GET on the subscription until when is paid.
#[tokio::test]
async fn payment_shows_the_time_that_it_paid_for() {
    let managed = Managed::start().await;
    let record = managed.subscribe("pro", json!({})).await;
    let three_months = managed.pay(&record, 30.0).await;
    let period = |payment: &Value| {
        (
            minute(&payment["period_starts_at"]),
            minute(&payment["period_ends_at"]),
        )
    };
    let months = |start: &str, end: &str| (format!("{start}T12:00"), format!("{end}T12:00"));
    let read = managed.read(&three_months).await;
    assert_eq!(read, three_months);
    assert_eq!(period(&read), months("2027-01-01", "2027-04-01"));
    assert_eq!(minute(&read["paid_at"]), "2027-01-01T12:00");
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-02-01T12:00, paid until 2027-04-01T12:00, credit 20.00, due 0.00"
    );
    let shown = managed.read(&record).await;
    assert_eq!(minute(&shown["current_period_starts_at"]), &START[..16]);
    assert_eq!(minute(&shown["current_period_ends_at"]), "2027-02-01T12:00");
    let fourth = managed.pay(&record, 10.0).await;
    assert_eq!(period(&fourth), months("2027-04-01", "2027-05-01"));
    let part = managed.pay(&record, 4.0).await;
    assert_eq!(period(&part), ("-".to_owned(), "-".to_owned()));
    let rest = managed.pay(&record, 6.0).await;
    assert_eq!(period(&rest), months("2027-05-01", "2027-06-01"));
    // Kept after a refund. `paid_at` is a note for the books.
    let refunded = managed.put(&fourth, json!({"status": "refunded"})).await;
    assert_eq!(period(&refunded), period(&fourth));
    assert_eq!(
        minute(&managed.read(&record).await["paid_until"]),
        "2027-05-01T12:00"
    );
    let imported = json!({"paid_at": "2026-06-01T00:00:00Z"});
    let imported = managed.pay_with(&record, 10.0, imported).await;
    assert_eq!(period(&imported), months("2027-05-01", "2027-06-01"));
    assert_eq!(minute(&imported["paid_at"]), "2026-06-01T00:00");
    let failed = json!({"status": "failed", "failure_reason": "card_declined"});
    let failed = managed.pay_with(&record, 10.0, failed).await;
    assert_eq!(
        (&failed["failure_reason"], &failed["paid_at"]),
        (&json!("card_declined"), &Value::Null)
    );
    let future = json!({"subscription_id": record["id"], "amount": 1, "currency": "USD", "paid_at": "2027-01-02T00:00:00Z"});
    let response = managed
        .api
        .post("/subscription-payments", &future.to_string())
        .await;
    assert_eq!(response.field_errors(), ["/paid_at inconsistent_dates"]);
}

#[tokio::test]
async fn suspension_is_visible_and_changes_no_billing() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 20.0).await;
    let suspended = managed.put(&record, json!({"is_active": false})).await;
    assert_eq!(
        (
            &suspended["suspended"],
            &suspended["status"],
            &suspended["is_active"]
        ),
        (&json!(true), &json!("active"), &json!(false))
    );
    managed.advance("2027-02-01T12:01:00Z").await;
    assert_eq!(managed.read(&record).await["suspended"], true);
    assert_eq!(
        managed.state(&record).await,
        "active, no access, renews 2027-03-01T12:00, paid until 2027-03-01T12:00, credit 0.00, due 0.00"
    );
    let lifted = managed.put(&record, json!({"is_active": true})).await;
    assert_eq!(
        (&lifted["suspended"], &lifted["is_active"]),
        (&json!(false), &json!(true))
    );
}

#[tokio::test]
async fn lifetime_subscription_cannot_be_canceled() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("lifetime", 300.0).await;
    let expected = "active, access, renews -, paid until -, credit 0.00, due 0.00";
    assert_eq!(managed.state(&record).await, expected);
    let response = managed.send(&record, &json!({"status": "cancelled"})).await;
    response.assert_problem(409, "invalid_transition");
    assert_eq!(response.json()["allowed"], json!(["expired"]));
    managed.advance("2037-01-01T00:00:00Z").await;
    assert_eq!(managed.state(&record).await, expected);
    assert_eq!(
        managed.ledger(&record).await,
        [
            "payment/payment +300.00 = 300.00",
            "period/start -300.00 = 0.00 2027-01-01 -"
        ]
    );
}

#[tokio::test]
async fn existing_subscribers_move_to_a_new_price() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 20.0).await;
    let special = managed.subscribe_and_pay("pro", 20.0).await;
    let raised = r#"{"price": 15}"#;
    let response = managed.api.put("/subscription-plans/pro", raised).await;
    assert_eq!(response.status, 200, "{}", response.text);
    assert_eq!(managed.read(&record).await["price"], 10.0);
    // From the next period that is not paid yet.
    let moved = managed.put(&record, json!({"price": null})).await;
    assert_eq!(moved["price"], 15.0);
    assert_eq!(
        state(&moved),
        "active, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 10.00, due 0.00"
    );
    let moved = managed.put(&special, json!({"price": 8.5})).await;
    assert_eq!(moved["price"], 8.5);
    managed.advance("2027-02-01T12:01:00Z").await;
    assert_eq!(
        managed.state(&record).await,
        "past_due, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 10.00, due 5.00"
    );
    assert_eq!(
        managed.state(&special).await,
        "active, access, renews 2027-03-01T12:00, paid until 2027-03-01T12:00, credit 1.50, due 0.00"
    );
    let last = managed.ledger(&special).await.pop().unwrap();
    assert_eq!(last, "period/renewal -8.50 = 1.50 2027-02-01 2027-03-01");
    // A lower price also applies to the open period.
    managed.put(&record, json!({"price": 10})).await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-03-01T12:00, paid until 2027-03-01T12:00, credit 0.00, due 0.00"
    );
}

#[tokio::test]
async fn active_with_a_future_start_is_accepted() {
    let managed = Managed::start().await;
    let start = json!({"is_active": true, "starts_at": "2027-01-10T12:00:00Z"});
    let default = managed.subscribe("pro", start.clone()).await;
    assert_eq!(default["status"], "pending");
    let mut active = start.clone();
    active["status"] = json!("active");
    let scheduled = managed.subscribe("pro", active).await;
    assert_eq!(
        (&scheduled["status"], &scheduled["is_active"]),
        (&json!("active"), &json!(false))
    );
    let free = managed.subscribe("free", start).await;
    for record in [&default, &scheduled] {
        managed.pay(record, 10.0).await;
    }
    managed.advance("2027-01-10T11:59:00Z").await;
    for record in [&default, &scheduled, &free] {
        assert_eq!(managed.read(record).await["is_active"], false);
    }
    managed.advance("2027-01-10T12:01:00Z").await;
    for record in [&default, &scheduled] {
        assert_eq!(
            managed.state(record).await,
            "active, access, renews 2027-02-10T12:00, paid until 2027-02-10T12:00, credit 0.00, due 0.00"
        );
    }
    assert_eq!(managed.read(&free).await["is_active"], true);
}

/// A refund takes credit. A period that has started stays, and what credit lacks is waived.
#[tokio::test]
async fn refund_takes_credit_and_leaves_the_started_period() {
    let managed = Managed::start().await;
    let record = managed.subscribe("pro", json!({})).await;
    let payment = managed.pay(&record, 15.0).await;
    let part = json!({"status": "partially_refunded", "refunded_amount": 3});
    managed.put(&payment, part).await;
    let unknown = managed.pay(&record, 1.0).await;
    let errors = ["/refunded_amount required"];
    let body = json!({"status": "partially_refunded"});
    managed.assert_rejected(&unknown, body, &errors).await;
    managed.put(&unknown, json!({"status": "refunded"})).await;
    managed.put(&payment, json!({"status": "refunded"})).await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 0.00, due 0.00"
    );
    assert_eq!(
        managed.ledger(&record).await,
        [
            "payment/payment +15.00 = 15.00",
            "period/start -10.00 = 5.00 2027-01-01 2027-02-01",
            "refund/refund -3.00 = 2.00",
            "payment/payment +1.00 = 3.00",
            "refund/refund -1.00 = 2.00",
            "refund/refund -12.00 = -10.00",
            "waiver/waiver +10.00 = 0.00",
        ]
    );
}

/// Free time is a trial or a moved `renews_at`.
#[tokio::test]
async fn moved_renewal_covers_time_without_charge() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 10.0).await;
    managed.advance("2027-02-20T12:00:00Z").await;
    assert_eq!(managed.read(&record).await["status"], "unpaid");
    let extension = json!({"renews_at": "2027-03-15T00:00:00Z"});
    managed.put(&record, extension).await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-03-15T00:00, paid until 2027-03-15T00:00, credit 0.00, due 0.00"
    );
    managed.pay(&record, 10.0).await;
    managed.advance("2027-03-15T00:01:00Z").await;
    assert_eq!(
        managed.ledger(&record).await[2..],
        [
            "extension/moved_renewal +0.00 = 0.00 2027-02-20 2027-03-15",
            "payment/payment +10.00 = 10.00",
            "period/renewal -10.00 = 0.00 2027-03-15 2027-04-15",
        ]
    );
    let together = json!({"renews_at": "2027-06-01T00:00:00Z", "quantity": 2});
    let errors = ["/renews_at inconsistent_dates"];
    managed.assert_rejected(&record, together, &errors).await;
}

/// Payments in another currency have no entry, and a plan in another currency is rejected.
#[tokio::test]
async fn other_currencies_are_not_counted() {
    let managed = Managed::start().await;
    let euro = json!({"name": "Euro", "slug": "euro", "price": 10, "currency": "EUR", "billing_cycle": "monthly"});
    managed.api.create("/subscription-plans", &euro).await;
    let record = managed.subscribe("pro", json!({})).await;
    let payment = managed
        .pay_with(&record, 10.0, json!({"currency": "EUR"}))
        .await;
    managed.put(&payment, json!({"status": "refunded"})).await;
    assert!(managed.ledger(&record).await.is_empty());
    assert_eq!(managed.read(&record).await["status"], "pending");
    managed.pay(&record, 10.0).await;
    let body = json!({"subscription_plan_id": managed.plan("euro").await});
    let errors = ["/subscription_plan_id currency_mismatch"];
    managed.assert_rejected(&record, body, &errors).await;
}

/// A deleted account's credit stays in the ledger.
#[tokio::test]
async fn ended_subscription_keeps_its_credit() {
    let managed = Managed::start().await;
    let user = create_user(&managed.api, "ada@example.com").await;
    let record = managed.subscribe_user(&user, "pro", json!({})).await;
    managed.pay(&record, 30.0).await;
    managed.put(&record, json!({"status": "expired"})).await;
    assert_eq!(
        managed.state(&record).await,
        "expired, no access, renews 2027-02-01T12:00, paid until 2027-04-01T12:00, credit 20.00, due 0.00"
    );
    let other = managed.subscribe_user(&user, "pro", json!({})).await;
    assert_eq!(other["credit"], 0.0);
}
