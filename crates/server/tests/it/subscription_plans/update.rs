//! `PUT /subscription-plans/{slug}`

use serde_json::{Value, json};

use super::minimal;
use crate::harness::service::Service;

const PRO: &str = "/subscription-plans/pro";

/// Another value for each field that can change, and the empty one where there is one.
fn changes() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("name", vec![json!("Other")]),
        ("product_id", vec![json!("prod_2"), Value::Null]),
        ("variants", vec![json!(["a", "b"]), json!([])]),
        ("price", vec![json!(24.99), json!(0.0)]),
        ("href", vec![json!("https://example.com/x"), Value::Null]),
        ("billing_cycle", vec![json!("yearly")]),
        (
            "description",
            vec![json!("Two\nlines"), json!(""), Value::Null],
        ),
        ("node_quota", vec![json!(-1), json!(7)]),
        ("features", vec![json!("a,b"), Value::Null]),
        ("most_popular", vec![json!(true), json!(false)]),
        ("tier", vec![json!(9)]),
        ("is_active", vec![json!(false), json!(true)]),
    ]
}

/// GET, change one field, PUT: that one changes, and what follows from it.
#[tokio::test]
async fn one_field_at_a_time() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    for (field, values) in changes() {
        for value in values {
            let before = caller.get(PRO).await;
            let mut whole = before.json();
            whole[field] = value.clone();
            let only = json!({field: value}).to_string();
            // The whole record, or the field alone: the same.
            let body = if field.len() % 2 == 0 {
                whole.to_string()
            } else {
                only
            };
            let answer = caller.put(PRO, &body).await;
            assert_eq!(answer.status, 200, "{body}: {}", answer.text);
            let after = answer.json();
            assert_eq!(caller.get(PRO).await.text, answer.text);
            for (name, old) in before.json().as_object().unwrap() {
                let follows =
                    name == "updated_at" || (field == "features" && name == "feature_list");
                if name == field {
                    assert_eq!(after[name], value, "{field}");
                } else if !follows {
                    assert_eq!(&after[name], old, "{name} changed with {field}");
                }
            }
            let changed = before.json()[field] != value;
            assert_eq!(
                before.header("etag") != answer.header("etag"),
                changed,
                "{field} {value}"
            );
        }
    }
}

/// What GET returns, sent back as it is, changes nothing and leaves no event.
#[tokio::test]
async fn nothing_changed_is_no_event() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    let before = caller.get(PRO).await;
    for body in [
        before.text.as_str(),
        "{}",
        r#"{"price": "19.990", "slug": "pro", "currency": "usd", "billing_cycle": "Month"}"#,
    ] {
        let answer = caller.put(PRO, body).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (200, before.text.as_str()),
            "{body}"
        );
        assert_eq!(answer.header("etag"), before.header("etag"));
    }
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.updated'")
            .await,
        0
    );
}

#[tokio::test]
async fn the_event_says_what_was_before() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    let answer = caller.put(PRO, r#"{"price": 20, "tier": 2}"#).await;
    assert!(answer.text.contains(r#""price":20.00,"#), "{}", answer.text);
    let database = service.database.connect().await;
    let row = database
        .query_one(
            "SELECT data::text, data->'previous'->>'price' FROM events WHERE kind = 'plan.updated'",
            &[],
        )
        .await
        .unwrap();
    let mut data: Value = serde_json::from_str(&row.get::<_, String>(0)).unwrap();
    let previous = data.as_object_mut().unwrap().remove("previous").unwrap();
    assert_eq!(data, answer.json());
    assert_eq!(row.get::<_, String>(1), "19.99");
    let names: Vec<&String> = previous.as_object().unwrap().keys().collect();
    assert_eq!(names, ["price", "tier", "updated_at"]);
}

#[tokio::test]
async fn what_cannot_be_is_refused_at_once() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    let before = caller.get(PRO).await.text;
    let body = r#"{"slug": "Pro", "currency": "EUR", "price": 0.005, "name": null, "tier": null, "variants": null,
        "is_active": null, "billing_cycle": "montly", "nam": 1}"#;
    let answer = caller.put(PRO, body).await;
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (422, "validation_failed")
    );
    let mut errors = answer.field_errors();
    errors.sort();
    assert_eq!(
        errors,
        [
            "/billing_cycle unknown_value",
            "/currency immutable_field",
            "/is_active required",
            "/nam unknown_field",
            "/name required",
            "/price amount_scale_invalid",
            "/slug immutable_field",
            "/tier required",
            "/variants required",
        ]
    );
    assert_eq!(
        caller.put(PRO, r#"{"slug": "other"}"#).await.problem(),
        "immutable_field"
    );
    assert_eq!(caller.get(PRO).await.text, before);
    assert_eq!(
        caller.put("/subscription-plans/none", "{}").await.problem(),
        "plan_not_found"
    );
}

/// Two changes of the plan that both saw: one is made, the other is told.
#[tokio::test]
async fn two_with_one_if_match() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    for round in 0..50 {
        let tag = caller.get(PRO).await.header("etag").to_owned();
        let seen = caller.with("if-match", &tag);
        let bodies = [
            format!(r#"{{"tier": {}}}"#, round * 2 + 1),
            format!(r#"{{"tier": {}}}"#, round * 2 + 2),
        ];
        let (one, two) = tokio::join!(seen.put(PRO, &bodies[0]), seen.put(PRO, &bodies[1]));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "round {round}");
    }
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.updated'")
            .await,
        50
    );
    let tag = caller.get(PRO).await.header("etag").to_owned();
    for good in ["*", &tag, &format!("\"x\", {tag}")] {
        assert_eq!(
            caller.with("if-match", good).put(PRO, "{}").await.status,
            200,
            "{good}"
        );
    }
    for bad in ["\"x\"", "", &format!("W/{tag}"), tag.trim_matches('"')] {
        let answer = caller.with("if-match", bad).put(PRO, "{}").await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (412, "precondition_failed"),
            "{bad}"
        );
    }
}
