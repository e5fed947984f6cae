//! What a merchant expects of managed billing in everyday use.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    at,
    audit::instant,
    fixture::{Managed, START, minute},
};
use crate::harness::{merged, process::run};

#[tokio::test]
async fn won_dispute_on_old_payment_does_not_revive_a_late_subscription() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let payment = managed.pay(&record, 10.0).await;
    managed.advance("2027-02-02T12:00:00Z").await;
    managed
        .api
        .update(&payment, json!({"status": "disputed"}))
        .await;
    assert_eq!(
        managed.state(&record).await,
        "past_due, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit -10.00, due 20.00"
    );
    managed
        .api
        .update(&payment, json!({"status": "completed"}))
        .await;
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
    let record = managed.api.subscribe("pro", json!({})).await;
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
    // Kept after a refund.
    let refunded = managed
        .api
        .update(&fourth, json!({"status": "refunded"}))
        .await;
    assert_eq!(period(&refunded), period(&fourth));
    assert_eq!(
        minute(&managed.read(&record).await["paid_until"]),
        "2027-05-01T12:00"
    );
}

#[tokio::test]
async fn free_until_covers_time_without_charge() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 10.0).await;
    managed.advance("2027-02-20T12:00:00Z").await;
    assert_eq!(managed.read(&record).await["status"], "unpaid");
    let free_time = json!({"free_until": "2027-03-15T00:00:00Z"});
    let given = managed.api.update(&record, free_time).await;
    assert_eq!(minute(&given["free_until"]), "2027-03-15T00:00");
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-03-15T00:00, paid until 2027-03-15T00:00, credit 0.00, due 0.00"
    );
    managed.pay(&record, 10.0).await;
    managed.advance("2027-03-15T00:01:00Z").await;
    assert_eq!(
        managed.ledger(&record).await[2..],
        [
            "extension/free_until +0.00 = 0.00 2027-02-20 2027-03-15",
            "payment/payment +10.00 = 10.00",
            "period/renewal -10.00 = 0.00 2027-03-15 2027-04-15",
        ]
    );
    let together = json!({"free_until": "2027-06-01T00:00:00Z", "quantity": 2});
    let errors = ["/free_until inconsistent_dates"];
    managed.assert_rejected(&record, together, &errors).await;
    managed
        .api
        .update(&record, json!({"status": "paused"}))
        .await;
    let later = json!({"free_until": "2027-06-01T00:00:00Z"});
    let response = managed.send(&record, &later).await;
    response.assert_problem(409, "free_time_not_possible");
}

/// Payments in another currency have no entry, and a plan in another currency is rejected.
#[tokio::test]
async fn other_currencies_are_not_counted() {
    let managed = Managed::start().await;
    let euro = json!({"name": "Euro", "slug": "euro", "price": 10, "currency": "EUR", "billing_cycle": "monthly"});
    managed.api.create("/subscription-plans", &euro).await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let payment = managed
        .pay_with(&record, 10.0, json!({"currency": "EUR"}))
        .await;
    managed
        .api
        .update(&payment, json!({"status": "refunded"}))
        .await;
    assert!(managed.ledger(&record).await.is_empty());
    assert_eq!(managed.read(&record).await["status"], "pending");
    managed.pay(&record, 10.0).await;
    let body = json!({"subscription_plan_id": managed.api.plan_id("euro").await});
    let errors = ["/subscription_plan_id currency_mismatch"];
    managed.assert_rejected(&record, body, &errors).await;
}

