//! `PUT /subscription-plans/{slug}`

use std::collections::BTreeSet;

use perennial_domain::BillingCycle;
use proptest::{
    prelude::*, sample, strategy::ValueTree, string::string_regex, test_runner::TestRunner,
};
use serde_json::{Value, json};

use super::minimal;
use crate::harness::service::Service;

const PRO: &str = "/subscription-plans/pro";

/// A field that can change, and any value that it can have.
fn change() -> impl Strategy<Value = (&'static str, Value)> {
    fn text(field: &'static str, pattern: &'static str) -> BoxedStrategy<(&'static str, Value)> {
        let text = string_regex(pattern).unwrap();
        text.prop_map(move |text| (field, json!(text))).boxed()
    }
    fn nullable(
        field: &'static str,
        pattern: &'static str,
    ) -> BoxedStrategy<(&'static str, Value)> {
        prop_oneof![3 => text(field, pattern), 1 => Just((field, Value::Null))].boxed()
    }
    fn flag(field: &'static str) -> BoxedStrategy<(&'static str, Value)> {
        any::<bool>()
            .prop_map(move |flag| (field, json!(flag)))
            .boxed()
    }
    let variants = proptest::collection::vec("[A-Za-z0-9é_-]{1,20}", 0..5);
    prop_oneof![
        text(
            "name",
            "[A-Za-z0-9éß漢\"'<>%_-][A-Za-z0-9 éß漢\"'<>%_-]{0,30}[a-z0-9]"
        ),
        nullable("product_id", "[A-Za-z0-9_-]{1,40}"),
        variants.prop_map(|variants| ("variants", json!(variants))),
        (0_i64..100_000_000).prop_map(|minor| ("price", json!(minor as f64 / 100.0))),
        nullable("href", "https://[a-z]{1,10}\\.example/[a-z0-9/]{0,20}"),
        sample::select(BillingCycle::ALL.to_vec())
            .prop_map(|cycle| ("billing_cycle", json!(cycle.as_str()))),
        nullable("description", "[A-Za-z0-9é\n.,]{0,40}[a-z]"),
        prop_oneof![Just(-1), 0..=i32::MAX].prop_map(|quota| ("node_quota", json!(quota))),
        nullable("features", "[A-Za-z, ]{0,40}"),
        flag("most_popular"),
        (0..=1000).prop_map(|tier| ("tier", json!(tier))),
        flag("is_active"),
    ]
}

/// GET, change one field, PUT: that one changes, and what follows from it, whatever the plan looked like
/// before.
#[tokio::test]
async fn one_field_at_a_time() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let made = caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await
        .json();
    let any_change = (change(), any::<bool>());
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..600 {
        let ((field, value), whole) = any_change.new_tree(&mut runner).unwrap().current();
        seen.insert(field);
        let before = caller.get(PRO).await;
        // The whole record as it was shown, or the field alone: the same.
        let mut body = if whole { before.json() } else { json!({}) };
        body[field] = value.clone();
        let answer = caller.put(PRO, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text);
        let after = answer.json();
        assert_eq!(caller.get(PRO).await.text, answer.text);
        for (name, old) in before.json().as_object().unwrap() {
            let follows = name == "updated_at" || (field == "features" && name == "feature_list");
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
    // Every field of the record was changed, but those that never do.
    let fixed = [
        "id",
        "slug",
        "currency",
        "feature_list",
        "created_at",
        "updated_at",
    ];
    let all = made.as_object().unwrap().keys().map(String::as_str);
    let all: BTreeSet<&str> = all.filter(|field| !fixed.contains(field)).collect();
    assert_eq!(seen, all);
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
