//! `perennial plan`: the same rules as the API, from flags.

use serde_json::{Value, json};

use crate::{
    harness::{
        process::{run, run_err, run_ok},
        service::Service,
    },
    subscription_plans::minimal_plan,
};

#[tokio::test]
async fn plan_commands_create_update_show_and_list() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let run = |arguments: &[&str]| run_ok(&service.variables, arguments);
    let required = ["--name", "Pro", "--price", "10", "--billing-cycle", "month"];
    let created = run(&[
        &["plan", "create", "pro"],
        &required[..],
        &["--trial-days", "14", "--tier", "2", "--node-quota", "-1"],
        &[
            "--features",
            "SSO, Audit log",
            "--variant",
            "a",
            "--variant",
            "b",
        ],
        &["--href", "https://example.com/pro"],
    ]
    .concat());
    assert!(
        created.contains("pro, 10.00 USD, monthly, active"),
        "{created}"
    );

    // What the API returns is what the command prints, amounts included.
    let shown = run(&["plan", "show", "PRO", "--json"]);
    let response = api.get("/subscription-plans/pro").await;
    assert_eq!(shown.trim(), response.text);
    assert!(shown.contains(r#""price":10.00,"#), "{shown}");
    let plan: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(plan["variants"], json!(["a", "b"]));
    assert_eq!(plan["node_quota"], -1);
    assert_eq!(plan["trial_days"], 14);

    // Only the given fields change; an empty value clears a nullable one.
    let update = ["plan", "update", "pro", "--price", "24.99", "--href", ""];
    let updated = run(&[&update[..], &["--is-active", "false", "--json"]].concat());
    assert!(updated.contains(r#""price":24.99,"#), "{updated}");
    let updated: Value = serde_json::from_str(&updated).unwrap();
    assert_eq!(updated["href"], Value::Null);
    assert_eq!(updated["is_active"], false);
    assert_eq!(updated["features"], "SSO, Audit log");
    let text = run(&["plan", "show", "pro"]);
    for expected in [
        "24.99 USD, monthly, inactive",
        "node quota: unlimited",
        "trial: 14 days",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    assert_eq!(
        api.post("/subscription-plans", &minimal_plan("basic").to_string())
            .await
            .status,
        201
    );
    let list = run(&["plan", "list"]);
    let slugs: Vec<&str> = list
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(slugs, ["SLUG", "basic", "pro"], "lowest tier first");
    let lines = run(&["plan", "list", "--json"]);
    assert!(
        lines
            .lines()
            .all(|line| line.contains(r#"99,"currency":"USD""#)),
        "{lines}"
    );
}

#[tokio::test]
async fn plan_commands_report_all_invalid_flags() {
    let service = Service::start_in_process().await;
    let variables = &service.variables;
    service
        .api(&[])
        .create("/subscription-plans", &minimal_plan("pro"))
        .await;
    let update = [
        "plan", "update", "pro", "--price", "1.999", "--tier", "2000",
    ];
    let output = run_err(variables, &update);
    for expected in [
        "--price: must have at most 2 decimal places for USD",
        "--tier: must be from 0 to 1000",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let taken = ["plan", "create", "PRO", "--name", "x", "--price", "1"];
    for (arguments, code, expected) in [
        (
            [&taken[..], &["--billing-cycle", "monthly"]].concat(),
            1,
            "another plan has this slug",
        ),
        (
            [&taken[..], &["--billing-cycle", "montly"]].concat(),
            2,
            "did you mean \"monthly\"?",
        ),
        (taken.to_vec(), 2, "--billing-cycle"),
        (vec!["plan", "update", "pro"], 1, "nothing to change"),
        (
            vec!["plan", "update", "prro", "--tier", "1"],
            1,
            "there is no plan with the slug prro; see `perennial plan list`",
        ),
        (
            vec!["plan", "show", "prro"],
            1,
            "there is no plan with the slug prro",
        ),
    ] {
        let output = run(variables, &arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    // Nothing was written by the refused commands.
    let written = "SELECT count(*) FROM events WHERE kind LIKE 'plan.%'";
    assert_eq!(service.count(written).await, 1);
}
