//! `perennial payment`: the same effects as the API's.

use serde_json::{Value, json};

use crate::{
    harness::process::{run, run_err, run_ok},
    subscriptions::SubscriptionFixture,
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
        output.contains(&format!("{id}  active, renews ")),
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
    let create = [
        "subscription",
        "create",
        "--user",
        "ada@example.com",
        "--plan",
        "pro",
    ];
    let output = run_ok(variables, &create);
    let id = output.split_whitespace().next().unwrap();
    let record = ["payment", "record", "--subscription", id, "--amount", "25"];
    let pending = run_ok(variables, &[&record[..], &["--status", "pending"]].concat());
    assert!(
        pending.contains("waiting for a payment of 19.99 USD"),
        "{pending}"
    );
    let paid = run_ok(variables, &record);
    assert!(paid.contains(&format!("{id}  active, renews ")), "{paid}");
    let ledger = "SELECT count(*) FROM ledger_entries";
    assert_eq!(
        fixture.service.count(ledger).await,
        2,
        "the payment and the charge"
    );
}

#[tokio::test]
async fn payments_are_listed_by_user_and_by_subscription() {
    let fixture = SubscriptionFixture::start().await;
    let variables = &fixture.service.variables;
    let first = fixture.subscribe(json!({})).await;
    let second = fixture.subscribe(json!({})).await;
    let external = json!({"external_payment_id": "pi_1", "amount": 10});
    let paid = fixture.pay(&first, external).await;
    fixture.pay(&second, json!({})).await;
    let deleted = fixture.pay(&second, json!({})).await;
    let path = format!("/subscription-payments/{}", deleted["id"].as_str().unwrap());
    assert_eq!(fixture.api.delete(&path).await.status, 204);

    let of_user = run_ok(variables, &["payment", "list", "--user", "pi_1", "--json"]);
    assert_eq!(of_user.lines().count(), 2, "{of_user}");
    assert!(of_user.contains(r#""amount":10.00,"#), "{of_user}");
    let id = first["id"].as_str().unwrap();
    let listed = run_ok(variables, &["payment", "list", "--subscription", id]);
    let row = listed.lines().nth(1).unwrap();
    let expected = [paid["id"].as_str().unwrap(), "10.00 USD", "pending", "pi_1"];
    assert!(expected.iter().all(|cell| row.contains(cell)), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
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
        (vec!["payment", "list"], 2, "--user <USER>|--subscription"),
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
