//! `PUT /subscription-plans/{slug}`

use std::collections::BTreeSet;

use perennial_domain::BillingCycle;
use proptest::{
    prelude::*, sample, strategy::ValueTree, string::string_regex, test_runner::TestRunner,
};
use serde_json::{Value, json};

use super::minimal_plan;
use crate::harness::service::Service;

const PRO: &str = "/subscription-plans/pro";

/// Generates a mutable field and a valid value for it.
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
        (0..=730).prop_map(|days| ("trial_days", json!(days))),
        flag("is_active"),
        "[A-Za-z0-9é]{0,20}".prop_map(|value| ("metadata", json!({"order": value}))),
    ]
}

/// GET, change one field, PUT, 600 times: only that field and those derived from it change.
#[tokio::test]
async fn updating_one_field_leaves_the_others_unchanged() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let created = api
        .post("/subscription-plans", &minimal_plan("pro").to_string())
        .await
        .json();
    let any_change = (change(), any::<bool>());
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..600 {
        let ((field, value), whole) = any_change.new_tree(&mut runner).unwrap().current();
        seen.insert(field);
        let before = api.get(PRO).await;
        // Sending the whole record or only the changed field has the same effect.
        let mut body = if whole { before.json() } else { json!({}) };
        body[field] = value.clone();
        let response = api.put(PRO, &body.to_string()).await;
        assert_eq!(response.status, 200, "{body}: {}", response.text);
        let after = response.json();
        assert_eq!(api.get(PRO).await.text, response.text);
        for (name, old) in before.json().as_object().unwrap() {
            let derived = name == "updated_at" || (field == "features" && name == "feature_list");
            if name == field {
                assert_eq!(after[name], value, "{field}");
            } else if !derived {
                assert_eq!(&after[name], old, "{name} changed with {field}");
            }
        }
        let changed = before.json()[field] != value;
        assert_eq!(
            before.header("etag") != response.header("etag"),
            changed,
            "{field} {value}"
        );
    }
    // Every mutable field was changed at least once.
    let fixed = [
        "id",
        "slug",
        "currency",
        "feature_list",
        "created_at",
        "updated_at",
    ];
    let all = created.as_object().unwrap().keys().map(String::as_str);
    let all: BTreeSet<&str> = all.filter(|field| !fixed.contains(field)).collect();
    assert_eq!(seen, all);
}

#[tokio::test]
async fn update_without_changes_records_no_event() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    api.post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    let before = api.get(PRO).await;
    for body in [
        before.text.as_str(),
        "{}",
        r#"{"price": "19.990", "slug": "pro", "currency": "usd", "billing_cycle": "Month"}"#,
    ] {
        let response = api.put(PRO, body).await;
        assert_eq!(
            (response.status, response.text.as_str()),
            (200, before.text.as_str()),
            "{body}"
        );
        assert_eq!(response.header("etag"), before.header("etag"));
    }
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.updated'")
            .await,
        0
    );
}

#[tokio::test]
async fn update_event_contains_previous_values() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    api.post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    let response = api.put(PRO, r#"{"price": 20, "tier": 2}"#).await;
    assert!(
        response.text.contains(r#""price":20.00,"#),
        "{}",
        response.text
    );
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
    assert_eq!(data, response.json());
    assert_eq!(row.get::<_, String>(1), "19.99");
    let names: Vec<&String> = previous.as_object().unwrap().keys().collect();
    assert_eq!(names, ["price", "tier", "updated_at"]);
}

#[tokio::test]
async fn all_invalid_fields_are_reported() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    api.post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    let before = api.get(PRO).await.text;
    let body = r#"{"slug": "Pro", "currency": "EUR", "price": 0.005, "name": null, "tier": null, "variants": null,
        "is_active": null, "billing_cycle": "montly", "nam": 1}"#;
    let response = api.put(PRO, body).await;
    assert_eq!(
        (response.status, response.problem().as_str()),
        (422, "validation_failed")
    );
    let mut errors = response.field_errors();
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
        api.put(PRO, r#"{"slug": "other"}"#).await.problem(),
        "immutable_field"
    );
    assert_eq!(api.get(PRO).await.text, before);
    assert_eq!(
        api.put("/subscription-plans/none", "{}").await.problem(),
        "plan_not_found"
    );
}

#[tokio::test]
async fn concurrent_updates_with_one_etag_succeed_once() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    api.post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    for round in 0..50 {
        let tag = api.get(PRO).await.header("etag").to_owned();
        let conditional = api.with("if-match", &tag);
        let bodies = [
            format!(r#"{{"tier": {}}}"#, round * 2 + 1),
            format!(r#"{{"tier": {}}}"#, round * 2 + 2),
        ];
        let (one, two) = tokio::join!(
            conditional.put(PRO, &bodies[0]),
            conditional.put(PRO, &bodies[1])
        );
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
    let tag = api.get(PRO).await.header("etag").to_owned();
    for good in ["*", &tag, &format!("\"x\", {tag}")] {
        assert_eq!(
            api.with("if-match", good).put(PRO, "{}").await.status,
            200,
            "{good}"
        );
    }
    for bad in ["\"x\"", "", &format!("W/{tag}"), tag.trim_matches('"')] {
        let response = api.with("if-match", bad).put(PRO, "{}").await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (412, "precondition_failed"),
            "{bad}"
        );
    }
}
