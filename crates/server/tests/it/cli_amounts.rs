//! Commands and exports print amounts with the decimals of their currency.

use serde_json::json;

use crate::{harness::process::run_ok, subscriptions::SubscriptionFixture};

#[tokio::test]
async fn show_and_export_print_amounts_with_the_decimals_of_the_currency() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let id = subscription["id"].as_str().unwrap();
    for (amount, currency) in [("10", "USD"), ("1500", "JPY"), ("2.5", "KWD")] {
        let body = format!(
            r#"{{"subscription_id": "{id}", "amount": {amount}, "currency": "{currency}", "status": "completed"}}"#
        );
        let response = fixture.api.post("/subscription-payments", &body).await;
        assert_eq!(response.status, 201, "{}", response.text);
    }
    let run = |arguments: &[&str]| run_ok(&fixture.service.variables, arguments);
    let user = "ada@example.com";

    for arguments in [["user", "show", user], ["subscription", "show", id]] {
        let text = run(&arguments);
        for expected in ["10.00 USD", "1500 JPY", "2.500 KWD"] {
            // Once in the list of payments, once in the event.
            assert_eq!(text.matches(expected).count(), 2, "{expected}: {text}");
        }
    }
    // The payment, and where events are printed, its event.
    let outputs = [
        (run(&["user", "show", user, "--json"]), 2),
        (run(&["subscription", "show", id, "--json"]), 1),
        (run(&["user", "export", user]), 2),
    ];
    for (text, count) in outputs {
        let text = text.replace("\": ", "\":");
        for expected in [
            "\"amount\":10.00,",
            "\"amount\":1500,",
            "\"amount\":2.500,",
            "\"refunded_amount\":0.00,",
        ] {
            assert_eq!(text.matches(expected).count(), count, "{expected}: {text}");
        }
    }
}
