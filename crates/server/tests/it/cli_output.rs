//! Output and exit codes of commands for developers, operators and support.

use std::time::Duration;

use serde_json::json;

use crate::{
    harness::{
        process::{Server, Variables, run, run_err, run_ok, sandbox},
        service::Service,
        wait_until,
    },
    subscriptions::{CREATE_SUBSCRIPTION, SubscriptionFixture},
};

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[tokio::test]
async fn doctor_reports_findings_and_remedies() {
    let mut service = Service::start().await;
    let address = |url: &str| url.trim_start_matches("http://").to_owned();
    let mut variables = service.variables.clone();
    variables.insert("PERENNIAL_LISTEN", address(&service.server.url));
    variables.insert("PERENNIAL_ADMIN_LISTEN", address(&service.server.admin_url));
    // The worker has run its tasks once.
    let worked = "SELECT count(*) FROM task_leases";
    wait_until("the worker runs", Duration::from_secs(10), async || {
        service.count(worked).await > 0
    })
    .await;
    // The lease of a task that no longer exists is ignored.
    let removed_task =
        "INSERT INTO task_leases (task, next_run_at) VALUES ('removed', now() - interval '1 day')";
    let client = service.database.connect().await;
    client.batch_execute(removed_task).await.unwrap();
    let output = run_ok(&variables, &["doctor"]);
    for finding in [
        "✔ configuration, sandbox mode",
        "✔ home: schema ",
        "✔ PostgreSQL ",
        "✔ clock skew ",
        "✔ master key, signing key",
        "✔ worker",
        "✔ no overdue subscriptions",
        "✔ service ready at ",
    ] {
        assert!(
            lines(&output).iter().any(|line| line.starts_with(finding)),
            "{finding}: {output}"
        );
    }
    assert!(output.contains("docs/how-to/behind-a-proxy"), "{output}");
    run_ok(&variables, &["health"]);

    // No worker runs, a transition is overdue, and the master key is another one.
    service.server.process.kill();
    client
        .batch_execute(
            "UPDATE task_leases SET next_run_at = now() - interval '1 hour', held_until = NULL;
             UPDATE tenants SET lifecycle = 'managed';
             INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at)
             SELECT tenant_id, md5('u')::uuid, 'a@b', 'a@b', now(), now() FROM tenants;
             INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
                node_quota, most_popular, tier, is_active, created_at, updated_at)
             SELECT tenant_id, md5('p')::uuid, 'pro', 'Pro', '{}', 1999, 'USD', 'monthly', 0, false, 0, true, now(), now()
             FROM tenants;
             INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle,
                billing_cycle, status, suspended, starts_at, renews_at, anchor, due_at, created_at, updated_at)
             SELECT tenant_id, md5('s')::uuid, md5('u')::uuid, md5('p')::uuid, 1999, 'USD', 'monthly', 'monthly', 'active', false,
                now() - interval '2 days', now() - interval '1 day', now(), now() - interval '1 day', now(), now() FROM tenants",
        )
        .await
        .unwrap();
    let key = run_ok(&Variables::new(), &["keys", "generate-master"]);
    variables.insert("PERENNIAL_MASTER_KEY", key.trim().to_owned());
    let failed = run(&variables, &["doctor"]);
    assert_eq!(failed.status.code(), Some(1));
    let output = String::from_utf8(failed.stdout).unwrap();
    for finding in [
        "✘ the database was set up with another master key",
        "✘ background tasks are overdue by 36",
        "✘ a subscription transition has been due since ",
        "! no service is ready at ",
    ] {
        assert!(output.contains(finding), "{finding}: {output}");
    }
    assert!(output.contains("docs/runbooks/late-worker"), "{output}");
    let health = run(&variables, &["health"]);
    assert_eq!(health.status.code(), Some(1));
    client
        .execute("DELETE FROM schema_migrations WHERE version = 1", &[])
        .await
        .unwrap();
    let output = run(&variables, &["doctor", "--json"]);
    let output: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = output["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| {
            finding["message"]
                .as_str()
                .unwrap()
                .starts_with("home: schema")
        })
        .unwrap();
    assert_eq!(schema["severity"], "error");
    assert!(
        schema["fix"]
            .as_str()
            .unwrap()
            .contains("perennial migrate")
    );
}

