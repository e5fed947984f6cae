//! How responses show times.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    harness::process::run_ok,
    subscriptions::{SubscriptionFixture, record_path},
};

/// Collects the values of all fields that are times: `at`, `until` and names that end with `_at` or `_until`.
fn times(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_time = name == "at" || name == "until" || name.ends_with("_at");
                if let Some(text) = value.as_str().filter(|_| is_time || name == "paid_until") {
                    found.push((name.clone(), text.to_owned()));
                }
                times(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| times(item, found)),
        _ => {}
    }
}

fn assert_six_digits(value: &Value) -> usize {
    let mut found = Vec::new();
    times(value, &mut found);
    for (name, text) in &found {
        let (_, fraction) = text
            .split_once('.')
            .unwrap_or_else(|| panic!("{name}: {text}"));
        let digits = fraction
            .strip_suffix('Z')
            .unwrap_or_else(|| panic!("{name}: {text}"));
        assert_eq!(digits.len(), 6, "{name}: {text}");
    }
    found.len()
}

#[tokio::test]
async fn every_time_has_six_fraction_digits() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    run_ok(variables, &["tenant", "set", "--lifecycle", "managed"]);
    // The service caches the tenant's settings for a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let api = &fixture.api;
    let tokens = api.sign_up("eve@example.com").await;
    let subscription = fixture
        .subscribe(json!({"user_id": tokens.user(), "starts_at": "2026-01-01T00:00:00Z"}))
        .await;
    let path = record_path(&subscription);
    let payment = fixture
        .pay(&subscription, json!({"status": "completed"}))
        .await;
    let bearer = api.with_bearer(tokens.access());
    let preview = api
        .post(&format!("{path}/preview"), r#"{"quantity": 2}"#)
        .await;
    let checked = bearer.post("/authentication/user-logged-in", "{}").await;
    let mut values = vec![
        tokens.0.clone(),
        preview.json(),
        checked.json(),
        payment.clone(),
    ];
    for path in [
        path.clone(),
        format!("{path}/ledger"),
        record_path(&payment),
        "/subscription-plans/pro".to_owned(),
        format!("/users/{}", tokens.user()),
        format!("/entitlements/{}", tokens.user()),
    ] {
        values.push(api.get_json(&path).await);
    }
    values.push(bearer.get_json("/authentication/tokens").await);
    let export = run_ok(variables, &["user", "export", "eve@example.com"]);
    values.push(serde_json::from_str(&export).unwrap());
    for value in values {
        assert!(assert_six_digits(&value) > 0, "{value}");
    }
}

/// Other systems write "no end" this way.
#[tokio::test]
async fn end_of_year_9999_is_accepted_and_shown_again() {
    let fixture = SubscriptionFixture::start().await;
    let end = "9999-12-31T23:59:59Z";
    let created = fixture
        .subscribe(json!({"ends_at": end, "renews_at": end}))
        .await;
    for field in ["ends_at", "renews_at"] {
        assert_eq!(created[field], "9999-12-31T23:59:59.000000Z", "{field}");
    }
    let path = record_path(&created);
    let again = fixture.api.put(&path, &created.to_string()).await;
    assert_eq!(again.json(), created, "what GET shows changes nothing");
    for (query, count) in [
        (format!("ends_at[gte]={end}"), 1),
        (format!("ends_at[lte]={end}"), 1),
        (format!("ends_at[lt]={end}"), 0),
        (format!("created_at[lte]={end}"), 1),
        (format!("updated_at[lte]={end}"), 1),
        (
            "renews_at[gte]=9999-12-30T00:00:00Z&sort=renews_at".to_owned(),
            1,
        ),
    ] {
        let list = fixture
            .api
            .get_json(&format!("/subscriptions?{query}"))
            .await;
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{query}");
    }
    let later = fixture.subscribe(json!({"starts_at": end})).await;
    assert_eq!(later["starts_at"], "9999-12-31T23:59:59.000000Z");
    assert_eq!(
        (&later["is_active"], &later["renews_at"]),
        (&json!(false), &Value::Null)
    );
}

#[tokio::test]
async fn id_and_creation_time_cannot_change() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let payment = fixture.pay(&subscription, json!({})).await;
    for path in [
        record_path(&subscription),
        record_path(&payment),
        "/subscription-plans/pro".to_owned(),
        format!("/users/{}", fixture.user),
    ] {
        let record = fixture.api.get_json(&path).await;
        let echoed = fixture.api.put(&path, &record.to_string()).await;
        assert_eq!(echoed.json(), record, "{path}");
        let id = record["id"].as_str().unwrap();
        let other = format!(
            "{}_01920000000070008000000000000001",
            id.split('_').next().unwrap()
        );
        let body = json!({"id": other, "created_at": "2020-01-01T00:00:00Z"});
        let response = fixture.api.put(&path, &body.to_string()).await;
        assert_eq!(
            response.field_errors(),
            ["/id immutable_field", "/created_at immutable_field"],
            "{path}"
        );
    }
}
