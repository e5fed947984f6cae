//! Sign-in links and sessions.

use serde_json::json;

use super::*;
use crate::harness::{service::InProcessService, wait_until};
use std::time::Duration;

#[tokio::test]
async fn link_signs_in_once() {
    let service = Service::start_in_process().await;
    let api = service.anonymous();
    let secret = create_link(
        &service,
        &["--email", "Ada@example.com", "--role", "support"],
    );
    let response = use_link(&api, &secret).await;
    assert_eq!(response.status, 201, "{}", response.text);
    assert_eq!(response.header("cache-control"), "no-store");
    let cookie = response.header("set-cookie");
    let value = cookie_value(&response);
    assert_eq!(value.len(), 43, "256 bits in Base64");
    assert_eq!(
        cookie,
        format!("{COOKIE}={value}; Path=/; Max-Age=43200; Secure; HttpOnly; SameSite=Strict")
    );
    let session = response.json();
    assert_eq!(session["staff_member"]["email"], "Ada@example.com");
    assert_eq!(session["staff_member"]["role"], "support");
    assert_eq!(session["tenant"]["name"], "default");
    assert_eq!(session["tenants"], json!([session["tenant"]]));
    assert_eq!(session["mode"], "sandbox");
    let scopes = session["staff_member"]["scopes"].as_array().unwrap();
    assert!(scopes.contains(&json!("subscriptions:write")) && !scopes.contains(&json!("auth")));

    let staff = with_cookie(&api, &value);
    let read = staff.get_json("/console/session").await;
    assert_eq!(read["staff_member"], session["staff_member"]);
    assert_eq!(staff.get("/subscriptions").await.status, 200);
    use_link(&api, &secret)
        .await
        .assert_problem(401, "invalid_sign_in_link");
    // The session of the first use is unaffected.
    assert_eq!(staff.get("/console/session").await.status, 200);
}

#[tokio::test]
async fn concurrent_uses_of_a_link_create_one_session() {
    let service = Service::start_in_process().await;
    let secret = create_link(&service, &[]);
    let api = service.anonymous();
    let uses = (0..8).map(|_| {
        let (api, secret) = (api.clone(), secret.clone());
        tokio::spawn(async move { use_link(&api, &secret).await.status })
    });
    let mut statuses = Vec::new();
    for used in uses.collect::<Vec<_>>() {
        statuses.push(used.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 401, 401, 401, 401, 401, 401, 401]);
    assert_eq!(
        service.count("SELECT count(*) FROM staff_sessions").await,
        1
    );
}

#[tokio::test]
async fn unknown_and_expired_links_are_refused() {
    let service = Service::start_in_process().await;
    let api = service.anonymous();
    let expired = create_link(&service, &[]);
    let database = service.database.connect().await;
    let expire = "UPDATE staff_links SET expires_at = expires_at - interval '10 minutes'";
    database.execute(expire, &[]).await.unwrap();
    for secret in [expired.as_str(), "x", &"A".repeat(43)] {
        let response = use_link(&api, secret).await;
        response.assert_problem(401, "invalid_sign_in_link");
        assert_eq!(response.header("set-cookie"), "");
    }
    // Nothing in the database can be used as a link.
    let fresh = create_link(&service, &[]);
    let stored =
        "SELECT encode(token_hash, 'hex') FROM staff_links ORDER BY expires_at DESC LIMIT 1";
    let row = database.query_one(stored, &[]).await.unwrap();
    let hash: String = row.get(0);
    use_link(&api, &hash)
        .await
        .assert_problem(401, "invalid_sign_in_link");
    assert_eq!(use_link(&api, &fresh).await.status, 201);
}

async fn assert_signed_out(staff: &ApiClient) {
    let limit = Duration::from_secs(1);
    wait_until("the session has ended", limit, async || {
        staff.get("/console/session").await.status == 401
    })
    .await;
    let problem = staff.get("/console/session").await;
    problem.assert_problem(401, "invalid_staff_session");
    let problem = staff.get("/subscriptions").await;
    problem.assert_problem(401, "invalid_staff_session");
}

/// Changes the times of all sessions, and clears the caches as after each change.
async fn age_sessions(service: &InProcessService, assignments: &str) {
    let database = service.database.connect().await;
    let update = format!("UPDATE staff_sessions SET {assignments}");
    database.execute(&update, &[]).await.unwrap();
    let notify = "NOTIFY perennial_clients, 'staff'";
    database.batch_execute(notify).await.unwrap();
}

#[tokio::test]
async fn session_ends_at_sign_out() {
    let service = Service::start_in_process().await;
    let (staff, other) = (sign_in(&service, &[]).await, sign_in(&service, &[]).await);
    let response = staff.delete("/console/session").await;
    assert_eq!(response.status, 204);
    let removed = format!("{COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict");
    assert_eq!(response.header("set-cookie"), removed);
    assert_signed_out(&staff).await;
    assert_eq!(other.get("/console/session").await.status, 200);
}

