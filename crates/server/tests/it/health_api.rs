//! `GET /health`: the checks of `perennial doctor` as data.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    process::run_ok,
    service::{InProcessService, Service},
    wait_until,
};

const SCOPE: [&str; 2] = ["--scope", "health:read"];

fn check<'a>(health: &'a Value, name: &str) -> &'a Value {
    let checks = health["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("{name}: {health}"))
}

/// Removes the stored result, as its time to live would.
async fn checked_again(service: &InProcessService, arguments: &[&str]) -> Value {
    service.server.app.health_reports.lock().await.clear();
    service.api(arguments).get_json("/health").await
}

#[tokio::test]
async fn failed_check_has_its_runbook() {
    let service = InProcessService::start_in_process().await;
    let connection = service.database.connect().await;
    let health = checked_again(&service, &SCOPE).await;
    // No worker runs in this process.
    assert_eq!(health["status"], "warning", "{health}");
    let worker = check(&health, "worker");
    assert_eq!(worker["status"], "warning");
    assert_eq!(worker["runbook"], "/docs/runbooks/late-worker");
    assert!(worker["fix"].as_str().unwrap().contains("perennial work"));
    for name in [
        "database",
        "clock",
        "database_role",
        "keys",
        "subscriptions",
        "reports",
    ] {
        assert_eq!(check(&health, name)["status"], "ok", "{name}");
    }
    for path in health["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|check| check["runbook"].as_str())
    {
        assert_eq!(service.anonymous().get(path).await.status, 200, "{path}");
    }
    let overdue =
        "INSERT INTO task_leases (task, next_run_at) VALUES ('events.maintain_partitions', now() - interval '1 hour')
         ON CONFLICT (task) DO UPDATE SET next_run_at = excluded.next_run_at";
    connection.batch_execute(overdue).await.unwrap();
    let health = checked_again(&service, &SCOPE).await;
    assert_eq!(health["status"], "failed");
    assert_eq!(check(&health, "worker")["status"], "failed");
}

/// The checks of a tenant's data are those of the caller's tenant.
#[tokio::test]
async fn other_tenants_are_not_shown() {
    let service = InProcessService::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let issuer = "http://127.0.0.1:9/other";
    let provider = [
        "provider",
        "add",
        "--tenant",
        "other",
        "--issuer",
        issuer,
        "--audience",
        "x",
    ];
    run_ok(&service.variables, &provider);
    let own = checked_again(&service, &[&SCOPE[..], &["--tenant", "default"]].concat()).await;
    assert!(!own.to_string().contains("other"), "{own}");
    let other = service.api(&[&SCOPE[..], &["--tenant", "other"]].concat());
    let other = other.get_json("/health").await;
    let provider = check(&other, "identity_providers");
    assert_eq!(provider["status"], "failed");
    assert!(provider["detail"].as_str().unwrap().contains(issuer));
}

/// Many requests run the checks once.
#[tokio::test]
async fn result_is_cached() {
    let service = Service::start().await;
    let api = service.api(&SCOPE);
    wait_until("the worker runs", Duration::from_secs(10), async || {
        service.count("SELECT count(*) FROM task_leases").await > 0
    })
    .await;
    let requests = (0..20).map(|_| {
        let api = api.clone();
        tokio::spawn(async move { api.get_json("/health").await["checked_at"].clone() })
    });
    let requests: Vec<_> = requests.collect();
    let first = api.get_json("/health").await["checked_at"].clone();
    for request in requests {
        assert_eq!(request.await.unwrap(), first);
    }
    let response = api.get("/health").await;
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.json()["checks"][0]["name"], json!("database"));
}
