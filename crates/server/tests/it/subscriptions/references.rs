//! References to users and plans in requests, and the counts by plan.

use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, SubscriptionFixture, create_plan, record_path};
use crate::subscription_plans::minimal_plan;

const NO_PLAN: &str = "plan_01920000000070008000000000000001";
const NO_USER: &str = "usr_01920000000070008000000000000001";

#[tokio::test]
async fn all_wrong_references_are_reported_together() {
    let fixture = SubscriptionFixture::start().await;
    let path = format!("/users/{}", fixture.user);
    fixture
        .api
        .put(&path, r#"{"external_user_id": "ada"}"#)
        .await;
    for (fields, errors) in [
        (
            json!({"user_id": NO_USER, "subscription_plan_id": NO_PLAN}),
            &[
                "/user_id unknown_reference",
                "/subscription_plan_id unknown_reference",
            ][..],
        ),
        (
            json!({"external_user_id": "none", "subscription_plan_slug": "none"}),
            &[
                "/external_user_id unknown_reference",
                "/subscription_plan_slug unknown_reference",
            ],
        ),
        (
            json!({"external_user_id": "ada", "subscription_plan_slug": "none"}),
            &["/subscription_plan_slug unknown_reference"],
        ),
        (
            json!({"user_id": fixture.user, "external_user_id": "eve", "subscription_plan_id": fixture.plan}),
            &["/external_user_id unknown_reference"],
        ),
        (
            json!({"user_id": fixture.user, "subscription_plan_id": fixture.plan, "subscription_plan_slug": "other"}),
            &["/subscription_plan_slug unknown_reference"],
        ),
        (
            json!({}),
            &["/user_id required", "/subscription_plan_id required"],
        ),
    ] {
        let response = fixture.api.post(SUBSCRIPTIONS, &fields.to_string()).await;
        assert_eq!(response.status, 422, "{fields}");
        assert_eq!(response.field_errors(), errors, "{fields}");
    }
    let both = json!({"user_id": fixture.user, "external_user_id": "ada",
        "subscription_plan_id": fixture.plan, "subscription_plan_slug": "Pro"});
    fixture.api.create(SUBSCRIPTIONS, &both).await;
}

#[tokio::test]
async fn plan_changes_by_id_or_by_slug() {
    let fixture = SubscriptionFixture::start().await;
    let other = create_plan(&fixture.api, &minimal_plan("other")).await;
    let created = fixture.subscribe(json!({})).await;
    let path = record_path(&created);
    let put = async |fields: Value| fixture.api.put(&path, &fields.to_string()).await;
    // The whole record with one changed field, as a client sends it back.
    let mut record = created.clone();
    record["subscription_plan_slug"] = json!("other");
    let changed = put(record.clone()).await.json();
    assert_eq!(changed["subscription_plan_id"], other, "{changed}");
    assert_eq!(changed["subscription_plan_slug"], "other");
    record = changed;
    record["subscription_plan_id"] = json!(fixture.plan);
    let changed = put(record).await.json();
    assert_eq!(changed["subscription_plan_slug"], "pro", "{changed}");
    let contradiction = json!({"subscription_plan_id": other, "subscription_plan_slug": "none"});
    let response = put(contradiction).await;
    assert_eq!(
        response.field_errors(),
        ["/subscription_plan_slug unknown_reference"]
    );
    let response = put(json!({"subscription_plan_slug": "none"})).await;
    assert_eq!(
        response.field_errors(),
        ["/subscription_plan_slug unknown_reference"]
    );
    let response = put(json!({"external_user_id": "eve"})).await;
    assert_eq!(
        response.field_errors(),
        ["/external_user_id immutable_field"]
    );
    assert_eq!(put(json!({"external_user_id": null})).await.status, 200);
    let event = "SELECT data->'previous'->>'subscription_plan_slug' FROM events
                 WHERE kind = 'subscription.updated' ORDER BY at LIMIT 1";
    let client = fixture.service.database.connect().await;
    let previous: String = client.query_one(event, &[]).await.unwrap().get(0);
    assert_eq!(previous, "pro");
}

#[tokio::test]
async fn counts_are_by_status_and_plan() {
    let fixture = SubscriptionFixture::start().await;
    assert_eq!(
        fixture.api.get_json("/subscriptions/counts").await,
        json!({"by_status": [], "by_plan": []})
    );
    let other = create_plan(&fixture.api, &minimal_plan("other")).await;
    for fields in [
        json!({}),
        json!({}),
        json!({"status": "paused"}),
        json!({"subscription_plan_id": other}),
        json!({"subscription_plan_id": other, "ends_at": "2024-01-01T00:00:00Z"}),
    ] {
        fixture.subscribe(fields).await;
    }
    let deleted = fixture.subscribe(json!({"status": "unpaid"})).await;
    fixture.api.delete(&record_path(&deleted)).await;
    // Past its end, but not stored as expired yet.
    let lapsed = fixture
        .subscribe(json!({"subscription_plan_id": other}))
        .await;
    let id = lapsed["id"].as_str().unwrap().rsplit('_').next().unwrap();
    let client = fixture.service.database.connect().await;
    let sql = format!("UPDATE subscriptions SET ends_at = starts_at WHERE id = '{id}'");
    client.batch_execute(&sql).await.unwrap();
    let counts = fixture.api.get_json("/subscriptions/counts").await;
    let of = |plan: &str, slug: &str, status: &str, count: i64| {
        json!({"subscription_plan_id": plan, "subscription_plan_slug": slug, "status": status,
            "count": count, "at_least": false})
    };
    let mut by_plan = counts["by_plan"].as_array().unwrap().clone();
    by_plan.sort_by_key(ToString::to_string);
    let mut expected = vec![
        of(&fixture.plan, "pro", "active", 2),
        of(&fixture.plan, "pro", "paused", 1),
        of(&other, "other", "active", 1),
        of(&other, "other", "expired", 2),
    ];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(by_plan, expected);
    let status =
        |status: &str, count: i64| json!({"status": status, "count": count, "at_least": false});
    assert_eq!(
        counts["by_status"],
        json!([
            status("active", 3),
            status("paused", 1),
            status("expired", 2)
        ])
    );
}

#[tokio::test]
async fn counts_above_the_limit_say_at_least() {
    let fixture = SubscriptionFixture::start().await;
    let created = fixture.subscribe(json!({})).await;
    let id = created["id"].as_str().unwrap().rsplit('_').next().unwrap();
    let client = fixture.service.database.connect().await;
    let sql = format!(
        "INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle,
            billing_cycle, status, suspended, starts_at, anchor, due_at, created_at, updated_at)
         SELECT tenant_id, gen_random_uuid(), user_id, plan_id, price_minor, currency, plan_billing_cycle,
            billing_cycle, status, suspended, starts_at, anchor, due_at, created_at, updated_at
         FROM subscriptions, generate_series(1, 1200) WHERE id = '{id}'"
    );
    client.batch_execute(&sql).await.unwrap();
    let counts = fixture.api.get_json("/subscriptions/counts").await;
    let expected = json!([{"status": "active", "count": 1000, "at_least": true}]);
    assert_eq!(counts["by_status"], expected);
    let plan = &counts["by_plan"][0];
    assert_eq!(
        (&plan["count"], &plan["at_least"]),
        (&json!(1000), &json!(true))
    );
}
