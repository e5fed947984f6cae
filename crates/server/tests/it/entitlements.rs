//! `/entitlements`

use serde_json::{Value, json};

use crate::subscriptions::{Stage, make_plan, make_user};

async fn of(stage: &Stage, user: &str) -> Value {
    let answer = stage.caller.get(&format!("/entitlements/{user}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// A plan with these, and its id.
async fn plan(stage: &Stage, slug: &str, tier: i32, quota: i32, features: &str) -> String {
    let fields = json!({"name": slug, "slug": slug, "price": 1, "billing_cycle": "monthly", "tier": tier,
        "node_quota": quota, "features": features});
    make_plan(&stage.caller, &fields).await
}

#[tokio::test]
async fn of_all_that_somebody_has() {
    let stage = Stage::start().await;
    let nothing = of(&stage, &stage.user).await;
    let expected = json!({"user_id": stage.user, "active": false, "tier": 0, "node_quota": 0, "features": [],
        "until": null, "subscriptions": []});
    assert_eq!(nothing, expected);

    let team = plan(&stage, "team", 2, 5, "SSO, Audit log").await;
    let extra = plan(&stage, "extra", 1, 25, "Audit log,, API").await;
    let soon = "2090-01-01T00:00:00Z";
    let one = stage
        .subscribe(json!({"subscription_plan_id": team, "ends_at": soon}))
        .await;
    let two = stage.subscribe(json!({"subscription_plan_id": extra, "status": "cancelled", "ends_at": "2091-01-01T00:00:00Z"})).await;
    // What gives no access gives nothing.
    let unlimited = plan(&stage, "unlimited", 9, -1, "Everything").await;
    for further in [
        json!({"status": "unpaid"}),
        json!({"is_active": false}),
        json!({"starts_at": soon}),
        json!({"ends_at": "2020-01-01T00:00:00Z"}),
    ] {
        let mut further = further;
        further["subscription_plan_id"] = json!(unlimited);
        stage.subscribe(further).await;
    }
    let bob = make_user(&stage.caller, "bob@example.com").await;
    stage
        .subscribe(json!({"subscription_plan_id": unlimited, "user_id": bob}))
        .await;

    let both = of(&stage, &stage.user).await;
    assert_eq!(
        (&both["active"], &both["tier"], &both["node_quota"]),
        (&json!(true), &json!(2), &json!(25))
    );
    assert_eq!(both["features"], json!(["SSO", "Audit log", "API"]));
    assert_eq!(both["until"], "2091-01-01T00:00:00Z");
    let expected = json!([
        {"id": one["id"], "subscription_plan_id": team, "slug": "team", "status": "active", "tier": 2, "node_quota": 5,
            "features": ["SSO", "Audit log"], "renews_at": one["renews_at"], "ends_at": soon},
        {"id": two["id"], "subscription_plan_id": extra, "slug": "extra", "status": "cancelled", "tier": 1, "node_quota": 25,
            "features": ["Audit log", "API"], "renews_at": two["renews_at"], "ends_at": "2091-01-01T00:00:00Z"},
    ]);
    assert_eq!(both["subscriptions"], expected);
    let bobs = of(&stage, &bob).await;
    assert_eq!(
        (&bobs["node_quota"], &bobs["until"]),
        (&json!(-1), &Value::Null)
    );
    // Never stale: a change is there with the next question.
    let path = crate::subscriptions::path_of(&one);
    assert_eq!(
        stage
            .caller
            .put(&path, r#"{"is_active": false}"#)
            .await
            .status,
        200
    );
    assert_eq!(of(&stage, &stage.user).await["tier"], 1);
    assert_eq!(
        stage
            .caller
            .delete(&crate::subscriptions::path_of(&two))
            .await
            .status,
        204
    );
    assert_eq!(of(&stage, &stage.user).await["active"], false);
}

#[tokio::test]
async fn ones_own() {
    let stage = Stage::start().await;
    let tokens = stage.caller.sign_up("eve@example.com").await;
    stage.subscribe(json!({"user_id": tokens.user()})).await;
    let page = stage.service.caller(&["--kind", "publishable"]);
    let by_server = of(&stage, tokens.user()).await;
    for caller in [&stage.caller, &page] {
        let own = caller
            .on_behalf_of(tokens.access())
            .get("/entitlements")
            .await;
        assert_eq!(own.json(), by_server, "{}", own.text);
        assert_eq!(caller.get("/entitlements").await.problem(), "invalid_token");
    }
    let as_eve = stage.caller.on_behalf_of(tokens.access());
    assert_eq!(
        as_eve
            .get(&format!("/entitlements/{}", tokens.user()))
            .await
            .json(),
        by_server
    );
    for id in [stage.user.as_str(), "usr_01920000000070008000000000000001"] {
        let answer = as_eve.get(&format!("/entitlements/{id}")).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (404, "user_not_found")
        );
    }
    let nobody = stage
        .caller
        .get("/entitlements/usr_01920000000070008000000000000001")
        .await;
    assert_eq!(nobody.problem(), "user_not_found");
    let path = format!("/authentication/delete-my-account/{}", tokens.user());
    assert_eq!(as_eve.delete(&path).await.status, 204);
    let erased = stage
        .caller
        .get(&format!("/entitlements/{}", tokens.user()))
        .await;
    assert_eq!(erased.problem(), "user_not_found");
}
