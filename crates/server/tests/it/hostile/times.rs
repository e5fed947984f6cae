//! Instants that computers get wrong, and things that are not there.

use reqwest::Method;
use serde_json::{Value, json};

use super::target::Target;
use crate::subscriptions::{SUBSCRIPTIONS, make_user};

/// A subscription to the target's plan, as fields.
async fn fields(target: &Target) -> Value {
    let plan = target.caller.get("/subscription-plans/target").await.json();
    let user = make_user(&target.caller, "ada@example.com").await;
    json!({"user_id": user, "subscription_plan_id": plan["id"]})
}

/// Catalogue: 33, 34, 35, 36, 37.
#[tokio::test]
async fn instants() {
    let mut target = Target::start().await;
    let fields = fields(&target).await;
    let made = target.caller.post(SUBSCRIPTIONS, &fields.to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/subscriptions/{}", made.json()["id"].as_str().unwrap());
    target.remember().await;
    for (sent, code) in [
        (json!("2027-01-31T09:30:00"), "invalid_format"),
        (json!("2027-01-31"), "invalid_format"),
        (json!("2027-01-31 09:30:00Z"), "invalid_format"),
        (json!("2027-01-31T09:30:00+24:00"), "invalid_format"),
        (json!("2027-01-31T09:30:00.1234567890Z"), "invalid_format"),
        (json!("2027-02-30T00:00:00Z"), "invalid_format"),
        (json!("2027-01-31T23:59:60Z"), "invalid_format"),
        (json!("2027-01-31T24:00:00Z"), "invalid_format"),
        (json!("infinity"), "invalid_format"),
        (json!("now"), "invalid_format"),
        (json!("294277-01-01T00:00:00Z"), "invalid_format"),
        (json!("0000-01-01T00:00:00Z"), "out_of_range"),
        (json!("1969-12-31T23:59:59Z"), "out_of_range"),
        (json!("9999-12-31T23:59:59Z"), "out_of_range"),
        (json!(1_801_388_600), "wrong_type"),
        (json!(true), "wrong_type"),
    ] {
        for field in ["starts_at", "renews_at", "ends_at"] {
            let mut body = fields.clone();
            body[field] = sent.clone();
            let body = body.to_string();
            let answer = target
                .refuses(
                    Method::POST,
                    SUBSCRIPTIONS,
                    Some(body.as_bytes()),
                    (422, code),
                )
                .await;
            assert_eq!(
                answer.field_errors(),
                [format!("/{field} {code}")],
                "{sent}"
            );
            let body = json!({field: sent}).to_string();
            target
                .refuses(Method::PUT, &path, Some(body.as_bytes()), (422, code))
                .await;
        }
    }
    // The end before the beginning, the renewal before it.
    for field in ["renews_at", "ends_at"] {
        let body =
            json!({"starts_at": "2027-01-31T09:30:00Z", field: "2027-01-31T09:29:59.999999Z"})
                .to_string();
        target
            .refuses(
                Method::PUT,
                &path,
                Some(body.as_bytes()),
                (422, "inconsistent_dates"),
            )
            .await;
    }
    target.is_unchanged().await;
    for (sent, shown) in [
        ("2027-01-31t09:30:00z", "2027-01-31T09:30:00Z"),
        ("2027-01-31T09:30:00+14:00", "2027-01-30T19:30:00Z"),
        (
            "2027-01-31T09:30:00.123456789Z",
            "2027-01-31T09:30:00.123456Z",
        ),
        ("2038-01-19T03:14:08Z", "2038-01-19T03:14:08Z"),
        ("9999-12-30T21:59:59.999999Z", "9999-12-30T21:59:59.999999Z"),
    ] {
        let answer = target
            .caller
            .put(&path, &json!({"renews_at": sent}).to_string())
            .await;
        assert_eq!(answer.json()["renews_at"], shown, "{}", answer.text);
    }
}

/// Catalogue: 38.
#[tokio::test]
async fn ends_of_months() {
    let target = Target::start().await;
    let fields = fields(&target).await;
    for (start, cycle, renewal) in [
        ("2027-01-31T09:30:00Z", "monthly", "2027-02-28T09:30:00Z"),
        ("2028-01-31T09:30:00Z", "monthly", "2028-02-29T09:30:00Z"),
        ("2028-02-29T09:30:00Z", "yearly", "2029-02-28T09:30:00Z"),
        ("2027-11-30T09:30:00Z", "quarterly", "2028-02-29T09:30:00Z"),
        ("2027-08-31T09:30:00Z", "semiannual", "2028-02-29T09:30:00Z"),
        // The night in which clocks are changed, somewhere: ours are not.
        ("2027-03-27T01:30:00Z", "daily", "2027-03-28T01:30:00Z"),
        (
            "2027-03-21T01:30:00+01:00",
            "weekly",
            "2027-03-28T00:30:00Z",
        ),
        ("9999-12-15T00:00:00Z", "monthly", ""),
    ] {
        let mut body = fields.clone();
        body["starts_at"] = json!(start);
        body["billing_cycle"] = json!(cycle);
        let answer = target.caller.post(SUBSCRIPTIONS, &body.to_string()).await;
        assert_eq!(
            answer.json()["renews_at"].as_str().unwrap_or(""),
            renewal,
            "{}",
            answer.text
        );
    }
}

/// Catalogue: 43, 79.
#[tokio::test]
async fn things_that_are_not_there() {
    let target = Target::start().await;
    for (kind, prefix, code) in [
        ("/subscriptions", "sub", "subscription_not_found"),
        ("/subscription-payments", "pay", "payment_not_found"),
    ] {
        for id in [
            format!("{prefix}_01920000000070008000000000000001"),
            "01920000-0000-7000-8000-000000000001".to_owned(),
            "plan_01920000000070008000000000000001".to_owned(),
            "00000000-0000-0000-0000-000000000000".to_owned(),
            "%00".to_owned(),
            "%252e".to_owned(),
            "1'%20OR%201=1".to_owned(),
            "x".repeat(10_000),
        ] {
            let path = format!("{kind}/{id}");
            for (method, body) in [
                (Method::GET, None),
                (Method::PUT, Some(b"{}".as_slice())),
                (Method::DELETE, None),
            ] {
                target.refuses(method, &path, body, (404, code)).await;
            }
        }
    }
    target.is_unchanged().await;
}
