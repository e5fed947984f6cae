//! Staff members in the event log.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    harness::{process::run_ok, wait_until},
    subscription_plans::minimal_plan,
};

/// Returns kind and data of the events about staff members, oldest first.
async fn staff_events<S>(service: &Service<S>) -> Vec<(String, Value)> {
    let database = service.database.connect().await;
    let rows = database
        .query(
            "SELECT kind, jsonb_build_object('subject', subject_id, 'staff', staff_id, 'operator', operator IS NOT NULL,
                'client', client_id IS NOT NULL, 'request', request_id IS NOT NULL, 'data', data)::text
             FROM events WHERE kind LIKE 'staff.%' ORDER BY seq",
            &[],
        )
        .await
        .unwrap();
    rows.iter()
        .map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap()))
        .collect()
}

#[tokio::test]
async fn sign_ins_and_changes_of_members_are_recorded() {
    let service = Service::start_in_process().await;
    let admin = sign_in(&service, &["--email", "ada@example.com"]).await;
    let bob = json!({"email": "bob@example.com", "role": "viewer"});
    let invited = admin.create("/staff", &bob).await;
    let path = format!("/staff/{}", invited["id"].as_str().unwrap());
    assert_eq!(admin.put(&path, r#"{"role": "support"}"#).await.status, 200);
    assert_eq!(admin.put(&path, r#"{"role": "support"}"#).await.status, 200);
    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(admin.delete("/console/session").await.status, 204);
    let events = staff_events(&service).await;
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "staff.invited",
            "staff.signed_in",
            "staff.invited",
            "staff.changed",
            "staff.removed",
            "staff.signed_out"
        ]
    );
    let ada = &events[0].1["subject"];
    assert_eq!(events[0].1["operator"], true);
    assert_eq!(events[0].1["data"]["all_tenants"], true);
    assert_eq!(events[3].1["data"]["previous"], json!({"role": "viewer"}));
    assert_eq!(events[3].1["data"]["role"], "support");
    for (kind, event) in &events[1..] {
        assert_eq!(event["staff"], *ada, "{kind}");
        let author = [&event["operator"], &event["client"], &event["request"]];
        assert_eq!(
            author,
            [&json!(false), &json!(false), &json!(true)],
            "{kind}"
        );
    }
    for (kind, event) in &events {
        assert!(
            !event.to_string().contains("example.com"),
            "{kind}: {event}"
        );
    }
}

#[tokio::test]
async fn change_of_a_member_of_all_tenants_is_in_the_log_of_each() {
    let service = Service::start_in_process().await;
    service.run_json(&["tenant", "create", "--name", "other", "--json"]);
    let invite = ["staff", "invite", "ada@example.com", "--role", "admin"];
    run_ok(&service.variables, &invite);
    run_ok(&service.variables, &["staff", "remove", "ada@example.com"]);
    let count = "SELECT count(DISTINCT (tenant_id, kind)) FROM events WHERE kind LIKE 'staff.%'";
    assert_eq!(service.count(count).await, 4);
}

#[tokio::test]
async fn changes_name_the_staff_member() {
    // The worker gives events their positions.
    let service = Service::start().await;
    let client = service.api(&[]);
    client
        .create("/subscription-plans", &minimal_plan("pro"))
        .await;
    let ada = sign_in(
        &service,
        &["--email", "ada@example.com", "--role", "support"],
    )
    .await;
    let id = ada.get_json("/console/session").await["staff_member"]["id"].clone();
    let user = ada
        .create("/users", &json!({"email": "user@example.com"}))
        .await;
    let plan = client.get_json("/subscription-plans/pro").await;
    let fields = json!({"user_id": user["id"], "subscription_plan_id": plan["id"]});
    let subscription = ada.create("/subscriptions", &fields).await;
    let actor = json!({"type": "staff", "id": id});

    let limit = Duration::from_secs(10);
    wait_until("the event has a position", limit, async || {
        let events = client.get_json("/events?types=subscription.created").await;
        events["data"][0]["actor"] == actor
    })
    .await;
    let user = user["id"].as_str().unwrap();
    let timeline = client.get_json(&format!("/users/{user}/timeline")).await;
    for entry in timeline["entries"].as_array().unwrap() {
        assert_eq!(entry["actor"], actor);
        assert_eq!(entry["staff_email"], "ada@example.com");
        assert_eq!(entry["client_name"], Value::Null);
    }
    // The user does not learn who it was.
    let tokens = client.sign_up("user@example.com").await;
    let own = client.with_bearer(tokens.access());
    let timeline = own.get_json(&format!("/users/{user}/timeline")).await;
    let created = { timeline["entries"].as_array().unwrap().iter() }
        .find(|entry| entry["type"] == "subscription.created");
    let created = created.unwrap();
    assert_eq!(created["actor"], json!({"type": "staff", "id": null}));
    assert_eq!(created["staff_email"], Value::Null);

    // Also after the member is removed.
    run_ok(&service.variables, &["staff", "remove", "ada@example.com"]);
    let subscription = subscription["id"].as_str().unwrap();
    for arguments in [
        ["user", "show", user],
        ["subscription", "show", subscription],
    ] {
        let shown = run_ok(&service.variables, &arguments);
        assert!(shown.contains("by staff member ada@example.com"), "{shown}");
    }
    let shown = service.run_json(&["user", "show", user, "--json"]);
    assert_eq!(
        shown["events"][0]["recorded_by"]["staff_email"],
        "ada@example.com"
    );
}

/// Events about staff are for operators, like those about clients.
#[tokio::test]
async fn events_about_staff_are_not_public() {
    let service = Service::start_in_process().await;
    let admin = sign_in(&service, &[]).await;
    let events = admin.get_json("/events").await;
    assert!(!events.to_string().contains("staff."), "{events}");
    let response = admin.get("/events?types=staff.signed_in").await;
    assert_eq!(response.status, 400, "{}", response.text);
}

#[tokio::test]
async fn export_of_a_user_is_recorded() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let user = api.sign_up("ada@example.com").await;
    let path = format!("/users/{}/export", user.user());
    let viewer = sign_in(
        &service,
        &["--email", "vera@example.com", "--role", "viewer"],
    )
    .await;
    let exported = viewer.post(&path, "").await;
    assert_eq!(exported.status, 200, "{}", exported.text);
    assert_eq!(exported.header("cache-control"), "no-store");
    let events = staff_events(&service).await;
    let (kind, event) = events.last().unwrap();
    assert_eq!(kind, "staff.exported");
    assert_eq!(event["data"], json!({"user_id": user.user()}));
    assert_eq!(event["staff"], event["subject"]);
    assert_eq!(event["request"], true);

    // The export of an API key has no event, and neither has one of a user that does not exist.
    assert_eq!(api.post(&path, "").await.status, 200);
    let unknown = "/users/usr_01920000000070008000000000000001/export";
    viewer
        .post(unknown, "")
        .await
        .assert_problem(404, "user_not_found");
    assert_eq!(staff_events(&service).await.len(), events.len());
}
