//! `perennial tenant delete`, and commands that need a tenant while there are several.

use serde_json::Value;

use crate::{
    harness::{
        process::{run, run_err, run_ok},
        service::{InProcessService, Service},
    },
    subscription_plans::minimal_plan,
};

fn create_tenant(service: &InProcessService, name: &str) -> String {
    let created = service.run_json(&["tenant", "create", "--name", name, "--json"]);
    created["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn commands_without_a_tenant_name_the_tenants() {
    let service = Service::start_in_process().await;
    let acme = create_tenant(&service, "acme");
    for arguments in [
        &["plan", "list"][..],
        &["client", "list"],
        &["user", "show", "ada@example.com"],
        &["payment", "refund", "INV-1"],
        &["provider", "list"],
    ] {
        let output = run(&service.variables, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        for expected in [
            "there are 2 tenants",
            "--tenant NAME",
            "default",
            &format!("{acme}  acme"),
        ] {
            assert!(errors.contains(expected), "{expected}: {errors}");
        }
    }
    for tenant in ["acme", &acme] {
        run_ok(&service.variables, &["plan", "list", "--tenant", tenant]);
    }
    for (given, hint) in [("acne", "did you mean acme?"), ("other", "  acme")] {
        let errors = run_err(&service.variables, &["plan", "list", "--tenant", given]);
        assert!(
            errors.contains(&format!("there is no tenant {given}; ")),
            "{errors}"
        );
        assert!(errors.contains(hint), "{hint}: {errors}");
    }
}

#[tokio::test]
async fn only_an_unused_tenant_can_be_deleted() {
    let service = Service::start_in_process().await;
    let variables = &service.variables;
    let delete = |tenant: &str| run(variables, &["tenant", "delete", tenant]);
    let assert_refused = |tenant: &str, expected: &str| {
        let output = delete(tenant);
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(expected), "{expected}: {errors}");
    };
    assert_refused("default", "tenant default is the only one");

    let unused = create_tenant(&service, "unused");
    let (client, key) = service.create_client(&["--tenant", "unused"]);
    assert_refused(
        "unused",
        "tenant unused has 1 enabled client; disable each first",
    );
    run_ok(
        variables,
        &["client", "disable", &client, "--tenant", "unused"],
    );
    let issuer = "https://id.example.com";
    let provider = ["--issuer", issuer, "--audience", "x", "--tenant", "unused"];
    let added = run(variables, &[&["provider", "add"], &provider[..]].concat());
    assert!(
        added.status.success(),
        "{}",
        String::from_utf8_lossy(&added.stderr)
    );
    assert_refused(
        "unused",
        "tenant unused has 1 identity provider; remove each first",
    );
    let remove = [
        "provider",
        "remove",
        issuer,
        "--tenant",
        "unused",
        "--end-sessions",
    ];
    run_ok(variables, &remove);
    let output = delete(&unused);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listed: Value = service.run_json(&["tenant", "list", "--json"]);
    assert_eq!(listed["name"], "default", "the only line");
    let api = service.anonymous().with("client-id", &key);
    api.get("/subscription-plans")
        .await
        .assert_problem(401, "invalid_client");
    let events = "SELECT count(*) FROM events WHERE operator LIKE '%@%' AND
        (kind = 'tenant.created' AND data->>'name' = 'unused' OR kind = 'tenant.deleted')";
    assert_eq!(service.count(events).await, 2, "the history is kept");
    assert_refused("unused", "there is no tenant unused");

    // A deleted plan is history, too.
    create_tenant(&service, "used");
    let (client, key) = service.create_client(&["--tenant", "used"]);
    let api = service.anonymous().with("client-id", &key);
    api.create("/subscription-plans", &minimal_plan("pro"))
        .await;
    assert_eq!(api.delete("/subscription-plans/pro").await.status, 204);
    run_ok(
        variables,
        &["client", "disable", &client, "--tenant", "used"],
    );
    assert_refused("used", "tenant used has plans");
}
