//! A removed staff member, a changed role and a sign-out take effect on every instance within a second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::*;
use crate::harness::{
    in_process::InProcessServer,
    listener_faults::{FaultyInstances, ListenerFault, report, rounds, time_to_reject},
    process::{run, run_ok},
    service::InProcessService,
};

const LIMIT: Duration = Duration::from_secs(1);

/// Starts more instances and returns a client of each, the first included.
async fn instances(service: &InProcessService, value: &str) -> Vec<ApiClient> {
    let mut apis = vec![with_cookie(&service.anonymous(), value)];
    for _ in 0..3 {
        let server = Arc::new(InProcessServer::start(&service.variables).await);
        apis.push(with_cookie(&ApiClient::in_process(server), value));
    }
    for _ in 0..3 {
        for api in &apis {
            assert_eq!(api.get("/subscriptions").await.status, 200);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    apis
}

#[tokio::test]
async fn removed_member_is_out_on_every_instance_within_a_second() {
    let service = Service::start_in_process().await;
    let link = create_link(&service, &["--email", "ada@example.com"]);
    let unused = create_link(&service, &["--email", "ada@example.com"]);
    let signed_in = use_link(&service.anonymous(), &link).await;
    let apis = instances(&service, &cookie_value(&signed_in)).await;
    run_ok(&service.variables, &["staff", "remove", "ada@example.com"]);
    let removed_at = Instant::now();
    for api in &apis {
        time_to_reject(async || api.get("/subscriptions").await.status).await;
    }
    assert!(removed_at.elapsed() < LIMIT, "{:?}", removed_at.elapsed());
    let response = use_link(&service.anonymous(), &unused).await;
    response.assert_problem(401, "invalid_sign_in_link");
}

#[tokio::test]
async fn signed_out_session_is_refused_on_every_instance_within_a_second() {
    let service = Service::start_in_process().await;
    let signed_in = use_link(&service.anonymous(), &create_link(&service, &[])).await;
    let apis = instances(&service, &cookie_value(&signed_in)).await;
    assert_eq!(apis[0].delete("/console/session").await.status, 204);
    let ended_at = Instant::now();
    for api in &apis {
        time_to_reject(async || api.get("/subscriptions").await.status).await;
    }
    assert!(ended_at.elapsed() < LIMIT, "{:?}", ended_at.elapsed());
}

#[tokio::test]
async fn changed_role_applies_on_every_instance_within_a_second() {
    let service = Service::start_in_process().await;
    let link = create_link(&service, &["--email", "ada@example.com", "--role", "admin"]);
    let signed_in = use_link(&service.anonymous(), &link).await;
    let apis = instances(&service, &cookie_value(&signed_in)).await;
    let arguments = [
        "console",
        "link",
        "--email",
        "ada@example.com",
        "--role",
        "viewer",
    ];
    run_ok(&service.variables, &arguments);
    let changed_at = Instant::now();
    for api in &apis {
        time_to_reject(async || match api.get("/staff").await.status {
            403 => 401,
            status => status,
        })
        .await;
        assert_eq!(api.get("/subscriptions").await.status, 200);
    }
    assert!(changed_at.elapsed() < LIMIT, "{:?}", changed_at.elapsed());
}

/// Removes members during a fault of the notifications, and measures how long two instances accept them.
async fn remove_during(fault: ListenerFault) {
    let instances = FaultyInstances::start().await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let arguments = ["console", "link", "--json", "--email", "ada@example.com"];
        let printed: Value =
            serde_json::from_str(&run_ok(&instances.variables, &arguments)).unwrap();
        let servers = [&instances.first, &instances.second];
        let signed_in = use_link(&ApiClient::new(&servers[0].url), &secret_of(&printed)).await;
        let value = cookie_value(&signed_in);
        let apis = servers.map(|server| with_cookie(&ApiClient::new(&server.url), &value));
        for api in &apis {
            assert_eq!(api.get("/subscriptions").await.status, 200);
        }
        let injected = instances.inject(fault).await;
        run(
            &instances.variables,
            &["staff", "remove", "ada@example.com"],
        );
        for api in &apis {
            times.push(time_to_reject(async || api.get("/subscriptions").await.status).await);
        }
        drop(injected);
    }
    report(fault, times);
}

#[tokio::test]
async fn removed_member_is_refused_while_the_listener_is_frozen() {
    remove_during(ListenerFault::Frozen).await;
}

#[tokio::test]
async fn removed_member_is_refused_while_notifications_are_lost() {
    remove_during(ListenerFault::Lost).await;
}
