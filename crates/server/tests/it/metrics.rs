//! `/metrics`: help texts, and the series that the alerts in `deploy/prometheus` need.

use std::{collections::BTreeSet, time::Duration};

use crate::harness::{
    cluster::Cluster,
    database::Database,
    identity_provider::{FakeIssuer, add_provider},
    process::{Process, Server, http_get, sandbox},
    reserve_port,
    service::Service,
    wait_until,
};

const CAUGHT_UP: &str = r#"perennial_notifications_caught_up{cell="home"}"#;
const KEY_STARTED: &str = "perennial_signing_key_started_timestamp_seconds ";

#[tokio::test]
async fn every_exposed_metric_has_help() {
    let service = Service::start().await;
    let api = service.api(&[]);
    api.sign_up("ada@example.com").await;
    api.get("/subscription-plans/none").await;
    service.anonymous().get("/subscription-plans/none").await;
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    let names = |keyword: &str| -> BTreeSet<String> {
        let lines = metrics
            .lines()
            .filter_map(|line| line.strip_prefix(keyword));
        lines
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    };
    let typed = names("# TYPE ");
    assert!(typed.len() > 10, "{metrics}");
    assert_eq!(typed, names("# HELP "));
}

#[tokio::test]
async fn provider_failures_are_counted_by_issuer() {
    let service = Service::start().await;
    let issuer = "http://127.0.0.1:1";
    add_provider(&service.variables, issuer);
    let fake_issuer = FakeIssuer::start().await;
    let token = fake_issuer.token_with("iss", Some(&format!("\"{issuer}\"")));
    let api = service.api(&[]);
    for _ in 0..2 {
        let response = api.authenticate("sign-in", &token, "a@example.com").await;
        assert_eq!(response.status, 503, "{}", response.text);
    }
    let failures = async |operation: &str| {
        let series = format!(
            "perennial_identity_provider_failures_total{{issuer=\"{issuer}\",operation=\"{operation}\"}}"
        );
        service.server.metric(&series).await
    };
    assert_eq!(failures("sign_in").await, Some(2.0));
    // At most one fetch per second.
    assert!(failures("discovery").await >= Some(1.0));
}

/// A scrape works during the outage, and keeps what it cannot read.
#[tokio::test]
async fn outage_shows_in_metrics_until_notifications_arrive_again() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    let wait_for = async |value: f64| {
        wait_until(CAUGHT_UP, Duration::from_secs(20), async || {
            server.metric(CAUGHT_UP).await == Some(value)
        })
        .await;
    };
    wait_for(1.0).await;
    let key_started = server.metric(KEY_STARTED).await.unwrap();
    assert!(key_started > 1_700_000_000.0, "{key_started}");
    cluster.stop();
    wait_for(0.0).await;
    assert_eq!(server.metric(KEY_STARTED).await, Some(key_started));
    cluster.resume();
    wait_for(1.0).await;
}

#[tokio::test]
async fn worker_with_admin_listener_reports_readiness_and_tasks() {
    let database = Database::create().await;
    let address = format!("127.0.0.1:{}", reserve_port());
    let variables = sandbox(&database.url);
    let mut worker = Process::spawn(&variables, &["work", "--admin-listen", &address]);
    let url = format!("http://{address}");
    let contains = async |path: &str, text: &str| {
        let what = format!("{path} contains {text}");
        wait_until(&what, Duration::from_secs(30), async || {
            let response = http_get(&url, path).await;
            response.is_ok_and(|(status, body)| status == 200 && body.contains(text))
        })
        .await;
    };
    contains("/readyz", "ready").await;
    let task = r#"{task="subscriptions.apply_due_transitions"}"#;
    contains(
        "/metrics",
        &format!("perennial_task_succeeded_timestamp_seconds{task}"),
    )
    .await;
    // Only `serve` has sessions to keep current.
    let (_, metrics) = http_get(&url, "/metrics").await.unwrap();
    assert!(
        !metrics.contains("perennial_notifications_caught_up"),
        "{metrics}"
    );
    assert!(worker.stop().await, "{}", worker.log());
}
