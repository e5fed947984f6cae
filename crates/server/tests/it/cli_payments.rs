//! `perennial payment`: the same effects as the API's.

use serde_json::{Value, json};

use crate::{
    harness::process::{run, run_err, run_ok},
    subscriptions::{CREATE_SUBSCRIPTION, SubscriptionFixture, create_user, record_path},
};

#[tokio::test]
async fn recorded_payment_activates_and_refund_is_recorded() {
    let fixture = SubscriptionFixture::start().await;
    let late = fixture.subscribe(json!({"status": "past_due"})).await;
    let id = late["id"].as_str().unwrap();
    let run = |arguments: &[&str]| run_ok(&fixture.service.variables, arguments);
    let record = ["payment", "record", "--subscription", id, "--amount", "20"];
    let with_id = ["--external-payment-id", "INV-1042"];
    let output = run(&[&record[..], &with_id].concat());
    assert!(output.contains("20.00 USD completed"), "{output}");
    assert!(
        output.contains(&format!("{id}  Active: it renews on ")),
        "{output}"
    );
    let payment = output.split_whitespace().next().unwrap().to_owned();

    // A repeated command is refused and names the payment.
    let repeated = run_err(
        &fixture.service.variables,
        &[&record[..], &with_id].concat(),
    );
    assert!(
        repeated.contains("another payment has this external_payment_id")
            && repeated.contains(&payment),
        "{repeated}"
    );

    let refund = ["payment", "refund", "INV-1042", "--refunded-amount", "5"];
    let output = run(&refund);
    assert!(
        output.contains("20.00 USD partially_refunded, 5.00 refunded"),
        "{output}"
    );
    let output = run(&["payment", "refund", &payment, "--json"]);
    assert!(output.contains(r#""refunded_amount":20.00,"#), "{output}");
    let refunded: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(refunded["status"], "refunded");
    let path = format!("/subscription-payments/{payment}");
    assert_eq!(fixture.api.get(&path).await.text, output.trim());
    let output = run_err(&fixture.service.variables, &refund);
    assert!(
        output.contains("cannot change from refunded to partially_refunded"),
        "{output}"
    );

    let recorded =
        "SELECT count(*) FROM events WHERE kind LIKE 'payment.%' AND operator LIKE '%@%'";
    assert_eq!(fixture.service.count(recorded).await, 3);
}

#[tokio::test]
async fn managed_payment_becomes_credit_and_pays_the_period() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    run_ok(variables, &["tenant", "set", "--lifecycle", "managed"]);
    let output = run_ok(variables, &CREATE_SUBSCRIPTION);
    let id = output.split_whitespace().next().unwrap();
    let record = ["payment", "record", "--subscription", id, "--amount", "25"];
    let pending = run_ok(variables, &[&record[..], &["--status", "pending"]].concat());
    assert!(
        pending.contains("the first period costs 19.99 USD and is not paid"),
        "{pending}"
    );
    let paid = run_ok(variables, &record);
    assert!(
        paid.contains(&format!("{id}  Active: the period from ")),
        "{paid}"
    );
    let ledger = "SELECT count(*) FROM ledger_entries";
    assert_eq!(
        fixture.service.count(ledger).await,
        2,
        "the payment and the charge"
    );
}

#[tokio::test]
async fn payments_are_listed_by_the_filters_of_the_api() {
    let fixture = SubscriptionFixture::start().await;
    let path = format!("/users/{}", fixture.user);
    let named = r#"{"external_user_id": "customer-1"}"#;
    assert_eq!(fixture.api.put(&path, named).await.status, 200);
    let first = fixture.subscribe(json!({})).await;
    let second = fixture.subscribe(json!({})).await;
    let other = create_user(&fixture.api, "bob@example.com").await;
    let of_other = fixture.subscribe(json!({"user_id": other})).await;
    let external = json!({"external_payment_id": "pi_1", "amount": 10});
    let paid = fixture.pay(&first, external).await;
    let completed = json!({"status": "completed", "paid_at": "2025-01-01T00:00:00Z"});
    fixture.pay(&second, completed).await;
    let yen = json!({"currency": "JPY", "amount": 500, "status": "failed"});
    fixture.pay(&of_other, yen).await;
    let deleted = fixture.pay(&second, json!({})).await;
    assert_eq!(fixture.api.delete(&record_path(&deleted)).await.status, 204);

    let variables = &fixture.service.variables;
    let first = first["id"].as_str().unwrap();
    for (flags, path) in [
        (vec![], "/payments".to_owned()),
        (
            vec!["--sort", "-created_at"],
            "/payments?sort=-created_at".to_owned(),
        ),
        (
            vec!["--user", "pi_1"],
            format!("/payments?user_id={}", fixture.user),
        ),
        (
            vec!["--external-user-id", "customer-1"],
            "/payments?external_user_id=customer-1".to_owned(),
        ),
        (
            vec!["--subscription", first],
            format!("/payments?subscription_id={first}"),
        ),
        (
            vec!["--status", "completed,failed"],
            "/payments?status=completed,failed".to_owned(),
        ),
        (
            vec!["--external-payment-id", "pi_1"],
            "/payments?external_payment_id=pi_1".to_owned(),
        ),
        (
            vec!["--currency", "jpy"],
            "/payments?currency=JPY".to_owned(),
        ),
        (
            vec!["--paid-from", "2025-01-01T00:00:00Z"],
            "/payments?paid_at[gte]=2025-01-01T00:00:00Z".to_owned(),
        ),
        (
            vec!["--paid-before", "2025-01-01T00:00:00Z"],
            "/payments?paid_at[lt]=2025-01-01T00:00:00Z".to_owned(),
        ),
        (
            vec!["--created-before", "2025-01-01T00:00:00Z"],
            "/payments?created_at[lt]=2025-01-01T00:00:00Z".to_owned(),
        ),
        (
            vec!["--created-from", "2025-01-01T00:00:00Z", "--limit", "2"],
            "/payments?created_at[gte]=2025-01-01T00:00:00Z&limit=2".to_owned(),
        ),
    ] {
        let arguments = [&["payment", "list", "--json"][..], &flags].concat();
        let printed = run_ok(variables, &arguments);
        let printed = printed.lines().map(serde_json::from_str);
        let printed: Vec<Value> = printed.map(Result::unwrap).collect();
        let listed = fixture.api.get_json(&path).await;
        assert_eq!(json!(printed), listed["data"], "{arguments:?}");
    }

    let listed = run_ok(variables, &["payment", "list", "--subscription", first]);
    let row = listed.lines().nth(1).unwrap();
    let expected = [paid["id"].as_str().unwrap(), "10.00 USD", "pending", "pi_1"];
    assert!(expected.iter().all(|cell| row.contains(cell)), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let limited = run(variables, &["payment", "list", "--limit", "2"]);
    let note = String::from_utf8(limited.stderr).unwrap();
    assert!(note.contains("there are more than 2 payments"), "{note}");
}

#[tokio::test]
async fn metadata_is_attached_merged_and_shown() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    let run_json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&run_ok(variables, &[arguments, &["--json"]].concat())).unwrap()
    };
    let pairs = ["--metadata", "order=7", "--metadata", "note=a=b"];
    let both = json!({"order": "7", "note": "a=b"});
    let plan = ["plan", "create", "team", "--name", "Team", "--price", "49"];
    let plan = [&plan[..], &["--billing-cycle", "yearly"], &pairs].concat();
    assert_eq!(run_json(&plan)["metadata"], both);
    let update = ["plan", "update", "team", "--metadata", "note="];
    assert_eq!(run_json(&update)["metadata"], json!({"order": "7"}));
    let shown = run_ok(variables, &["plan", "show", "team"]);
    assert!(shown.contains("order: 7"), "{shown}");

    let subscription = run_json(&[&CREATE_SUBSCRIPTION[..], &pairs].concat());
    assert_eq!(subscription["metadata"], both);
    let id = subscription["id"].as_str().unwrap();
    let shown = run_ok(variables, &["subscription", "show", id]);
    assert!(shown.contains("note: a=b"), "{shown}");
    let record = ["payment", "record", "--subscription", id, "--amount", "20"];
    let payment = run_json(&[&record[..], &pairs].concat());
    assert_eq!(payment["metadata"], both);
    let payment = payment["id"].as_str().unwrap();
    let refund = ["payment", "refund", payment, "--metadata", "order=8"];
    let refunded = run_json(&refund);
    assert_eq!(refunded["metadata"], json!({"order": "8", "note": "a=b"}));

    let long_key = format!("{}=x", "k".repeat(41));
    for arguments in [
        [&record[..], &["--metadata", &long_key]].concat(),
        [&CREATE_SUBSCRIPTION[..], &["--metadata", &long_key]].concat(),
    ] {
        let errors = run_err(variables, &arguments);
        assert!(errors.contains("--metadata: "), "{errors}");
    }
    let errors = run_err(variables, &[&record[..], &["--metadata", "order"]].concat());
    assert!(errors.contains("expected KEY=VALUE"), "{errors}");
}

