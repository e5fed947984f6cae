//! `/subscription-payments`

use perennial_domain::PaymentStatus;
use serde_json::{Value, json};

use crate::{
    harness::api::Answer,
    subscriptions::{Stage, path_of},
};

const PAYMENTS: &str = "/subscription-payments";

async fn put(stage: &Stage, record: &Value, body: Value) -> Answer {
    stage.caller.put(&path_of(record), &body.to_string()).await
}

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (status, code),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn recorded_exactly() {
    let stage = Stage::start().await;
    let subscription = stage.subscribe(json!({})).await;
    let made = stage
        .pay(
            &subscription,
            json!({"amount": "19.990", "currency": "usd"}),
        )
        .await;
    let expected = json!({
        "id": made["id"], "subscription_id": subscription["id"], "amount": 19.99, "currency": "USD",
        "external_payment_id": null, "status": "pending", "refunded_amount": 0.0, "created_at": made["created_at"],
        "updated_at": made["created_at"],
    });
    assert_eq!(made, expected);
    let text = stage.caller.get(&path_of(&made)).await.text;
    assert!(
        text.contains("\"amount\":19.99,") && text.contains("\"refunded_amount\":0.00,"),
        "{text}"
    );
    for (currency, amount, shown) in [
        ("JPY", json!(1500), "1500"),
        ("KWD", json!(1.5), "1.500"),
        ("EUR", json!("1e2"), "100.00"),
    ] {
        let made = stage
            .pay(
                &subscription,
                json!({"amount": amount, "currency": currency}),
            )
            .await;
        let text = stage.caller.get(&path_of(&made)).await.text;
        assert!(text.contains(&format!("\"amount\":{shown},")), "{text}");
    }
    assert_eq!(stage.events(&made).await, ["payment.created"]);
    let words = PaymentStatus::ALL.map(|status| (status.as_str(), status));
    for (word, status) in words.into_iter().chain(PaymentStatus::ALIASES) {
        let made = stage
            .pay(&subscription, json!({"status": word.to_uppercase()}))
            .await;
        assert_eq!(made["status"], status.as_str());
    }
}

/// Catalogue: 21, 22, 23, 25, 26, 27, 28, 29, 32.
#[tokio::test]
async fn everything_that_is_wrong_at_once() {
    let stage = Stage::start().await;
    let subscription = stage.subscribe(json!({})).await;
    let id = subscription["id"].as_str().unwrap();
    let errors = async |body: &str| {
        let answer = stage.caller.post(PAYMENTS, body).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.text);
        answer.field_errors()
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
    // Another currency than the plan's is what was paid in.
    let euros = stage.pay(&subscription, json!({"currency": "eur"})).await;
    assert_eq!(euros["currency"], "EUR");
    let body = json!({"subscription_id": "sub_01920000000070008000000000000001", "amount": 1, "currency": "USD"});
    assert_eq!(
        errors(&body.to_string()).await,
        ["/subscription_id unknown_reference"]
    );
}

