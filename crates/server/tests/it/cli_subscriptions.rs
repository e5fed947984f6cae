//! `perennial subscription update`: the same effects as the API's.

use serde_json::{Value, json};

use crate::{
    harness::process::{run_err, run_ok},
    subscription_plans::minimal_plan,
    subscriptions::{SubscriptionFixture, create_plan},
};

#[tokio::test]
async fn subscription_is_changed_as_the_api_does() {
    let fixture = SubscriptionFixture::start().await;
    create_plan(&fixture.api, &minimal_plan("team")).await;
    let created = fixture.subscribe(json!({})).await;
    let id = created["id"].as_str().unwrap();
    let variables = &fixture.service.variables;
    let update = |flags: &[&str]| {
        let arguments = [&["subscription", "update", id], flags].concat();
        run_ok(variables, &arguments)
    };
    let output = update(&["--status", "cancelled"]);
    assert!(output.contains(&format!("{id}  Cancelled: ")), "{output}");
    let output = update(&["--status", "active"]);
    assert!(output.contains(&format!("{id}  Active: ")), "{output}");

    for (flags, field, expected) in [
        (["--plan", "team"], "subscription_plan_slug", json!("team")),
        (["--quantity", "5"], "quantity", json!(5)),
        (["--price", "7.5"], "price", json!(7.5)),
        (["--price", ""], "price", json!(19.99)),
        (["--is-active", "false"], "suspended", json!(true)),
        (["--is-active", "true"], "suspended", json!(false)),
        (
            ["--renews-at", "2999-01-01T00:00:00Z"],
            "renews_at",
            json!("2999-01-01T00:00:00.000000Z"),
        ),
        (
            ["--ends-at", "2999-01-01T00:00:00Z"],
            "ends_at",
            json!("2999-01-01T00:00:00.000000Z"),
        ),
        (["--ends-at", ""], "ends_at", Value::Null),
        (["--metadata", "order=7"], "metadata", json!({"order": "7"})),
        (["--status", "paused"], "status", json!("paused")),
    ] {
        let output = update(&[&flags[..], &["--json"]].concat());
        let updated: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(updated[field], expected, "{flags:?}");
        let path = format!("/subscriptions/{id}");
        assert_eq!(fixture.api.get(&path).await.text, output.trim());
    }
    let recorded =
        "SELECT count(*) FROM events WHERE kind = 'subscription.updated' AND operator LIKE '%@%'";
    assert_eq!(fixture.service.count(recorded).await, 13);
}

#[tokio::test]
async fn refused_change_names_the_flag() {
    let fixture = SubscriptionFixture::start().await;
    let created = fixture.subscribe(json!({})).await;
    let id = created["id"].as_str().unwrap();
    for (id, flags, expected) in [
        (
            id,
            &[][..],
            "nothing to change; see `perennial subscription update --help`",
        ),
        (id, &["--plan", "none"], "--plan: "),
        (id, &["--renews-at", "soon"], "--renews-at: "),
        (
            id,
            &["--status", "pending"],
            "cannot change from active to pending",
        ),
        (
            "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
            &["--quantity", "2"],
            "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
        ),
    ] {
        let arguments = [&["subscription", "update", id], flags].concat();
        let errors = run_err(&fixture.service.variables, &arguments);
        assert!(errors.contains(expected), "{errors}");
    }
}