#[tokio::test]
async fn payment_commands_explain_errors() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let id = subscription["id"].as_str().unwrap();
    let unknown = "sub_0192f0c1a2b37c4d8e5f60718293a4b5";
    let record = [
        "payment",
        "record",
        "--amount",
        "1.999",
        "--paid-at",
        "yesterday",
    ];
    for (arguments, code, expected) in [
        (
            [&record[..], &["--subscription", id]].concat(),
            1,
            "--amount: must have at most 2 decimal places for USD",
        ),
        (
            [&record[..], &["--subscription", id]].concat(),
            1,
            "--paid-at: \"yesterday\" is not a valid timestamp",
        ),
        (
            [&record[..], &["--subscription", unknown]].concat(),
            1,
            "there is no subscription sub_0192f0c1a2b37c4d8e5f60718293a4b5",
        ),
        (
            vec!["payment", "list", "--subscription", unknown],
            1,
            "there is no subscription",
        ),
        (
            vec!["payment", "list", "--external-user-id", "customer-2"],
            1,
            "--external-user-id: there is no such user",
        ),
        (
            vec!["payment", "list", "--user", "unknown@example.com"],
            1,
            "there is no such user in this tenant: unknown@example.com",
        ),
        (
            vec![
                "payment",
                "list",
                "--paid-from",
                "2025-01-01T00:00:00Z",
                "--sort",
                "created_at",
            ],
            1,
            "--sort: must be paid_at or -paid_at",
        ),
        (
            vec!["payment", "list", "--sort", "amount"],
            2,
            "-created_at",
        ),
        (
            vec!["payment", "refund", "INV-1"],
            1,
            "there is no payment INV-1",
        ),
    ] {
        let output = run(&fixture.service.variables, &arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
}