#[tokio::test]
async fn exit_codes_distinguish_usage_refusal_and_outage() {
    let unreachable = sandbox("postgres://postgres@127.0.0.1:1/nobody");
    assert_eq!(
        run(&unreachable, &["tenant", "list"]).status.code(),
        Some(3)
    );
    let service = Service::start_in_process().await;
    let variables = &service.variables;
    assert_eq!(run(variables, &["tenant", "list"]).status.code(), Some(0));
    let unknown_user = run(variables, &["user", "show", "nobody@example.com"]);
    assert_eq!(unknown_user.status.code(), Some(1));
    let typo = run(variables, &["tennant", "list"]);
    assert_eq!(typo.status.code(), Some(2));
    let output = String::from_utf8(typo.stderr).unwrap();
    assert!(
        output.contains("a similar subcommand exists: 'tenant'"),
        "{output}"
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = run_ok(&Variables::new(), &["completions", shell]);
        assert!(script.contains("sandbox") && script.contains("doctor"));
    }
    // Output to a pipe has no escape codes.
    let help = run_ok(&Variables::new(), &["--help"]);
    assert!(!help.contains('\u{1b}'));
}

#[tokio::test]
async fn user_and_subscription_show_explain_past_due() {
    let fixture = SubscriptionFixture::start_server().await;
    let variables = &fixture.service.variables;
    run_ok(variables, &["tenant", "set", "--lifecycle", "managed"]);
    let created = run_ok(variables, &CREATE_SUBSCRIPTION);
    let pending = "the first period costs 19.99 USD";
    assert!(created.contains(pending), "{created}");
    let now_due = ["--status", "active", "--show-curl"];
    let output = run(variables, &[&CREATE_SUBSCRIPTION[..], &now_due].concat());
    let (output, curl) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.contains("Past due since "), "{output}");
    let id = output.split_whitespace().next().unwrap();
    // The server applies the changed setting within a second.
    let path = format!("/subscriptions/{id}");
    let limit = Duration::from_secs(10);
    wait_until("the server manages the subscription", limit, async || {
        fixture.api.get(&path).await.json()["lifecycle"] == "managed"
    })
    .await;
    // The printed curl command sends an equivalent request.
    let body = curl.split('\'').nth(1).unwrap();
    assert_eq!(fixture.api.post("/subscriptions", body).await.status, 201);
    let created: serde_json::Value = serde_json::from_str(&run_ok(
        variables,
        &[&CREATE_SUBSCRIPTION[..], &["--status", "paused", "--json"]].concat(),
    ))
    .unwrap();
    assert_eq!(created["status"], json!("paused"));
    let first_month = json!({
        "subscription_id": id, "amount": 19.99, "currency": "USD", "status": "completed"
    });
    let paid = fixture
        .api
        .post("/subscription-payments", &first_month.to_string())
        .await;
    assert_eq!(paid.status, 201, "{}", paid.text);

    run_ok(variables, &["sandbox", "clock", "advance", "1mo 1d"]);
    let output = run_ok(variables, &["user", "show", "ada@example.com"]);
    for expected in [
        "Past due since ",
        "next: Access ends on ",
        "unless 19.99 USD is paid.",
        "fix: A completed payment of 19.99 USD or more makes it active.",
        "subscription.past_due    status active → past_due",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let output = run_ok(variables, &["subscription", "show", id]);
    assert!(output.contains("past_due, access: yes"), "{output}");
    let shown: serde_json::Value =
        serde_json::from_str(&run_ok(variables, &["subscription", "show", id, "--json"])).unwrap();
    assert_eq!(shown["subscription"]["status"], "past_due");

    assert_deleted_records_are_marked(&fixture, id).await;

    // Errors explain what to change.
    for (arguments, expected) in [
        (
            vec![
                "subscription",
                "create",
                "--user",
                "nobody@example.com",
                "--plan",
                "pro",
            ],
            "there is no such user",
        ),
        (
            vec![
                "subscription",
                "create",
                "--user",
                "ada@example.com",
                "--plan",
                "prro",
            ],
            "there is no plan with the slug prro",
        ),
        (
            vec![
                "subscription",
                "create",
                "--user",
                "ada@example.com",
                "--plan",
                "pro",
                "--status",
                "activ",
            ],
            "did you mean \"active\"?",
        ),
        (
            vec![
                "subscription",
                "show",
                "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
            ],
            "there is no subscription sub_0192f0c1a2b37c4d8e5f60718293a4b5",
        ),
        (
            vec!["user", "show", "foo"],
            "expected an email address, the id of a user (usr_…)",
        ),
        (
            vec!["user", "show", "plan_0192f0c1a2b37c4d8e5f60718293a4b5"],
            "there is no such user in this tenant: plan_0192f0c1a2b37c4d8e5f60718293a4b5",
        ),
        (
            vec!["user", "show", "usr_1"],
            "expected \"usr_\" and 32 hexadecimal digits",
        ),
        (
            vec!["sandbox", "clock", "advance", "-1mo"],
            "the clock only moves forward",
        ),
        (
            vec!["sandbox", "clock", "advance", "1 fortnight"],
            "expected a time span such as 1mo",
        ),
        (
            vec!["tenant", "set", "--unpaid-after", "40"],
            "--expired-after must not be less than --unpaid-after",
        ),
    ] {
        let output = run_err(variables, &arguments);
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
}

/// Asserts that deleted records are shown, and marked as deleted.
async fn assert_deleted_records_are_marked(fixture: &SubscriptionFixture<Server>, id: &str) {
    let variables = &fixture.service.variables;
    let shown = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&run_ok(variables, &[arguments, &["--json"]].concat())).unwrap()
    };
    let body =
        json!({"subscription_id": id, "amount": 19.99, "currency": "USD", "status": "pending"})
            .to_string();
    let paid = fixture.api.post("/subscription-payments", &body).await;
    let paid = paid.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/subscription-payments/{paid}");
    assert_eq!(fixture.api.delete(&path).await.status, 204);
    let output = run_ok(variables, &["subscription", "show", id]);
    assert!(output.contains("19.99 USD pending, deleted 20"), "{output}");
    let payments = shown(&["subscription", "show", id])["payments"].clone();
    let find = |payment: &&serde_json::Value| payment["id"] == paid;
    let payment = payments.as_array().unwrap().iter().find(find).unwrap();
    assert!(payment["deleted_at"].is_string(), "{payment}");

    let path = format!("/subscriptions/{id}");
    assert_eq!(fixture.api.delete(&path).await.status, 204);
    let output = run_ok(variables, &["user", "show", "ada@example.com"]);
    assert!(output.contains(&format!("{id}  deleted 20")), "{output}");
    let output = run_ok(variables, &["user", "show", id]);
    assert!(output.contains("gives no access."), "{output}");
    let hint = run_err(variables, &["subscription", "show", id]);
    assert!(
        hint.contains(&format!("`perennial user show {id}`")),
        "{hint}"
    );
    let all = shown(&["user", "show", "ada@example.com"])["subscriptions"].clone();
    let subscription = all
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["id"] == id)
        .unwrap();
    assert!(
        subscription["deleted_at"].is_string() && subscription["is_active"] == false,
        "{subscription}"
    );
    // Only the paused one: one is deleted, and two have expired unpaid.
    let dry_run = run_ok(variables, &["user", "erase", "ada@example.com"]);
    assert!(
        dry_run.contains("end 0 sessions and 1 subscription"),
        "{dry_run}"
    );
}
