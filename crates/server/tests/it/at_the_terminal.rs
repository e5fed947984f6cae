//! What somebody at a terminal meets: a developer, an operator, a support person.

use std::time::Duration;

use serde_json::json;

use crate::{
    harness::{
        process::{Variables, run, run_err, run_ok, sandbox},
        service::Service,
    },
    subscriptions::Stage,
};

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[tokio::test]
async fn the_doctor_says_what_is_right_and_what_to_do() {
    let mut service = Service::start().await;
    let address = |url: &str| url.trim_start_matches("http://").to_owned();
    let mut variables = service.variables.clone();
    variables.insert("PERENNIAL_LISTEN", address(&service.server.url));
    variables.insert("PERENNIAL_ADMIN_LISTEN", address(&service.server.admin_url));
    // Its worker has begun.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let said = run_ok(&variables, &["doctor"]);
    for fine in [
        "✔ configuration, sandbox mode",
        "✔ home: schema ",
        "✔ PostgreSQL ",
        "✔ clock skew ",
        "✔ master key, signing key",
        "✔ worker",
        "✔ nothing is late",
        "✔ a service answers that it is ready",
    ] {
        assert!(
            lines(&said).iter().any(|line| line.starts_with(fine)),
            "{fine}: {said}"
        );
    }
    assert!(said.contains("docs/guides/behind-a-proxy"), "{said}");
    run_ok(&variables, &["health"]);

    // Nobody works, something is late, the key is another, and the schema has a step too few.
    service.server.process.kill();
    let client = service.database.connect().await;
    client
        .batch_execute(
            "UPDATE task_leases SET next_run_at = now() - interval '1 hour', held_until = NULL;
             UPDATE tenants SET lifecycle = 'managed';
             INSERT INTO users (tenant_id, id, email, email_key, created_at)
             SELECT tenant_id, md5('u')::uuid, 'a@b', 'a@b', now() FROM tenants;
             INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
                node_quota, most_popular, tier, is_active, created_at, updated_at)
             SELECT tenant_id, md5('p')::uuid, 'pro', 'Pro', '{}', 1999, 'USD', 'monthly', 0, false, 0, true, now(), now()
             FROM tenants;
             INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle,
                billing_cycle, status, suspended, starts_at, renews_at, anchor, created_at, updated_at)
             SELECT tenant_id, md5('s')::uuid, md5('u')::uuid, md5('p')::uuid, 1999, 'USD', 'monthly', 'monthly', 'active', false,
                now() - interval '2 days', now() - interval '1 day', now(), now(), now() FROM tenants",
        )
        .await
        .unwrap();
    let key = run_ok(&Variables::new(), &["keys", "generate-master"]);
    variables.insert("PERENNIAL_MASTER_KEY", key.trim().to_owned());
    let sick = run(&variables, &["doctor"]);
    assert_eq!(sick.status.code(), Some(1));
    let said = String::from_utf8(sick.stdout).unwrap();
    for wrong in [
        "✘ the master key is not the one",
        "✘ no worker has taken up its work for 36",
        "✘ a subscription was due at ",
        "! no service is ready at ",
    ] {
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    assert!(said.contains("docs/runbooks/late-worker"), "{said}");
    let health = run(&variables, &["health"]);
    assert_eq!(health.status.code(), Some(1));
    client
        .execute("DELETE FROM schema_migrations WHERE version = 1", &[])
        .await
        .unwrap();
    let said = run(&variables, &["doctor", "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let todo = said["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["what"].as_str().unwrap().starts_with("home: schema"))
        .unwrap();
    assert!(todo["todo"].as_str().unwrap().contains("perennial migrate"));
}

/// A script can tell a wrong command line from a refusal, and both from a database that is away.
#[tokio::test]
async fn how_commands_end() {
    let away = sandbox("postgres://postgres@127.0.0.1:1/nobody");
    assert_eq!(run(&away, &["tenant", "list"]).status.code(), Some(3));
    let service = Service::start().await;
    let on = &service.variables;
    assert_eq!(run(on, &["tenant", "list"]).status.code(), Some(0));
    let nobody = run(on, &["user", "show", "nobody@example.com"]);
    assert_eq!(nobody.status.code(), Some(1));
    let slip = run(on, &["tennant", "list"]);
    assert_eq!(slip.status.code(), Some(2));
    let said = String::from_utf8(slip.stderr).unwrap();
    assert!(
        said.contains("a similar subcommand exists: 'tenant'"),
        "{said}"
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = run_ok(&Variables::new(), &["completions", shell]);
        assert!(script.contains("sandbox") && script.contains("doctor"));
    }
    // Nothing that is no terminal is coloured or redrawn.
    let help = run_ok(&Variables::new(), &["--help"]);
    assert!(!help.contains('\u{1b}'));
}

/// "Why is Ada past due?"
#[tokio::test]
async fn why_is_ada_past_due() {
    let stage = Stage::start().await;
    let on = &stage.service.variables;
    run_ok(on, &["tenant", "set", "--lifecycle", "managed"]);
    let create = [
        "subscription",
        "create",
        "--user",
        "ada@example.com",
        "--plan",
        "pro",
    ];
    let output = run(on, &[&create[..], &["--show-curl"]].concat());
    let (said, curl) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(said.contains("active, renews "), "{said}");
    let id = said.split_whitespace().next().unwrap();
    // The curl that it prints does the same.
    let body = curl.split('\'').nth(1).unwrap();
    assert_eq!(stage.caller.post("/subscriptions", body).await.status, 201);
    let made: serde_json::Value = serde_json::from_str(&run_ok(
        on,
        &[&create[..], &["--status", "on_trial", "--json"]].concat(),
    ))
    .unwrap();
    assert_eq!(made["status"], json!("on_trial"));

    run_ok(on, &["sandbox", "clock", "advance", "1mo 1d"]);
    let said = run_ok(on, &["user", "show", "ada@example.com"]);
    for said_so in [
        "nothing has paid for that period",
        "a completed payment of 19.99 USD or more makes it active",
        "no access from ",
    ] {
        assert!(said.contains(said_so), "{said_so}: {said}");
    }
    assert!(
        said.contains("subscription.past_due    status active → past_due"),
        "{said}"
    );
    let said = run_ok(on, &["subscription", "show", id]);
    assert!(said.contains("past_due, access: yes"), "{said}");
    let shown: serde_json::Value =
        serde_json::from_str(&run_ok(on, &["subscription", "show", id, "--json"])).unwrap();
    assert_eq!(shown["subscription"]["status"], "past_due");

    what_was_deleted_says_so(&stage, id).await;

    // Slips are answered.
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
            "no subscription has this id",
        ),
        (
            vec!["user", "show", "foo"],
            "accepted: ada@example.com, or the id of a user (usr_…)",
        ),
        (
            vec!["user", "show", "plan_0192f0c1a2b37c4d8e5f60718293a4b5"],
            "neither an e-mail address nor an id",
        ),
        (
            vec!["user", "show", "usr_1"],
            "expected \"usr_\" and 32 hexadecimal digits",
        ),
        (
            vec!["sandbox", "clock", "advance", "-1mo"],
            "time only goes ahead",
        ),
        (
            vec!["sandbox", "clock", "advance", "1 fortnight"],
            "expected a span such as 1mo",
        ),
        (
            vec!["tenant", "set", "--unpaid-after", "40"],
            "at least as many days",
        ),
    ] {
        let said = run_err(on, &arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// Support people are shown what was deleted too, and must not take it for what is there.
async fn what_was_deleted_says_so(stage: &Stage, id: &str) {
    let on = &stage.service.variables;
    let shown = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&run_ok(on, &[arguments, &["--json"]].concat())).unwrap()
    };
    let body =
        json!({"subscription_id": id, "amount": 19.99, "currency": "USD", "status": "pending"})
            .to_string();
    let paid = stage.caller.post("/subscription-payments", &body).await;
    let paid = paid.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/subscription-payments/{paid}");
    assert_eq!(stage.caller.delete(&path).await.status, 204);
    let said = run_ok(on, &["subscription", "show", id]);
    assert!(said.contains("19.99 USD pending, deleted 20"), "{said}");
    let payment = shown(&["subscription", "show", id])["payments"][0].clone();
    assert!(payment["deleted_at"].is_string(), "{payment}");

    let path = format!("/subscriptions/{id}");
    assert_eq!(stage.caller.delete(&path).await.status, 204);
    let said = run_ok(on, &["user", "show", "ada@example.com"]);
    assert!(said.contains(&format!("{id}  deleted 20")), "{said}");
    let told = run_ok(on, &["user", "show", id]);
    assert!(told.contains("gives no access"), "{told}");
    let hint = run_err(on, &["subscription", "show", id]);
    assert!(
        hint.contains(&format!("`perennial user show {id}`")),
        "{hint}"
    );
    let all = shown(&["user", "show", "ada@example.com"])["subscriptions"].clone();
    let one = all
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == id)
        .unwrap();
    assert!(
        one["deleted_at"].is_string() && one["is_active"] == false,
        "{one}"
    );
    // Of three, one was deleted; and one is spoken of as one.
    let would = run_ok(on, &["user", "erase", "ada@example.com"]);
    assert!(
        would.contains("end 0 sessions and 2 subscriptions"),
        "{would}"
    );
}
