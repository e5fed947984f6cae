//! Invoices of both generations of shapes, their money and their words.

use serde_json::json;

use super::*;

fn invoice() -> Value {
    json!({
        "id": "in_1", "object": "invoice", "status": "paid", "attempted": true, "currency": "usd",
        "total": 1_999, "amount_due": 1_999, "amount_paid": 1_999,
        "parent": {"type": "subscription_details", "subscription_details": {"subscription": "sub_1"}},
        "status_transitions": {"paid_at": 1_000},
        "payments": {"data": [{"payment": {"type": "payment_intent", "payment_intent": "pi_1"}}]},
        "lines": {"data": [
            {"period": {"start": 500, "end": 900},
                "parent": {"subscription_item_details": {"proration": true}}},
            {"period": {"start": 100, "end": 400},
                "parent": {"subscription_item_details": {"proration": false}}},
        ]},
    })
}

fn fact(value: &Value, money: &InvoiceMoney) -> PaymentFact {
    match invoice_fact(value, money).unwrap() {
        FetchedObject::Payment(reported) => reported.fact,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_generations_of_shapes_give_the_same_fact() {
    let new = invoice();
    let mut old = new.clone();
    old["parent"].take();
    old["payments"].take();
    old["subscription"] = json!("sub_1");
    old["payment_intent"] = json!("pi_1");
    for line in old["lines"]["data"].as_array_mut().unwrap() {
        let proration = line["parent"]["subscription_item_details"]["proration"].take();
        line["proration"] = proration;
        line["parent"].take();
    }
    let money = InvoiceMoney::default();
    assert_eq!(fact(&new, &money), fact(&old, &money));
    let fact = fact(&new, &money);
    assert_eq!(fact.status, PaymentStatus::Completed);
    let period = fact
        .period
        .map(|(start, end)| (start.as_second(), end.unwrap().as_second()));
    assert_eq!(period, Some((100, 400)), "a proration is not the period");
    for value in [new, old] {
        assert_eq!(invoice_payment_intents(&value), Ok(vec!["pi_1".to_owned()]));
    }
}

#[test]
fn charges_and_disputes_decide_about_the_status() {
    let charges = |refunded: i64, disputed: bool| {
        let charge = json!({"created": 5, "status": "succeeded", "amount_refunded": refunded, "disputed": disputed});
        json!({ "data": [charge] })
    };
    for (refunded, dispute, expected) in [
        (0, None, "completed"),
        (500, None, "partially_refunded"),
        (1_999, None, "refunded"),
        (0, Some("needs_response"), "disputed"),
        (0, Some("won"), "completed"),
        (0, Some("lost"), "refunded"),
        (0, Some("warning_closed"), "completed"),
    ] {
        let mut money = InvoiceMoney::default();
        money
            .add_charges(&charges(refunded, dispute.is_some()))
            .unwrap();
        if let Some(status) = dispute {
            assert!(money.is_disputed);
            money
                .add_disputes(&json!({"data": [{ "status": status }]}))
                .unwrap();
        }
        assert_eq!(fact(&invoice(), &money).status.as_str(), expected);
    }
}

#[test]
fn latest_attempt_decides_whether_an_open_invoice_has_failed() {
    let mut open = invoice();
    open["status"] = json!("open");
    let failed =
        json!({"created": 5, "status": "failed", "failure_message": "Your card was declined."});
    let pending = json!({"created": 6, "status": "pending"});
    for (data, expected, reason) in [
        (json!([]), "pending", None),
        (json!([failed]), "failed", Some("Your card was declined.")),
        (json!([pending, failed]), "pending", None),
    ] {
        let mut money = InvoiceMoney::default();
        money.add_charges(&json!({ "data": data })).unwrap();
        let fact = fact(&open, &money);
        assert_eq!(fact.status.as_str(), expected);
        assert_eq!(
            fact.failure_reason.as_ref().map(FailureReason::as_str),
            reason
        );
    }
    assert_eq!(needs_charges(&open), Ok(true));
    open["attempted"] = json!(false);
    assert_eq!(needs_charges(&open), Ok(false));
}

#[test]
fn invoice_without_subscription_or_with_credit_has_no_payment() {
    let mut one_time = invoice();
    one_time["parent"].take();
    let mut credit = invoice();
    credit["total"] = json!(-500);
    for value in [one_time, credit] {
        let fetched = invoice_fact(&value, &InvoiceMoney::default()).unwrap();
        assert!(
            matches!(fetched, FetchedObject::Unrelated(_)),
            "{fetched:?}"
        );
    }
}

#[test]
fn amount_is_what_was_paid_or_is_due() {
    for (status, paid, due, expected) in [
        ("paid", 1_499, 1_499, 1_499),
        ("paid", 0, 0, 0),
        ("open", 0, 1_499, 1_499),
        ("void", 0, 1_499, 1_499),
        ("draft", 0, 1_999, 1_999),
    ] {
        let mut value = invoice();
        value["status"] = json!(status);
        value["amount_paid"] = json!(paid);
        value["amount_due"] = json!(due);
        let fact = fact(&value, &InvoiceMoney::default());
        assert_eq!(fact.amount.minor_units(), expected, "{status}");
    }
}

#[test]
fn missing_or_unknown_field_is_named() {
    for (pointer, changed, expected) in [
        ("/status", json!("frozen"), "invoice status: "),
        ("/total", json!(null), "invoice total: is missing"),
        (
            "/amount_paid",
            json!(null),
            "invoice amount_paid: is missing",
        ),
        ("/currency", json!("xxx1"), "invoice currency: "),
        ("/lines", json!(null), "invoice lines.data: is missing"),
    ] {
        let mut value = invoice();
        *value.pointer_mut(pointer).unwrap() = changed;
        let error = invoice_fact(&value, &InvoiceMoney::default()).unwrap_err();
        assert!(
            error.to_string().starts_with(expected),
            "{pointer}: {error}"
        );
    }
    let fraction = json!({"data": [{"created": 1, "status": "succeeded", "amount_refunded": 50}]});
    let mut money = InvoiceMoney::default();
    money.add_charges(&fraction).unwrap();
    let mut isk = invoice();
    isk["currency"] = json!("isk");
    isk["amount_paid"] = json!(150_000);
    let error = invoice_fact(&isk, &money).unwrap_err().to_string();
    assert!(error.starts_with("invoice amount_refunded: "), "{error}");
}
