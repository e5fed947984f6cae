//! `/entitlements`

use serde_json::{Value, json};

use crate::subscriptions::{SubscriptionFixture, create_plan, create_user, record_path};

async fn entitlements(fixture: &SubscriptionFixture, user: &str) -> Value {
    fixture.api.get_json(&format!("/entitlements/{user}")).await
}

/// Creates a plan and returns its id.
async fn plan(
    fixture: &SubscriptionFixture,
    slug: &str,
    tier: i32,
    quota: i32,
    features: &str,
) -> String {
    let fields = json!({"name": slug, "slug": slug, "price": 1, "billing_cycle": "monthly", "tier": tier,
        "node_quota": quota, "features": features});
    create_plan(&fixture.api, &fields).await
}

#[tokio::test]
async fn entitlements_combine_active_subscriptions() {
    let fixture = SubscriptionFixture::start().await;
    let nothing = entitlements(&fixture, &fixture.user).await;
    let expected = json!({"user_id": fixture.user, "active": false, "tier": 0, "node_quota": 0, "features": [],
        "until": null, "subscriptions": []});
    assert_eq!(nothing, expected);

    let team = plan(&fixture, "team", 2, 5, "SSO, Audit log").await;
    let extra = plan(&fixture, "extra", 1, 25, "Audit log,, API").await;
    let soon = "2090-01-01T00:00:00.000000Z";
    let one = fixture
        .subscribe(json!({"subscription_plan_id": team, "ends_at": soon}))
        .await;
    let two = fixture.subscribe(json!({"subscription_plan_id": extra, "status": "cancelled", "ends_at": "2091-01-01T00:00:00Z"})).await;
    // Subscriptions without access contribute nothing.
    let unlimited = plan(&fixture, "unlimited", 9, -1, "Everything").await;
    for mut fields in [
        json!({"status": "unpaid"}),
        json!({"is_active": false}),
        json!({"starts_at": soon}),
        json!({"ends_at": "2020-01-01T00:00:00Z"}),
    ] {
        fields["subscription_plan_id"] = json!(unlimited);
        fixture.subscribe(fields).await;
    }
    let bob = create_user(&fixture.api, "bob@example.com").await;
    fixture
        .subscribe(json!({"subscription_plan_id": unlimited, "user_id": bob}))
        .await;

    let both = entitlements(&fixture, &fixture.user).await;
    assert_eq!(
        (&both["active"], &both["tier"], &both["node_quota"]),
        (&json!(true), &json!(2), &json!(25))
    );
    assert_eq!(both["features"], json!(["SSO", "Audit log", "API"]));
    assert_eq!(both["until"], "2091-01-01T00:00:00.000000Z");
    let expected = json!([
        {"id": one["id"], "subscription_plan_id": team, "slug": "team", "status": "active", "tier": 2, "node_quota": 5,
            "features": ["SSO", "Audit log"], "renews_at": one["renews_at"], "ends_at": soon},
        {"id": two["id"], "subscription_plan_id": extra, "slug": "extra", "status": "cancelled", "tier": 1, "node_quota": 25,
            "features": ["Audit log", "API"], "renews_at": two["renews_at"], "ends_at": "2091-01-01T00:00:00.000000Z"},
    ]);
    assert_eq!(both["subscriptions"], expected);
    let bobs = entitlements(&fixture, &bob).await;
    assert_eq!(
        (&bobs["node_quota"], &bobs["until"]),
        (&json!(-1), &Value::Null)
    );
    // Changes apply to the next request.
    let path = record_path(&one);
    assert_eq!(
        fixture
            .api
            .put(&path, r#"{"is_active": false}"#)
            .await
            .status,
        200
    );
    assert_eq!(entitlements(&fixture, &fixture.user).await["tier"], 1);
    assert_eq!(fixture.api.delete(&record_path(&two)).await.status, 204);
    assert_eq!(entitlements(&fixture, &fixture.user).await["active"], false);
}

#[tokio::test]
async fn user_reads_only_own_entitlements() {
    let fixture = SubscriptionFixture::start().await;
    let tokens = fixture.api.sign_up("eve@example.com").await;
    fixture.subscribe(json!({"user_id": tokens.user()})).await;
    let browser = fixture.service.api(&["--kind", "publishable"]);
    let by_server = entitlements(&fixture, tokens.user()).await;
    for api in [&fixture.api, &browser] {
        let own = api.with_bearer(tokens.access()).get("/entitlements").await;
        assert_eq!(own.json(), by_server, "{}", own.text);
    }
    // A server names another user, and a web page cannot.
    let response = fixture.api.get("/entitlements").await;
    assert_eq!(response.problem(), "invalid_parameter");
    let response = browser.get("/entitlements").await;
    assert_eq!(response.problem(), "insufficient_scope");
    let as_eve = fixture.api.with_bearer(tokens.access());
    assert_eq!(
        as_eve
            .get(&format!("/entitlements/{}", tokens.user()))
            .await
            .json(),
        by_server
    );
    for id in [
        fixture.user.as_str(),
        "usr_01920000000070008000000000000001",
    ] {
        let response = as_eve.get(&format!("/entitlements/{id}")).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (404, "user_not_found")
        );
    }
    let unknown = fixture
        .api
        .get("/entitlements/usr_01920000000070008000000000000001")
        .await;
    assert_eq!(unknown.problem(), "user_not_found");
    let path = format!("/authentication/delete-my-account/{}", tokens.user());
    assert_eq!(as_eve.delete(&path).await.status, 204);
    let erased = fixture
        .api
        .get(&format!("/entitlements/{}", tokens.user()))
        .await;
    assert_eq!(erased.problem(), "user_not_found");
}
