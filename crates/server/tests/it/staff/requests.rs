//! Requests with a staff member's cookie: cross-site requests, other credentials, limits.

use reqwest::Method;
use serde_json::json;

use super::*;
use crate::subscription_plans::minimal_plan;

/// A request without the headers of a browser.
fn without_page(api: &ApiClient, value: &str) -> ApiClient {
    api.with("cookie", &format!("{COOKIE}={value}"))
}

#[tokio::test]
async fn cross_site_requests_are_refused() {
    let service = Service::start_in_process().await;
    let api = service.anonymous();
    let signed_in = use_link(&api, &create_link(&service, &[])).await;
    let staff = without_page(&api, &cookie_value(&signed_in));
    let sites = ["cross-site", "same-site", "none", "Same-Origin", ""];
    let foreign = sites.map(|site| staff.with("sec-fetch-site", site));
    let origin = staff.with("origin", "https://evil.example");
    let both = page(&staff).with("sec-fetch-site", "cross-site");
    let plan = minimal_plan("ours").to_string();
    for client in foreign.iter().chain([&staff, &origin, &both]) {
        for (method, path) in [
            (Method::POST, "/subscription-plans"),
            (Method::PUT, "/subscription-plans/ours"),
            (Method::DELETE, "/subscription-plans/ours"),
            (Method::POST, "/staff"),
            (Method::DELETE, "/console/session"),
            (Method::PUT, "/console/session"),
        ] {
            let client = client.with("content-type", "application/json");
            let body = plan.clone().into_bytes();
            let response = client.send(method, path, Some(body)).await;
            response.assert_problem(403, "cross_site_request");
        }
    }
    // Reading needs no page, but a page of another site cannot read.
    assert_eq!(staff.get("/subscriptions").await.status, 200);
    let typed = staff.with("sec-fetch-site", "none");
    assert_eq!(typed.get("/subscriptions").await.status, 200);
    for client in [&foreign[0], &foreign[1], &origin, &both] {
        for path in ["/subscriptions", "/console/session"] {
            client
                .get(path)
                .await
                .assert_problem(403, "cross_site_request");
        }
    }
    assert_eq!(
        page(&staff).get("/subscription-plans").await.json()["data"],
        json!([])
    );
    assert_eq!(
        page(&staff).post("/subscription-plans", &plan).await.status,
        201
    );
}

#[tokio::test]
async fn sign_in_from_another_site_is_refused() {
    let service = Service::start_in_process().await;
    let (api, secret) = (service.anonymous(), create_link(&service, &[]));
    let body = json!({"link": secret}).to_string();
    for site in ["cross-site", "same-site", "none"] {
        let client = api.with("sec-fetch-site", site);
        let response = client.post("/console/session", &body).await;
        response.assert_problem(403, "cross_site_request");
    }
    let response = api.post("/console/session", &body).await;
    response.assert_problem(403, "cross_site_request");
    let form = page(&api).with("content-type", "application/x-www-form-urlencoded");
    let response = form
        .send(Method::POST, "/console/session", Some(body.into_bytes()))
        .await;
    response.assert_problem(415, "unsupported_media_type");
    // None of them has used the link up.
    assert_eq!(use_link(&api, &secret).await.status, 201);
}

#[tokio::test]
async fn forms_cannot_change_anything() {
    let service = Service::start_in_process().await;
    let staff = sign_in(&service, &[]).await;
    for media_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let form = staff.with("content-type", media_type);
        let body = Some(minimal_plan("ours").to_string().into_bytes());
        let response = form.send(Method::POST, "/subscription-plans", body).await;
        response.assert_problem(415, "unsupported_media_type");
    }
}

/// The `client-id` wins, valid or not.
#[tokio::test]
async fn client_id_wins_over_the_cookie() {
    let service = Service::start_in_process().await;
    let staff = sign_in(&service, &["--role", "admin"]).await;
    let (_, key) = service.create_client(&["--kind", "publishable"]);
    let both = staff.with("client-id", &key);
    let problem = both.get("/staff").await;
    problem.assert_problem(403, "insufficient_scope");
    let unknown = staff.with("client-id", "prn_sk_unknown");
    unknown
        .get("/staff")
        .await
        .assert_problem(401, "invalid_client");
    let twice = both.with("client-id", &key);
    twice
        .get("/staff")
        .await
        .assert_problem(401, "invalid_client");
    let problem = both.get("/console/session").await;
    problem.assert_problem(401, "invalid_staff_session");
    // A secret client is still refused in a browser.
    let (_, key) = service.create_client(&[]);
    let live = staff
        .with("client-id", &key)
        .with("origin", "https://a.example");
    let problem = live.get("/subscriptions").await;
    problem.assert_problem(403, "secret_client_in_browser");
}

#[tokio::test]
async fn staff_member_cannot_act_for_a_user() {
    let service = Service::start_in_process().await;
    let tokens = service.api(&[]).sign_up("user@example.com").await;
    let staff = sign_in(&service, &[]).await.with_bearer(tokens.access());
    for path in [
        "/subscriptions",
        "/users?email=user@example.com",
        "/subscription-plans",
    ] {
        staff.get(path).await.assert_problem(403, "not_for_users");
    }
}

#[tokio::test]
async fn requests_are_limited_per_staff_member() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_CLIENT", "20".to_owned());
        variables.insert("PERENNIAL_RATE_PER_PEER", "0".to_owned());
    })
    .await;
    let ada = sign_in(&service, &["--email", "ada@example.com"]).await;
    let bob = sign_in(&service, &["--email", "bob@example.com"]).await;
    // The second session of a member shares the member's limit.
    let again = sign_in(&service, &["--email", "ada@example.com"]).await;
    let mut limited = 0;
    for _ in 0..30 {
        for client in [&ada, &again] {
            let response = client.get("/subscription-plans").await;
            let policy = response.header("ratelimit-policy");
            assert_eq!(policy, "\"staff member\";q=20;w=1");
            if response.status == 429 {
                response.assert_problem(429, "rate_limited");
                limited += 1;
            }
        }
    }
    assert!(limited > 0);
    assert_eq!(bob.get("/subscription-plans").await.status, 200);
}

#[tokio::test]
async fn unknown_cookies_count_against_the_address() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_PEER", "10".to_owned());
    })
    .await;
    let guesses = with_cookie(&service.anonymous(), "x");
    let mut limited = false;
    for _ in 0..30 {
        limited |= guesses.get("/subscription-plans").await.status == 429;
    }
    assert!(limited);
}

#[tokio::test]
async fn same_key_of_two_staff_members_is_two_requests() {
    let service = Service::start_in_process().await;
    let key = |api: ApiClient| api.with("idempotency-key", "k");
    let ada = key(sign_in(&service, &["--email", "ada@example.com"]).await);
    let bob = key(sign_in(&service, &["--email", "bob@example.com"]).await);
    let user = json!({"email": "user@example.com"}).to_string();
    assert_eq!(ada.post("/users", &user).await.status, 201);
    let replayed = ada.post("/users", &user).await;
    assert_eq!(replayed.header("idempotency-replayed"), "true");
    bob.post("/users", &user)
        .await
        .assert_problem(409, "email_in_use");
}
