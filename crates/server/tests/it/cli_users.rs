//! `perennial user show`: users by a provider's ids, and who recorded each event.

use serde_json::{Value, json};

use crate::{
    harness::process::{run_err, run_ok},
    subscriptions::{SubscriptionFixture, create_user},
};

#[tokio::test]
async fn user_is_found_by_the_ids_of_providers() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    let subject = "36fa0f91-f94d-4a0c-afed-6b7d952e47da";
    let add_identity = async |user: &str, issuer: &str| {
        let sql = format!(
            "INSERT INTO identities (tenant_id, issuer, subject, user_id, created_at)
             SELECT tenant_id, '{issuer}', '{subject}', id, now() FROM users WHERE id = '{}'",
            user.trim_start_matches("usr_")
        );
        let client = fixture.service.database.connect().await;
        assert_eq!(client.execute(&sql, &[]).await.unwrap(), 1);
    };
    add_identity(&fixture.user, "https://id.example.com").await;
    // These have the form of our own ids.
    let external = "sub_1MowQVLkdIwHu7ixeRlqHVzs";
    let subscription = fixture
        .subscribe(json!({"external_subscription_id": external}))
        .await;
    let paid = json!({"external_payment_id": "pay_29QQoUBi66xm2f"});
    fixture.pay(&subscription, paid).await;
    for ident in [external, "pay_29QQoUBi66xm2f", subject] {
        let shown = run_ok(variables, &["user", "show", ident, "--json"]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["user"]["id"], fixture.user, "{ident}");
    }
    let erase = run_ok(variables, &["user", "erase", external]);
    assert!(
        erase.contains(&format!("would erase {}", fixture.user)),
        "{erase}"
    );

    // The same subject at another identity provider is another user.
    let other = create_user(&fixture.api, "bob@example.com").await;
    add_identity(&other, "https://another.example.com").await;
    let errors = run_err(variables, &["user", "show", subject]);
    for expected in ["is an id of several users", &fixture.user, &other] {
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    let errors = run_err(variables, &["user", "show", "sub_1"]);
    let hint = "expected \"sub_\" and 32 hexadecimal digits";
    assert!(errors.contains(hint), "{errors}");
}

#[tokio::test]
async fn user_is_selected_by_its_external_id() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    let path = format!("/users/{}", fixture.user);
    let named = r#"{"external_user_id": "customer-1042"}"#;
    assert_eq!(fixture.api.put(&path, named).await.status, 200);
    let id = "customer-1042";
    for command in ["show", "export"] {
        let json: &[&str] = if command == "show" { &["--json"] } else { &[] };
        let shown = run_ok(variables, &[&["user", command, id], json].concat());
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["user"]["id"], fixture.user, "{command}");
    }
    let create = ["subscription", "create", "--plan", "pro", "--json"];
    let created = run_ok(variables, &[&create[..], &["--user", id]].concat());
    let created: Value = serde_json::from_str(&created).unwrap();
    assert_eq!(created["external_user_id"], id);
    for arguments in [
        vec!["session", "list", id],
        vec!["session", "revoke", id],
        vec!["session", "revoke", "--user", id],
        vec!["user", "erase", id],
    ] {
        run_ok(variables, &arguments);
    }
}

#[tokio::test]
async fn user_show_prints_who_recorded_each_event() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    let (client, key) = fixture.service.create_client(&["--name", "backend"]);
    let backend = fixture.service.anonymous().with("client-id", &key);
    let fields = fixture.fields(&json!({}));
    let subscription = backend.create("/subscriptions", &fields).await;
    let id = subscription["id"].as_str().unwrap();
    let record = [
        "payment",
        "record",
        "--subscription",
        id,
        "--amount",
        "19.99",
    ];
    run_ok(variables, &record);

    let text = run_ok(variables, &["user", "show", "ada@example.com"]);
    let line = |kind: &str| text.lines().find(|line| line.contains(kind)).unwrap();
    assert!(
        line("subscription.created").ends_with("  by client backend"),
        "{text}"
    );
    let by_operator = line("payment.created").rsplit("  by ").next().unwrap();
    assert!(by_operator.contains('@'), "{text}");
    let shown = run_ok(variables, &["subscription", "show", id]);
    assert!(shown.contains("  by client backend"), "{shown}");

    let shown = run_ok(variables, &["user", "show", id, "--json"]);
    assert!(shown.contains(r#""amount":19.99,"#), "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let events = shown["events"].as_array().unwrap();
    let author = |kind: &str| {
        let event = events.iter().find(|event| event["kind"] == kind);
        event.unwrap()["recorded_by"].clone()
    };
    let by_client = author("subscription.created");
    assert_eq!(by_client["client_id"], client);
    assert_eq!(by_client["client_name"], "backend");
    assert_eq!(author("payment.created")["operator"], by_operator);

    // The export for the user does not name the operator's staff.
    let export = run_ok(variables, &["user", "export", "ada@example.com"]);
    assert!(
        !export.contains("recorded_by") && !export.contains(by_operator),
        "{export}"
    );
}
