//! Card numbers are refused in the external ids of payments and subscriptions.

use serde_json::json;

use crate::{
    harness::{api::ApiResponse, merged},
    subscriptions::{SubscriptionFixture, record_path},
};

/// A published test number, never issued.
const CARD_NUMBER: &str = "4242424242424242";

fn assert_refused(response: &ApiResponse, field: &str) {
    assert_eq!(response.status, 422, "{}", response.text);
    assert_eq!(
        response.field_errors(),
        [format!("/{field} invalid_format")]
    );
    assert!(
        response.text.contains("cannot be a card number"),
        "{}",
        response.text
    );
    assert!(!response.text.contains("42424242"), "{}", response.text);
}

#[tokio::test]
async fn card_number_as_external_payment_id_is_refused() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let payment = fixture.pay(&subscription, json!({})).await;
    for number in [CARD_NUMBER, "4242 4242 4242 4242", "4242-4242-4242-4242"] {
        let body = json!({"subscription_id": subscription["id"], "amount": 1, "currency": "USD",
            "external_payment_id": number});
        let response = fixture
            .api
            .post("/subscription-payments", &body.to_string())
            .await;
        assert_refused(&response, "external_payment_id");
        let body = json!({"external_payment_id": number});
        assert_refused(&fixture.put(&payment, body).await, "external_payment_id");
    }
    for id in [
        "pi_4242424242424242",
        "4242424242424241",
        "order-4242424242424242",
    ] {
        let body = json!({"external_payment_id": id});
        let response = fixture.put(&payment, body).await;
        assert_eq!(response.status, 200, "{}", response.text);
    }
}

#[tokio::test]
async fn card_number_as_external_subscription_id_is_refused() {
    let fixture = SubscriptionFixture::start().await;
    let body = json!({"external_subscription_id": CARD_NUMBER});
    let fields = fixture.fields(&body).to_string();
    let response = fixture.api.post("/subscriptions", &fields).await;
    assert_refused(&response, "external_subscription_id");
    let subscription = fixture.subscribe(json!({})).await;
    let response = fixture.put(&subscription, body.clone()).await;
    assert_refused(&response, "external_subscription_id");
    let path = format!("{}/preview", record_path(&subscription));
    let response = fixture.api.post(&path, &body.to_string()).await;
    assert_refused(&response, "external_subscription_id");
}

/// A field equal to its current value changes nothing.
#[tokio::test]
async fn record_with_an_external_id_that_looks_like_a_card_number_can_be_read_and_updated() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture
        .subscribe(json!({"external_subscription_id": "x"}))
        .await;
    let payment = fixture
        .pay(&subscription, json!({"external_payment_id": "x"}))
        .await;
    let client = fixture.service.database.connect().await;
    for table in ["subscriptions", "subscription_payments"] {
        let update = format!("UPDATE {table} SET external_id = '{CARD_NUMBER}'");
        assert_eq!(client.execute(&update, &[]).await.unwrap(), 1);
    }
    for (record, field, change) in [
        (
            &subscription,
            "external_subscription_id",
            json!({"quantity": 2}),
        ),
        (
            &payment,
            "external_payment_id",
            json!({"status": "completed"}),
        ),
    ] {
        let shown = fixture.api.get_json(&record_path(record)).await;
        assert_eq!(shown[field], CARD_NUMBER);
        let updated = fixture.put(record, merged(shown, &change)).await;
        assert_eq!(updated.status, 200, "{}", updated.text);
    }
}