/// A record that a client read before a renewal and writes back gives no time.
#[tokio::test]
async fn stale_record_sent_back_gives_no_time() {
    let managed = Managed::start().await;
    let unfunded = managed.subscribe_and_pay("pro", 10.0).await;
    let funded = managed.subscribe_and_pay("pro", 20.0).await;
    managed.advance("2027-01-31T12:00:00Z").await;
    let stale = [managed.read(&unfunded).await, managed.read(&funded).await];
    assert_eq!(stale[0]["status"], "active");
    // No worker has run: the record is what GET shows, so it changes nothing.
    managed.set_time("2027-02-01T12:01:00Z");
    let shown = managed.read(&unfunded).await;
    assert_eq!(managed.api.update(&unfunded, stale[0].clone()).await, shown);
    managed.service.server.catch_up().await;
    for (record, stale) in [&unfunded, &funded].into_iter().zip(stale) {
        let shown = managed.read(record).await;
        assert_eq!(managed.api.update(record, stale).await, shown);
    }
    assert_eq!(managed.ledger(&unfunded).await.len(), 2);
    assert_eq!(managed.ledger(&funded).await.len(), 3);
}

/// Reopening needs a payment, so it gives no new grace.
#[tokio::test]
async fn reopening_requires_payment() {
    let dunning = ["--unpaid-after", "14", "--expired-after", "20"];
    let managed = Managed::start_with(&dunning).await;
    let record = managed
        .api
        .subscribe("pro", json!({"status": "active"}))
        .await;
    for (now, expected) in [
        ("2027-01-15T11:59:00Z", "past_due"),
        ("2027-01-15T12:00:00Z", "unpaid"),
        ("2027-01-21T11:59:00Z", "unpaid"),
    ] {
        managed.advance(now).await;
        assert_eq!(managed.read(&record).await["status"], expected, "{now}");
    }
    managed.advance("2027-01-21T12:00:00Z").await;
    assert_eq!(
        managed.state(&record).await,
        "expired, no access, renews 2027-01-01T12:00, paid until 2027-01-01T12:00, credit 0.00, due 10.00"
    );
    let active = json!({"status": "active"});
    assert_eq!(managed.amount_due(&record, active.clone()).await, 10.0);
    let payment = managed.pay(&record, 10.0).await;
    assert_eq!(payment["period_starts_at"], Value::Null, "stays credit");
    assert_eq!(managed.read(&record).await["status"], "expired");
    let reopened = managed.api.update(&record, active).await;
    assert_eq!(reopened["ends_at"], Value::Null);
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-02-21T12:00, paid until 2027-02-21T12:00, credit 0.00, due 0.00"
    );
    assert_eq!(
        managed.ledger(&record).await,
        [
            "payment/payment +10.00 = 10.00",
            "period/reopen -10.00 = 0.00 2027-01-21 2027-02-21",
        ]
    );
}

/// A dispute takes what is not refunded, and a won dispute returns the same.
#[tokio::test]
async fn won_dispute_returns_what_the_dispute_took() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let payment = managed.pay(&record, 20.0).await;
    let partly = json!({"status": "partially_refunded", "refunded_amount": 5});
    managed.api.update(&payment, partly).await;
    for _ in 0..2 {
        managed
            .api
            .update(&payment, json!({"status": "disputed"}))
            .await;
        assert_eq!(
            managed.state(&record).await,
            "past_due, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit -10.00, due 10.00"
        );
        managed
            .api
            .update(&payment, json!({"status": "completed"}))
            .await;
        assert_eq!(
            managed.state(&record).await,
            "active, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 5.00, due 0.00"
        );
    }
    let round = [
        "refund/dispute -15.00 = -10.00",
        "payment/dispute_won +15.00 = 5.00",
    ];
    let mut expected = vec![
        "payment/payment +20.00 = 20.00",
        "period/start -10.00 = 10.00 2027-01-01 2027-02-01",
        "refund/refund -5.00 = 5.00",
    ];
    expected.extend(round.iter().chain(&round));
    assert_eq!(managed.ledger(&record).await, expected);
}

