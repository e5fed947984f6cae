//! `/subscription-payments`

use perennial_domain::PaymentStatus;
use serde_json::{Value, json};

use crate::subscriptions::{SubscriptionFixture, record_path};

mod card_numbers;
mod list;

const PAYMENTS: &str = "/subscription-payments";

#[tokio::test]
async fn payment_is_stored_exactly() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let created = fixture
        .pay(
            &subscription,
            json!({"amount": "19.990", "currency": "usd"}),
        )
        .await;
    let expected = json!({
        "id": created["id"], "subscription_id": subscription["id"], "amount": 19.99, "currency": "USD",
        "external_payment_id": null, "status": "pending", "refunded_amount": 0.0, "paid_at": null, "failure_reason": null,
        "period_starts_at": null, "period_ends_at": null, "metadata": {}, "created_at": created["created_at"],
        "updated_at": created["created_at"],
    });
    assert_eq!(created, expected);
    let text = fixture.api.get(&record_path(&created)).await.text;
    assert!(
        text.contains("\"amount\":19.99,") && text.contains("\"refunded_amount\":0.00,"),
        "{text}"
    );
    for (currency, amount, shown) in [
        ("JPY", json!(1500), "1500"),
        ("KWD", json!(1.5), "1.500"),
        ("EUR", json!("1e2"), "100.00"),
    ] {
        let created = fixture
            .pay(
                &subscription,
                json!({"amount": amount, "currency": currency}),
            )
            .await;
        let text = fixture.api.get(&record_path(&created)).await.text;
        assert!(text.contains(&format!("\"amount\":{shown},")), "{text}");
    }
    assert_eq!(fixture.events(&created).await, ["payment.created"]);
    let words = PaymentStatus::ALL.map(|status| (status.as_str(), status));
    for (word, status) in words.into_iter().chain(PaymentStatus::ALIASES) {
        let created = fixture
            .pay(&subscription, json!({"status": word.to_uppercase()}))
            .await;
        assert_eq!(created["status"], status.as_str());
    }
}

/// Malformed input: 21, 22, 23, 25, 26, 27, 28, 29, 32.
#[tokio::test]
async fn all_invalid_fields_are_reported() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let id = subscription["id"].as_str().unwrap();
    let errors = async |body: &str| {
        let response = fixture.api.post(PAYMENTS, body).await;
        assert_eq!(response.status, 422, "{body}: {}", response.text);
        response.field_errors()
    };
    let all = [
        "/subscription_id required",
        "/currency required",
        "/amount required",
    ];
    assert_eq!(errors("{}").await, all);
    let body = r#"{"subscription_id": "pay_1", "amount": true, "currency": "DOGE", "external_payment_id": "", "status": "pay",
        "refunded_amount": "x"}"#;
    let several = [
        "/subscription_id invalid_id",
        "/currency unknown_value",
        "/amount wrong_type",
        "/external_payment_id blank",
        "/status unknown_value",
        "/refunded_amount invalid_format",
    ];
    assert_eq!(errors(body).await, several);
    for (amount, currency, code) in [
        ("-0.01", "USD", "out_of_range"),
        ("1e400", "USD", "out_of_range"),
        ("12345678901234567.89", "USD", "out_of_range"),
        ("0.005", "USD", "amount_scale_invalid"),
        ("0.5", "JPY", "amount_scale_invalid"),
        ("0.0005", "KWD", "amount_scale_invalid"),
        ("\"NaN\"", "USD", "invalid_format"),
    ] {
        let body = format!(
            r#"{{"subscription_id": "{id}", "amount": {amount}, "currency": "{currency}"}}"#
        );
        assert_eq!(errors(&body).await, [format!("/amount {code}")], "{amount}");
    }
    // The currency may differ from the plan's.
    let euros = fixture.pay(&subscription, json!({"currency": "eur"})).await;
    assert_eq!(euros["currency"], "EUR");
    let body = json!({"subscription_id": "sub_01920000000070008000000000000001", "amount": 1, "currency": "USD"});
    assert_eq!(
        errors(&body.to_string()).await,
        ["/subscription_id unknown_reference"]
    );
}

