//! `GET /subscription-plans/{slug}`

use super::minimal;
use crate::harness::service::Service;

#[tokio::test]
async fn by_its_slug_in_any_case() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let created = caller
        .post("/subscription-plans", &minimal("Pro-1").to_string())
        .await;
    for path in [
        "/subscription-plans/Pro-1",
        "/subscription-plans/pro-1",
        "/subscription-plans/PRO%2d1",
    ] {
        let answer = caller.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.text, created.text);
        assert_eq!(answer.header("content-type"), "application/json");
    }
    // The prepared statement on every lane finds it too.
    for _ in 0..10 {
        assert_eq!(caller.get("/subscription-plans/pro-1").await.status, 200);
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
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
        let answer = caller.get(path).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (404, "plan_not_found"),
            "{path}"
        );
    }
    for path in [
        "/",
        "/nothing",
        "/subscription-plans/a/b",
        "/subscription-plans/",
        "/subscription-plans/%ff",
    ] {
        let answer = caller.get(path).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (404, "not_found"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn publishable_clients_see_active_plans_only() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let browser = service.caller(&["--kind", "publishable"]);
    server
        .post("/subscription-plans", &minimal("active").to_string())
        .await;
    let inactive = minimal("inactive")
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
    // Nothing tells a hidden plan from one that does not exist.
    assert_eq!(
        hidden.json()["detail"]
            .as_str()
            .unwrap()
            .replace("inactive", "missing"),
        missing.json()["detail"].as_str().unwrap()
    );
}
