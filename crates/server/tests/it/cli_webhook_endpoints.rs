//! `perennial webhook-endpoint`: the rules of the API, from flags.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    harness::{
        process::{Variables, perennial, run, run_ok},
        service::Service,
        wait_until,
        webhook_receiver::{Reply, WebhookReceiver},
    },
    webhooks::allow_loopback,
};

const URL: &str = "https://1.1.1.1/hook";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn endpoint_commands_manage_endpoints_as_the_api_does() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let run = |arguments: &[&str]| {
        run_ok(
            &service.variables,
            &[&["webhook-endpoint"], arguments].concat(),
        )
    };
    assert!(run(&["list"]).contains("perennial webhook-endpoint create"));
    let types = "subscription.*, payment.created";
    let created = run(&[
        "create",
        "--url",
        URL,
        "--event-types",
        types,
        "--description",
        "Accounting",
        "--json",
    ]);
    let mut created = json(&created);
    let secret = created.as_object_mut().unwrap().remove("secret").unwrap();
    assert!(secret.as_str().unwrap().starts_with("whsec_"));
    let id = created["id"].as_str().unwrap().to_owned();
    let path = format!("/webhook-endpoints/{id}");
    let show = |id: &str| run(&["show", id, "--json"]);
    assert_eq!(show(&id).trim(), api.get(&path).await.text);
    assert_eq!(json(&show(&id)), created);
    assert_eq!(
        created["event_types"],
        json!(["payment.created", "subscription.*"])
    );

    // Only the given fields change; empty text clears a field.
    let update = ["update", &id, "--description", "", "--order", "strict"];
    let updated = json(&run(&[&update[..], &["--json"]].concat()));
    assert_eq!(updated["description"], Value::Null);
    assert_eq!(updated["order"], "strict");
    assert_eq!(updated["event_types"], created["event_types"]);
    let updated = run(&["update", &id, "--event-types", ""]);
    assert_eq!(updated.trim(), format!("{id}  {URL}, enabled"));
    assert_eq!(json(&show(&id))["event_types"], json!([]));

    let disabled = json(&run(&["disable", &id, "--json"]));
    assert_eq!(disabled["disabled_reason"], "request");
    let text = run(&["show", &id]);
    for expected in [", disabled", "event types: all", "order: strict"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(run(&["enable", &id]).ends_with(", enabled\n"));

    let rotated = json(&run(&["rotate-secret", &id, "--json"]));
    assert_ne!(rotated["secret"], secret);
    assert!(rotated["previous_secret_expires_at"].is_string());
    let text = run(&["rotate-secret", &id]);
    assert!(text.contains("\nsecret: whsec_"), "{text}");

    let text = run(&["create", "--url", URL, "--status", "disabled"]);
    let (first, second) = text.trim().split_once('\n').unwrap();
    assert!(first.ends_with(&format!("{URL}, disabled")), "{text}");
    assert!(second.starts_with("secret: whsec_"), "{text}");
    let listed = run(&["list", "--json"]);
    let listed: Vec<Value> = listed.lines().map(json).collect();
    let page = api.get_json("/webhook-endpoints?sort=-created_at").await;
    assert_eq!(json!(listed), page["data"]);
    let table = run(&["list"]);
    assert!(table.starts_with("ID "), "{table}");
    assert_eq!(table.lines().count(), 3, "{table}");

    assert_eq!(run(&["delete", &id]), format!("deleted {id}\n"));
    assert_eq!(api.get(&path).await.status, 404);
    let changes = "SELECT count(*) FROM events WHERE kind LIKE 'webhook_endpoint.%'";
    let by_operator = format!("{changes} AND operator LIKE '%@%' AND client_id IS NULL");
    assert_eq!(service.count(changes).await, 9);
    assert_eq!(service.count(&by_operator).await, 9);
}