#[tokio::test]
async fn settled_payment_cannot_be_changed_or_deleted() {
    let fixture = SubscriptionFixture::start().await;
    let (one, other) = (
        fixture.subscribe(json!({})).await,
        fixture.subscribe(json!({})).await,
    );
    for status in PaymentStatus::ALL {
        let record = fixture.pay(&one, json!({"status": status.as_str()})).await;
        for (field, value) in [
            ("amount", json!(5.5)),
            ("currency", json!("EUR")),
            ("subscription_id", other["id"].clone()),
        ] {
            let mut body = record.clone();
            body[field] = value.clone();
            let response = fixture.put(&record, body).await;
            if status.is_settled() {
                response.assert_problem(409, "payment_settled");
                assert!(response.json()["detail"].as_str().unwrap().contains(field));
            } else {
                assert_eq!(
                    response.json()[field],
                    value,
                    "{status} {field}: {}",
                    response.text
                );
                let undone = json!({field: record[field]});
                assert_eq!(fixture.put(&record, undone).await.status, 200);
            }
        }
        if !status.is_settled() {
            let unknown = json!({"subscription_id": "sub_01920000000070008000000000000001"});
            let response = fixture.put(&record, unknown).await;
            assert_eq!(
                response.field_errors(),
                ["/subscription_id unknown_reference"]
            );
        }
        // The unchanged record, sent back, changes nothing.
        let shown = fixture.api.get(&record_path(&record)).await;
        let same = fixture.put(&record, shown.json()).await;
        assert_eq!(same.text, shown.text);
        let deleted = fixture.api.delete(&record_path(&record)).await;
        if status.is_settled() {
            deleted.assert_problem(409, "payment_settled");
        } else {
            assert_eq!(deleted.status, 204);
            for response in [
                fixture.api.get(&record_path(&record)).await,
                fixture.put(&record, json!({})).await,
                fixture.api.delete(&record_path(&record)).await,
            ] {
                response.assert_problem(404, "payment_not_found");
            }
        }
    }
}

#[tokio::test]
async fn refunded_amount_follows_the_status() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let record = fixture
        .pay(&subscription, json!({"status": "completed"}))
        .await;
    let part = fixture
        .put(
            &record,
            json!({"status": "partially_refunded", "refunded_amount": "5.00"}),
        )
        .await;
    assert_eq!(part.json()["refunded_amount"], 5.0);
    let failed = fixture.put(&record, json!({"status": "failed"})).await;
    failed.assert_problem(409, "invalid_transition");
    let allowed = json!(["completed", "refunded", "disputed"]);
    assert_eq!(failed.json()["allowed"], allowed);
    let more = fixture.put(&record, json!({"refunded_amount": 7.5})).await;
    assert_eq!(more.json()["refunded_amount"], 7.5);
    let too_much = fixture
        .put(&record, json!({"refunded_amount": 19.99}))
        .await;
    assert_eq!(too_much.field_errors(), ["/refunded_amount out_of_range"]);
    let all = fixture.put(&record, json!({"status": "refunded"})).await;
    assert_eq!(all.json()["refunded_amount"], 19.99);
    // Banks reject refunds.
    for status in ["refunded", "partially_refunded"] {
        let mut fields = json!({"status": status});
        if status == "partially_refunded" {
            fields["refunded_amount"] = json!(5);
        }
        fixture.put(&record, fields).await;
        let rejected = fixture.put(&record, json!({"status": "completed"})).await;
        assert_eq!(rejected.json()["refunded_amount"], 0.0, "{}", rejected.text);
    }
}

/// A payment reactivates a past-due or unpaid subscription when it is created as completed or becomes
/// completed, unless the subscription has an external id.
#[tokio::test]
async fn completed_payment_reactivates_the_subscription() {
    let fixture = SubscriptionFixture::start().await;
    for (status, external, first, expected) in [
        ("past_due", None, "paid", "active"),
        ("unpaid", None, "failed", "active"),
        ("past_due", Some("ext_1"), "paid", "past_due"),
    ] {
        let fields = json!({"status": status, "external_subscription_id": external});
        let subscription = fixture.subscribe(fields).await;
        let payment = fixture.pay(&subscription, json!({"status": first})).await;
        let completed = fixture.put(&payment, json!({"status": "completed"})).await;
        assert_eq!(completed.status, 200, "{}", completed.text);
        let after = fixture.api.get_json(&record_path(&subscription)).await;
        assert_eq!(after["status"], expected, "{status} {external:?}");
        let events = fixture.events(&subscription).await;
        assert_eq!(events.len(), 1 + usize::from(status != expected));
    }
}

