//! `GET /subscription-plans/{slug}`

use super::minimal_plan;
use crate::harness::service::Service;

#[tokio::test]
async fn plan_is_found_by_slug_in_any_case() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let created = api
        .post("/subscription-plans", &minimal_plan("Pro-1").to_string())
        .await;
    for path in [
        "/subscription-plans/Pro-1",
        "/subscription-plans/pro-1",
        "/subscription-plans/PRO%2d1",
    ] {
        let response = api.get(path).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.text, created.text);
        assert_eq!(response.header("content-type"), "application/json");
    }
    // Repeated, so that every pipelined connection prepares and runs the statement.
    for _ in 0..10 {
        assert_eq!(api.get("/subscription-plans/pro-1").await.status, 200);
    }
}

#[tokio::test]
async fn publishable_client_sees_only_active_plans() {
    let service = Service::start_in_process().await;
    let server = service.api(&[]);
    let browser = service.api(&["--kind", "publishable"]);
    server
        .post("/subscription-plans", &minimal_plan("active").to_string())
        .await;
    let inactive = minimal_plan("inactive")
        .to_string()
        .replacen('{', r#"{"is_active":false,"#, 1);
    assert_eq!(
        server.post("/subscription-plans", &inactive).await.status,
        201
    );

    assert_eq!(server.get("/subscription-plans/inactive").await.status, 200);
    assert_eq!(browser.get("/subscription-plans/active").await.status, 200);
    let hidden = browser.get("/subscription-plans/inactive").await;
    let missing = browser.get("/subscription-plans/missing").await;
    assert_eq!(
        (hidden.status, hidden.problem().as_str()),
        (404, "plan_not_found")
    );
    // A hidden plan cannot be distinguished from one that does not exist.
    assert_eq!(
        hidden.json()["detail"]
            .as_str()
            .unwrap()
            .replace("inactive", "missing"),
        missing.json()["detail"].as_str().unwrap()
    );
}

#[tokio::test]
async fn plan_is_found_by_id() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = api
        .create("/subscription-plans", &minimal_plan("pro"))
        .await;
    let id = plan["id"].as_str().unwrap();
    assert_eq!(
        api.get_json(&format!("/subscription-plans/{id}")).await,
        plan
    );
    let bare = id.trim_start_matches("plan_");
    assert_eq!(
        api.get_json(&format!("/subscription-plans/{bare}")).await,
        plan
    );
    // A slug takes precedence.
    let other = api.create("/subscription-plans", &minimal_plan(id)).await;
    assert_eq!(
        api.get_json(&format!("/subscription-plans/{id}")).await,
        other
    );
    assert_eq!(api.delete("/subscription-plans/pro").await.status, 204);
    let gone = api.get(&format!("/subscription-plans/{bare}")).await;
    gone.assert_problem(404, "plan_not_found");
}

#[tokio::test]
async fn user_reads_inactive_plan_of_own_subscription() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = api
        .create("/subscription-plans", &minimal_plan("old"))
        .await;
    let [ada, bob] = [
        api.sign_up("ada@example.com").await,
        api.sign_up("bob@example.com").await,
    ];
    let fields = serde_json::json!({"user_id": ada.user(), "subscription_plan_id": plan["id"]});
    api.create("/subscriptions", &fields).await;
    let inactive = api
        .put("/subscription-plans/old", r#"{"is_active": false}"#)
        .await;
    assert_eq!(inactive.status, 200);
    let browser = service.api(&["--kind", "publishable"]);
    for path in [
        "/subscription-plans/old".to_owned(),
        format!("/subscription-plans/{}", plan["id"].as_str().unwrap()),
    ] {
        for client in [&api, &browser] {
            let own = client.with_bearer(ada.access()).get(&path).await;
            assert_eq!(own.status, 200, "{path}: {}", own.text);
            let other = client.with_bearer(bob.access()).get(&path).await;
            other.assert_problem(404, "plan_not_found");
        }
        browser
            .get(&path)
            .await
            .assert_problem(404, "plan_not_found");
    }
}