/// Catalogue: 52.
#[tokio::test]
async fn the_table_of_transitions() {
    let stage = Stage::start().await;
    let subscription = stage.subscribe(json!({})).await;
    for from in PaymentStatus::ALL {
        for to in PaymentStatus::ALL.into_iter().filter(|to| *to != from) {
            let record = stage
                .pay(&subscription, json!({"status": from.as_str()}))
                .await;
            let answer = put(&stage, &record, json!({"status": to.as_str()})).await;
            if from.may_become().contains(&to) {
                assert_eq!(answer.status, 200, "{from} to {to}: {}", answer.text);
                assert_eq!(answer.json()["status"], to.as_str());
            } else {
                refused(&answer, 409, "invalid_transition");
                let allowed: Vec<&str> = from.may_become().iter().map(|to| to.as_str()).collect();
                let told = answer.json()["allowed"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                assert_eq!(told, allowed);
                assert_eq!(stage.caller.get(&path_of(&record)).await.json(), record);
            }
        }
    }
}

#[tokio::test]
async fn frozen_once_money_has_come() {
    let stage = Stage::start().await;
    let (one, other) = (
        stage.subscribe(json!({})).await,
        stage.subscribe(json!({})).await,
    );
    for status in PaymentStatus::ALL {
        let record = stage.pay(&one, json!({"status": status.as_str()})).await;
        for (field, value) in [
            ("amount", json!(5.5)),
            ("currency", json!("EUR")),
            ("subscription_id", other["id"].clone()),
        ] {
            let mut body = record.clone();
            body[field] = value.clone();
            let answer = put(&stage, &record, body).await;
            if status.is_settled() {
                refused(&answer, 409, "payment_settled");
                assert!(answer.json()["detail"].as_str().unwrap().contains(field));
            } else {
                assert_eq!(
                    answer.json()[field],
                    value,
                    "{status} {field}: {}",
                    answer.text
                );
                let undone = json!({field: record[field]});
                assert_eq!(put(&stage, &record, undone).await.status, 200);
            }
        }
        if !status.is_settled() {
            let nobody = json!({"subscription_id": "sub_01920000000070008000000000000001"});
            let answer = put(&stage, &record, nobody).await;
            assert_eq!(
                answer.field_errors(),
                ["/subscription_id unknown_reference"]
            );
        }
        // What is shown, sent back, changes nothing.
        let shown = stage.caller.get(&path_of(&record)).await;
        let same = put(&stage, &record, shown.json()).await;
        assert_eq!(same.text, shown.text);
        let deleted = stage.caller.delete(&path_of(&record)).await;
        if status.is_settled() {
            refused(&deleted, 409, "payment_settled");
        } else {
            assert_eq!(deleted.status, 204);
            for answer in [
                stage.caller.get(&path_of(&record)).await,
                put(&stage, &record, json!({})).await,
                stage.caller.delete(&path_of(&record)).await,
            ] {
                refused(&answer, 404, "payment_not_found");
            }
        }
    }
}

#[tokio::test]
async fn refunds_say_how_much() {
    let stage = Stage::start().await;
    let subscription = stage.subscribe(json!({})).await;
    let record = stage
        .pay(&subscription, json!({"status": "completed"}))
        .await;
    let part = put(
        &stage,
        &record,
        json!({"status": "partially_refunded", "refunded_amount": "5.00"}),
    )
    .await;
    assert_eq!(part.json()["refunded_amount"], 5.0);
    let more = put(&stage, &record, json!({"refunded_amount": 7.5})).await;
    assert_eq!(more.json()["refunded_amount"], 7.5);
    let too_much = put(&stage, &record, json!({"refunded_amount": 19.99})).await;
    assert_eq!(too_much.field_errors(), ["/refunded_amount out_of_range"]);
    let all = put(&stage, &record, json!({"status": "refunded"})).await;
    assert_eq!(all.json()["refunded_amount"], 19.99);
    let final_one = put(&stage, &record, json!({"status": "completed"})).await;
    refused(&final_one, 409, "invalid_transition");
}

/// A completed payment revives what waited for one: when it is made, or when it becomes so; what a provider runs it does not.
#[tokio::test]
async fn a_completed_payment_revives() {
    let stage = Stage::start().await;
    for (status, external, revived) in [
        ("past_due", None, true),
        ("unpaid", None, true),
        ("past_due", Some("ext_1"), false),
        ("paused", None, false),
        ("pending", None, false),
        ("expired", None, false),
    ] {
        for at_once in [true, false] {
            let external = external.map(|id| format!("{id}{at_once}"));
            let fields = json!({"status": status, "external_subscription_id": external});
            let subscription = stage.subscribe(fields).await;
            if at_once {
                stage.pay(&subscription, json!({"status": "paid"})).await;
            } else {
                let payment = stage.pay(&subscription, json!({"status": "failed"})).await;
                assert_eq!(
                    stage.caller.get(&path_of(&subscription)).await.json()["status"],
                    status
                );
                assert_eq!(
                    put(&stage, &payment, json!({"status": "completed"}))
                        .await
                        .status,
                    200
                );
            }
            let after = stage.caller.get(&path_of(&subscription)).await.json();
            let expected = if revived { "active" } else { status };
            assert_eq!(after["status"], expected, "{status} {external:?}");
            assert_eq!(
                stage.events(&subscription).await.len(),
                1 + usize::from(revived)
            );
        }
    }
}

#[tokio::test]
async fn an_external_id_is_one_payments() {
    let stage = Stage::start().await;
    let subscription = stage.subscribe(json!({})).await;
    let first = stage
        .pay(&subscription, json!({"external_payment_id": "pi_1"}))
        .await;
    let body = json!({"subscription_id": subscription["id"], "amount": 1, "currency": "USD", "external_payment_id": "pi_1"});
    let again = stage.caller.post(PAYMENTS, &body.to_string()).await;
    refused(&again, 409, "duplicate_external_id");
    assert_eq!(again.json()["existing_id"], first["id"]);
    let second = stage.pay(&subscription, json!({})).await;
    let taken = put(&stage, &second, json!({"external_payment_id": "pi_1"})).await;
    refused(&taken, 409, "duplicate_external_id");
    assert_eq!(taken.json()["existing_id"], first["id"]);
    // With a key, the same request gets the same answer instead.
    let keyed = stage.caller.with("idempotency-key", "k1");
    let body = json!({"subscription_id": subscription["id"], "amount": 1, "currency": "USD", "external_payment_id": "pi_2"});
    let one = keyed.post(PAYMENTS, &body.to_string()).await;
    let two = keyed.post(PAYMENTS, &body.to_string()).await;
    assert_eq!((one.status, two.status, &one.text), (201, 201, &two.text));
}

#[tokio::test]
async fn of_one_subscription_page_by_page() {
    let stage = Stage::start().await;
    let (subscription, other) = (
        stage.subscribe(json!({})).await,
        stage.subscribe(json!({})).await,
    );
    let mut made = Vec::new();
    for number in 0..7 {
        made.push(stage.pay(&subscription, json!({"amount": number})).await);
    }
    stage.pay(&other, json!({})).await;
    let deleted = made.remove(3);
    assert_eq!(stage.caller.delete(&path_of(&deleted)).await.status, 204);
    for (sort, newest) in [("created_at", false), ("-created_at", true)] {
        let path = format!("{}/payments?limit=2&sort={sort}", path_of(&subscription));
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = stage.caller.get(&format!("{path}{cursor}")).await.json();
            found.extend(page["data"].as_array().unwrap().clone());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let mut expected = made.clone();
        if newest {
            expected.reverse();
        }
        assert_eq!(found, expected, "{sort}");
        let foreign = format!("{}/payments?limit=2&sort={sort}{cursor}", path_of(&other));
        assert_eq!(stage.caller.get(&foreign).await.problem(), "invalid_cursor");
    }
}
