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
async fn unknown_slug_returns_not_found() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let long = format!("/subscription-plans/{}", "x".repeat(300));
    for path in [
        "/subscription-plans/none",
        "/subscription-plans/%2e%2e%2e",
        "/subscription-plans/a%2fb",
        "/subscription-plans/a%00b",
        "/subscription-plans/%27%3b%20drop%20table%20events%3b--",
        "/subscription-plans/%25",
        "/subscription-plans/_",
        long.as_str(),
    ] {
        let response = api.get(path).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (404, "plan_not_found"),
            "{path}"
        );
    }
    for path in [
        "/nothing",
        "/subscription-plans/a/b",
        "/subscription-plans/",
        "/subscription-plans/%ff",
    ] {
        let response = api.get(path).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (404, "not_found"),
            "{path}"
        );
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