#[tokio::test]
async fn session_ends_after_twelve_hours() {
    let service = Service::start_in_process().await;
    let staff = sign_in(&service, &[]).await;
    age_sessions(
        &service,
        "expires_at = expires_at - interval '11 hours 59 minutes'",
    )
    .await;
    assert_eq!(staff.get("/console/session").await.status, 200);
    age_sessions(&service, "expires_at = expires_at - interval '1 minute'").await;
    assert_signed_out(&staff).await;
}

#[tokio::test]
async fn session_ends_after_an_hour_without_a_request() {
    let service = Service::start_in_process().await;
    let staff = sign_in(&service, &[]).await;
    age_sessions(
        &service,
        "last_used_at = last_used_at - interval '59 minutes'",
    )
    .await;
    let limit = Duration::from_secs(5);
    // A request is a use of the session.
    let recent =
        "SELECT count(*) FROM staff_sessions WHERE last_used_at > now() - interval '1 minute'";
    wait_until("the use is stored", limit, async || {
        assert_eq!(staff.get("/subscriptions").await.status, 200);
        service.count(recent).await == 1
    })
    .await;
    age_sessions(
        &service,
        "last_used_at = last_used_at - interval '61 minutes'",
    )
    .await;
    assert_signed_out(&staff).await;
}

#[tokio::test]
async fn wrong_cookies_are_refused() {
    let service = Service::start_in_process().await;
    let api = service.anonymous();
    for value in ["x", &"A".repeat(43), &"A".repeat(5_000)] {
        let problem = with_cookie(&api, value).get("/console/session").await;
        problem.assert_problem(401, "invalid_staff_session");
    }
    let problem = page(&api).get("/console/session").await;
    problem.assert_problem(401, "invalid_staff_session");
    let problem = page(&api).get("/subscriptions").await;
    problem.assert_problem(401, "invalid_client");
    // Two cookies, one of which another host could have set.
    let staff = sign_in(&service, &[]).await;
    let twice = staff.with("cookie", &format!("{COOKIE}=x"));
    let problem = twice.get("/console/session").await;
    problem.assert_problem(401, "invalid_staff_session");
}

#[tokio::test]
async fn member_of_all_tenants_switches_the_tenant() {
    let service = Service::start_in_process().await;
    service.run_json(&["tenant", "create", "--name", "other", "--json"]);
    let staff = sign_in(&service, &[]).await;
    let session = staff.get_json("/console/session").await;
    assert_eq!(session["tenant"]["name"], "default");
    assert_eq!(session["tenants"].as_array().unwrap().len(), 2);
    let plan = crate::subscription_plans::minimal_plan("here").to_string();
    assert_eq!(staff.post("/subscription-plans", &plan).await.status, 201);

    let other = json!({"tenant_id": session["tenants"][1]["id"]}).to_string();
    let switched = staff.put("/console/session", &other).await;
    assert_eq!(switched.status, 200, "{}", switched.text);
    assert_eq!(switched.json()["tenant"]["name"], "other");
    assert_eq!(switched.json()["expires_at"], session["expires_at"]);
    let there = with_cookie(&service.anonymous(), &cookie_value(&switched));
    let problem = there.get("/subscription-plans/here").await;
    problem.assert_problem(404, "plan_not_found");
    assert_signed_out(&staff).await;

    let unknown = json!({"tenant_id": "ten_01920000000070008000000000000001"}).to_string();
    let problem = there.put("/console/session", &unknown).await;
    problem.assert_problem(422, "unknown_reference");
    // A member of one tenant sees and can choose only that one.
    let limited = sign_in(&service, &["--tenant", "other"]).await;
    let session = limited.get_json("/console/session").await;
    assert_eq!(session["tenants"], json!([session["tenant"]]));
    let default = there.get_json("/console/session").await["tenants"][0]["id"].clone();
    let default = json!({"tenant_id": default}).to_string();
    let problem = limited.put("/console/session", &default).await;
    problem.assert_problem(422, "unknown_reference");
}

#[tokio::test]
async fn sessions_end_when_their_tenant_is_deleted() {
    let service = Service::start_in_process().await;
    service.run_json(&["tenant", "create", "--name", "other", "--json"]);
    let member = sign_in(
        &service,
        &["--tenant", "other", "--email", "ada@example.com"],
    )
    .await;
    assert_eq!(member.get("/subscriptions").await.status, 200);
    crate::harness::process::run_ok(&service.variables, &["tenant", "delete", "other"]);
    assert_signed_out(&member).await;
}