#[tokio::test]
async fn endpoint_commands_name_what_is_allowed() {
    let service = Service::start_in_process().await;
    let unknown = "whe_0192f0c1a2b37c4d8e5f60718293a4b5";
    let created = run_ok(
        &service.variables,
        &["webhook-endpoint", "create", "--url", URL, "--json"],
    );
    let id = json(&created)["id"].as_str().unwrap().to_owned();
    let create = ["create", "--url"];
    for (arguments, code, expected) in [
        ([&create[..], &["http://127.0.0.1/"]].concat(), 1, "--url: "),
        (
            [&create[..], &[URL, "--event-types", "plan.craeted"]].concat(),
            1,
            "--event-types: \"plan.craeted\" is not an event type; did you mean \"plan.created\"?",
        ),
        (
            [&create[..], &[URL, "--event-types", "client.*"]].concat(),
            1,
            "allowed: payment.*, payment_account.*, plan.*, session.*, subscription.*, user.*, webhook_endpoint.*, payment.created",
        ),
        (
            [&create[..], &[URL, "--order", "any"]].concat(),
            2,
            "\"any\" is not a delivery order; allowed: none, subject, strict",
        ),
        (vec!["update", &id], 1, "nothing to change"),
        (
            vec!["show", unknown],
            1,
            "see `perennial webhook-endpoint list`",
        ),
        (vec!["show", "whe_1"], 2, "whe_"),
        (vec!["replay", &id], 2, "--from"),
        (
            vec!["replay", &id, "--from", "yesterday"],
            1,
            "--from: \"yesterday\" is not a valid timestamp; must be RFC 3339",
        ),
    ] {
        let arguments = [&["webhook-endpoint"], &arguments[..]].concat();
        let output = run(&service.variables, &arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    let created = "SELECT count(*) FROM webhook_endpoints";
    assert_eq!(service.count(created).await, 1);
}

/// Runs a command in a terminal of 80 columns.
fn run_in_terminal(variables: &Variables, arguments: &[&str]) -> String {
    let program = perennial().get_program().to_str().unwrap().to_owned();
    let command = format!("stty rows 24 cols 80; {program} {}", arguments.join(" "));
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(variables)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn test_message_attempts_and_replay_are_printed() {
    let service = Service::start_with(allow_loopback).await;
    let (api, receiver) = (service.api(&[]), WebhookReceiver::start().await);
    let variables = service.variables.clone();
    let run_blocking = async |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let variables = variables.clone();
        let run = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            run(
                &variables,
                &[&["webhook-endpoint"], &arguments[..]].concat(),
            )
        });
        let output = run.await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let create = ["create", "--url", &receiver.url, "--event-types", "plan.*"];
    let (_, created, _) = run_blocking(&[&create[..], &["--json"]].concat()).await;
    let created = json(&created);
    let id = created["id"].as_str().unwrap();
    let (is_accepted, attempt, _) = run_blocking(&["test", id, "--json"]).await;
    assert!(is_accepted);
    assert_eq!(json(&attempt)["status_code"], 204);
    let message = &receiver.received()[0];
    assert!(message.is_signed_with(created["secret"].as_str().unwrap()));
    assert_eq!(message.body()["type"], "webhook_endpoint.test");
    receiver.respond(|_| Reply::Status(500, ""));
    let (is_accepted, attempt, error) = run_blocking(&["test", id]).await;
    assert!(!is_accepted && error.contains("did not accept"), "{error}");
    assert!(attempt.contains("  500, "), "{attempt}");

    receiver.respond(|_| Reply::Status(204, ""));
    let plan = json!({"name": "Pro", "slug": "pro", "price": 1, "billing_cycle": "monthly"});
    api.create("/subscription-plans", &plan).await;
    let seconds = std::time::Duration::from_secs;
    wait_until("the plan arrives", seconds(10), async || {
        receiver.count() == 3
    })
    .await;
    let from = "2026-01-01T00:00:00Z";
    let (_, replay, _) = run_blocking(&["replay", id, "--from", from, "--json"]).await;
    assert!(json(&replay)["id"].as_str().unwrap().starts_with("whr_"));
    wait_until("the plan arrives again", seconds(20), async || {
        receiver.count() == 4
    })
    .await;
    let requests = receiver.received();
    assert_eq!(requests[2].id, requests[3].id);
    let (_, text, _) = run_blocking(&["replay", id, "--from", from, "--to", from]).await;
    assert!(text.contains("of 0 positions of the log"), "{text}");

    let mut attempts = String::new();
    wait_until("attempts are stored", seconds(10), async || {
        (_, attempts, _) = run_blocking(&["attempts", id, "--json"]).await;
        attempts.lines().count() == 4
    })
    .await;
    let path = format!("/webhook-endpoints/{id}/attempts");
    let attempts: Vec<Value> = attempts.lines().map(json).collect();
    assert_eq!(json!(attempts), api.get_json(&path).await["data"]);
    let (_, limited, _) = run_blocking(&["attempts", id, "--limit", "1"]).await;
    assert_eq!(limited.lines().count(), 2, "{limited}");

    let long = format!("{}{}", receiver.url, "/long".repeat(10));
    let options = ["--event-types", "subscription.*,plan.*,user.*,payment.*"];
    let create = ["create", "--url", &long, "--status", "disabled"];
    run_blocking(&[&create[..], &options].concat()).await;
    for arguments in [&["list"][..], &["show", id], &["attempts", id]] {
        let arguments = [&["webhook-endpoint"], arguments].concat();
        let output = run_in_terminal(&service.variables, &arguments);
        assert!(output.contains(id) || output.contains("evt_"), "{output}");
        for line in output.lines() {
            // A URL is not broken.
            let is_url = line.trim().starts_with("url http");
            assert!(is_url || line.chars().count() <= 80, "{line}");
        }
    }
}
