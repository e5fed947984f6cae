//! Invalid timestamps, and unknown ids.

use reqwest::Method;
use serde_json::{Value, json};

use super::target::Target;
use crate::subscriptions::{SUBSCRIPTIONS, create_user};

/// Returns the fields of a subscription to the plan `target`.
async fn fields<S>(target: &Target<S>) -> Value {
    let plan = target.api.get("/subscription-plans/target").await.json();
    let user = create_user(&target.api, "ada@example.com").await;
    json!({"user_id": user, "subscription_plan_id": plan["id"]})
}

/// Malformed input: 33, 34, 35, 36, 37.
#[tokio::test]
async fn invalid_timestamps_are_rejected() {
    let mut target = Target::start_in_process().await;
    let fields = fields(&target).await;
    let created = target.api.post(SUBSCRIPTIONS, &fields.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let path = format!("/subscriptions/{}", created.json()["id"].as_str().unwrap());
    target.save_state().await;
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
        (json!("9999-12-31T23:59:59-00:01"), "out_of_range"),
        (json!(1_801_388_600), "wrong_type"),
        (json!(true), "wrong_type"),
    ] {
        for field in ["starts_at", "renews_at", "ends_at"] {
            let mut body = fields.clone();
            body[field] = sent.clone();
            let body = body.to_string();
            let response = target
                .assert_rejects(
                    Method::POST,
                    SUBSCRIPTIONS,
                    Some(body.as_bytes()),
                    (422, code),
                )
                .await;
            assert_eq!(
                response.field_errors(),
                [format!("/{field} {code}")],
                "{sent}"
            );
            let body = json!({field: sent}).to_string();
            target
                .assert_rejects(Method::PUT, &path, Some(body.as_bytes()), (422, code))
                .await;
        }
    }
    // An end and a renewal before the start.
    for field in ["renews_at", "ends_at"] {
        let body =
            json!({"starts_at": "2027-01-31T09:30:00Z", field: "2027-01-31T09:29:59.999999Z"})
                .to_string();
        target
            .assert_rejects(
                Method::PUT,
                &path,
                Some(body.as_bytes()),
                (422, "inconsistent_dates"),
            )
            .await;
    }
    target.assert_unchanged().await;
    for (sent, shown) in [
        ("2027-01-31t09:30:00z", "2027-01-31T09:30:00.000000Z"),
        ("2027-01-31T09:30:00+14:00", "2027-01-30T19:30:00.000000Z"),
        (
            "2027-01-31T09:30:00.123456789Z",
            "2027-01-31T09:30:00.123456Z",
        ),
        ("2038-01-19T03:14:08Z", "2038-01-19T03:14:08.000000Z"),
        ("9999-12-30T21:59:59.999999Z", "9999-12-30T21:59:59.999999Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.000000Z"),
    ] {
        let response = target
            .api
            .put(&path, &json!({"renews_at": sent}).to_string())
            .await;
        assert_eq!(response.json()["renews_at"], shown, "{}", response.text);
    }
}

/// Malformed input: 38.
#[tokio::test]
async fn renewal_dates_clamp_to_the_end_of_the_month() {
    let target = Target::start_in_process().await;
    let fields = fields(&target).await;
    for (start, cycle, renewal) in [
        (
            "2027-01-31T09:30:00Z",
            "monthly",
            "2027-02-28T09:30:00.000000Z",
        ),
        (
            "2028-01-31T09:30:00Z",
            "monthly",
            "2028-02-29T09:30:00.000000Z",
        ),
        (
            "2028-02-29T09:30:00Z",
            "yearly",
            "2029-02-28T09:30:00.000000Z",
        ),
        (
            "2027-11-30T09:30:00Z",
            "quarterly",
            "2028-02-29T09:30:00.000000Z",
        ),
        (
            "2027-08-31T09:30:00Z",
            "semiannual",
            "2028-02-29T09:30:00.000000Z",
        ),
        // A daylight saving change, which does not affect UTC.
        (
            "2027-03-27T01:30:00Z",
            "daily",
            "2027-03-28T01:30:00.000000Z",
        ),
        (
            "2027-03-21T01:30:00+01:00",
            "weekly",
            "2027-03-28T00:30:00.000000Z",
        ),
        ("9999-12-15T00:00:00Z", "monthly", ""),
    ] {
        let mut body = fields.clone();
        body["starts_at"] = json!(start);
        body["billing_cycle"] = json!(cycle);
        let response = target.api.post(SUBSCRIPTIONS, &body.to_string()).await;
        assert_eq!(
            response.json()["renews_at"].as_str().unwrap_or(""),
            renewal,
            "{}",
            response.text
        );
    }
}

/// Malformed input: 43, 79.
#[tokio::test]
async fn unknown_ids_return_not_found() {
    let target = Target::start_in_process().await;
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
                target
                    .assert_rejects(method, &path, body, (404, code))
                    .await;
            }
        }
    }
    target.assert_unchanged().await;
}