/// A client that sends its own reference as the provider's id sees that the service does not
/// manage the subscription, and so does the operator.
#[tokio::test]
async fn external_id_shows_as_provider_lifecycle() {
    let managed = Managed::start().await;
    let own = json!({"external_subscription_id": "order-7"});
    let record = managed.api.subscribe("pro", own).await;
    let check = |record: &Value| {
        assert_eq!(
            (&record["lifecycle"], &record["status"]),
            (&json!("provider"), &json!("active"))
        );
        for field in ["credit", "amount_due", "paid_until"] {
            assert_eq!(record[field], Value::Null, "{field}");
        }
    };
    check(&record);
    let payment = managed.pay(&record, 10.0).await;
    assert_eq!(payment["period_starts_at"], Value::Null);
    managed.advance("2027-01-20T12:00:00Z").await;
    check(&managed.read(&record).await);
    assert!(managed.entries(&record).await.is_empty());
    let doctor = run(&managed.service.variables, &["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let finding = "1 subscription with an external_subscription_id, not managed";
    assert!(doctor.contains(finding), "{doctor}");
    let removed = json!({"external_subscription_id": null});
    managed.api.update(&record, removed).await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-02-01T12:00, paid until 2027-02-01T12:00, credit 0.00, due 0.00"
    );
    assert_eq!(
        managed.ledger(&record).await,
        ["extension/managed +0.00 = 0.00 2027-01-20 2027-02-01"]
    );
    managed.advance("2027-02-01T12:01:00Z").await;
    assert_eq!(managed.read(&record).await["status"], "past_due");
}

/// What only managed billing rejects.
#[tokio::test]
async fn missing_price_date_or_refunded_amount_is_rejected() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 10.0).await;
    let payment = managed.pay(&record, 1.0).await;
    for (fields, error) in [
        (json!({"billing_cycle": "yearly"}), "/price required"),
        (json!({"status": "past_due"}), "/status inconsistent_status"),
        (json!({"status": "unpaid"}), "/status inconsistent_status"),
        (
            json!({"status": "on_trial"}),
            "/renews_at inconsistent_dates",
        ),
    ] {
        let required = json!({"user_id": record["user_id"], "subscription_plan_slug": "pro"});
        let body = merged(required, &fields).to_string();
        let response = managed.api.post("/subscriptions", &body).await;
        assert_eq!(response.status, 422, "{body}: {}", response.text);
        assert_eq!(response.field_errors(), [error], "{body}");
    }
    for (record, body, error) in [
        (
            &record,
            json!({"billing_cycle": "yearly"}),
            "/price required",
        ),
        (
            &payment,
            json!({"status": "partially_refunded"}),
            "/refunded_amount required",
        ),
    ] {
        managed.assert_rejected(record, body, &[error]).await;
    }
}

/// The base API's body always has a status and the next renewal. A client that sends it at each renewal, before
/// and after it records the payment, gives no free time and gets no error.
#[tokio::test]
async fn whole_body_at_each_renewal_gives_no_free_time() {
    let managed = Managed::start().await;
    let mut now = at("2027-01-31T12:00:00Z");
    managed.service.server.set_time(now);
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    let record = managed
        .api
        .subscribe("pro", json!({"status": "active"}))
        .await;
    let mut paid = 0;
    for number in 0..24 {
        let renewal = managed.read(&record).await["renews_at"].clone();
        now = instant(&renewal).unwrap() + days([0, 1, 9][number % 3]);
        managed.service.server.set_time(now);
        managed.service.server.catch_up().await;
        for pays in [true, false] {
            let shown = managed.read(&record).await;
            let body = json!({
                "user_id": shown["user_id"], "subscription_plan_id": shown["subscription_plan_id"],
                "billing_cycle": "monthly", "status": "active", "is_active": true,
                "renews_at": (now + days(30)).to_string(), "starts_at": shown["starts_at"], "ends_at": null,
            });
            let response = managed.send(&record, &body).await;
            assert_eq!(response.status, 200, "{number}: {}", response.text);
            assert_eq!(response.json(), shown, "{number}");
            if pays {
                managed.pay(&record, 10.0).await;
                paid += 1;
            }
        }
    }
    let ledger = managed.ledger(&record).await;
    let count = |kind: &str| {
        ledger
            .iter()
            .filter(|entry| entry.starts_with(kind))
            .count()
    };
    assert_eq!((count("payment/"), count("period/")), (paid, paid));
    assert_eq!(ledger.len(), 2 * paid, "{ledger:?}");
    assert_eq!(managed.read(&record).await["credit"], 0.0);
}
