//! `examples/refund-webhook.mjs`: refunds that a payment provider reports.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{ExampleServer, script};
use crate::subscriptions::{SubscriptionFixture, record_path};

const SECRET: &str = "the provider's secret";

fn signature(body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

impl ExampleServer {
    /// Sends a notification and returns the status.
    async fn notify(&self, body: &str, signature: &str) -> u16 {
        let request = self.http.post(format!("{}/refunds", self.url));
        let request = request.header("signature", signature).body(body.to_owned());
        request.send().await.unwrap().status().as_u16()
    }

    /// Sends a correctly signed notification and returns the status.
    async fn notify_refund(&self, payment: &str, total: &str) -> u16 {
        let body = json!({"payment_id": payment, "refunded_total": total, "currency": "USD"});
        let body = body.to_string();
        self.notify(&body, &signature(&body)).await
    }
}

#[tokio::test]
async fn refund_webhook_records_each_refund_once() {
    let mut fixture = SubscriptionFixture::start_server().await;
    let subscription = fixture.subscribe(json!({})).await;
    let fields = json!({"external_payment_id": "pi_42", "amount": 20, "status": "completed"});
    let payment = fixture.pay(&subscription, fields).await;
    let pending = json!({"external_payment_id": "pi_43", "amount": 20});
    fixture.pay(&subscription, pending).await;
    let mut command = script(&fixture.service, "node", "refund-webhook.mjs");
    let webhook = ExampleServer::start(command.env("WEBHOOK_SECRET", SECRET)).await;
    let path = record_path(&payment);
    let state = async || -> (Value, Value) {
        let payment = fixture.api.get_json(&path).await;
        (
            payment["status"].clone(),
            payment["refunded_amount"].clone(),
        )
    };

    let body = json!({"payment_id": "pi_42", "refunded_total": "5.00", "currency": "USD"});
    let forged = signature("another body");
    assert_eq!(webhook.notify(&body.to_string(), &forged).await, 401);
    assert_eq!(webhook.notify(&body.to_string(), "").await, 401);
    for (body, status) in [
        ("[", 400),
        ("{}", 422),
        (
            r#"{"payment_id": "pi_42", "refunded_total": "5.00", "currency": "EUR"}"#,
            422,
        ),
    ] {
        assert_eq!(
            webhook.notify(body, &signature(body)).await,
            status,
            "{body}"
        );
    }
    // The provider retries later.
    assert_eq!(webhook.notify_refund("pi_41", "5.00").await, 404);
    assert_eq!(webhook.notify_refund("pi_43", "5.00").await, 409);
    assert_eq!(webhook.notify_refund("pi_42", "20.01").await, 422);
    assert_eq!(state().await, (json!("completed"), json!(0.0)));

    // A partial refund, its repetition, and an older notification that arrives late.
    for total in ["5.00", "5.00", "3.00"] {
        assert_eq!(webhook.notify_refund("pi_42", total).await, 204);
        assert_eq!(state().await, (json!("partially_refunded"), json!(5.0)));
    }
    assert_eq!(
        fixture.events(&payment).await,
        ["payment.created", "payment.updated"]
    );
    // Of concurrent notifications, the largest amount counts.
    let totals = ["7.00", "11.00", "9.00", "8.00", "11.00"];
    let sent = totals.map(|total| webhook.notify_refund("pi_42", total));
    let [first, second, third, fourth, fifth] = sent;
    let statuses = tokio::join!(first, second, third, fourth, fifth);
    assert_eq!(statuses, (204, 204, 204, 204, 204));
    assert_eq!(state().await, (json!("partially_refunded"), json!(11.0)));

    // The rest, its repetition, and a partial refund that arrives late.
    assert_eq!(webhook.notify_refund("pi_42", "20.00").await, 204);
    let events = fixture.events(&payment).await;
    for total in ["20.00", "20", "11.00"] {
        assert_eq!(webhook.notify_refund("pi_42", total).await, 204);
        assert_eq!(state().await, (json!("refunded"), json!(20.0)));
    }
    assert_eq!(fixture.events(&payment).await, events);

    // Without the service, the provider retries later.
    fixture.service.server.process.kill();
    assert_eq!(webhook.notify_refund("pi_42", "20.00").await, 503);
}