/// `paid_at` is set when a payment settles, unless the client knows better.
#[tokio::test]
async fn payment_date_and_failure_reason_are_stored() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let settled = fixture
        .pay(&subscription, json!({"status": "completed"}))
        .await;
    assert_eq!(settled["paid_at"], settled["created_at"]);
    let imported = json!({"status": "completed", "paid_at": "2020-01-01T10:00:00+01:00"});
    let imported = fixture.pay(&subscription, imported).await;
    assert_eq!(imported["paid_at"], "2020-01-01T09:00:00.000000Z");
    let failed = json!({"status": "failed", "failure_reason": "insufficient_funds"});
    let failed = fixture.pay(&subscription, failed).await;
    assert_eq!(
        (&failed["failure_reason"], &failed["paid_at"]),
        (&json!("insufficient_funds"), &Value::Null)
    );
    let body = json!({"status": "completed", "failure_reason": null});
    let completed = fixture.put(&failed, body).await.json();
    assert_eq!(
        (&completed["failure_reason"], &completed["paid_at"]),
        (&Value::Null, &completed["updated_at"])
    );
    let future = json!({"paid_at": "2099-01-01T00:00:00Z"});
    let response = fixture.put(&failed, future).await;
    assert_eq!(response.field_errors(), ["/paid_at inconsistent_dates"]);
    let two_lines = json!({"failure_reason": "one\ntwo"});
    let response = fixture.put(&failed, two_lines).await;
    assert_eq!(response.status, 422, "{}", response.text);
}

#[tokio::test]
async fn duplicate_external_id_is_rejected() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let first = fixture
        .pay(&subscription, json!({"external_payment_id": "pi_1"}))
        .await;
    let body = json!({"subscription_id": subscription["id"], "amount": 1, "currency": "USD", "external_payment_id": "pi_1"});
    let again = fixture.api.post(PAYMENTS, &body.to_string()).await;
    again.assert_problem(409, "duplicate_external_id");
    assert_eq!(again.json()["existing_id"], first["id"]);
    let second = fixture.pay(&subscription, json!({})).await;
    let taken = fixture
        .put(&second, json!({"external_payment_id": "pi_1"}))
        .await;
    taken.assert_problem(409, "duplicate_external_id");
    assert_eq!(taken.json()["existing_id"], first["id"]);
    // With an idempotency key, the response is replayed instead.
    let keyed = fixture.api.with("idempotency-key", "k1");
    let body = json!({"subscription_id": subscription["id"], "amount": 1, "currency": "USD", "external_payment_id": "pi_2"});
    let one = keyed.post(PAYMENTS, &body.to_string()).await;
    let two = keyed.post(PAYMENTS, &body.to_string()).await;
    assert_eq!((one.status, two.status, &one.text), (201, 201, &two.text));
}

#[tokio::test]
async fn payments_of_a_subscription_are_paginated() {
    let fixture = SubscriptionFixture::start().await;
    let (subscription, other) = (
        fixture.subscribe(json!({})).await,
        fixture.subscribe(json!({})).await,
    );
    let mut created = Vec::new();
    for number in 0..7 {
        created.push(fixture.pay(&subscription, json!({"amount": number})).await);
    }
    fixture.pay(&other, json!({})).await;
    let deleted = created.remove(3);
    assert_eq!(fixture.api.delete(&record_path(&deleted)).await.status, 204);
    for (sort, newest) in [("created_at", false), ("-created_at", true)] {
        let path = format!("{}/payments", record_path(&subscription));
        let query = format!("sort={sort}");
        let mut expected = created.clone();
        if newest {
            expected.reverse();
        }
        assert_eq!(fixture.api.list_all(&path, &query, 2).await, expected);
        let first = format!("{path}?limit=2&{query}");
        let page = fixture.api.get_json(&first).await;
        let cursor = page["next_cursor"].as_str().unwrap();
        let foreign = format!(
            "{}/payments?limit=2&{query}&cursor={cursor}",
            record_path(&other)
        );
        assert_eq!(fixture.api.get(&foreign).await.problem(), "invalid_cursor");
    }
}
