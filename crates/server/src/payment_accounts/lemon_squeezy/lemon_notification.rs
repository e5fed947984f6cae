//! The webhook requests of Lemon Squeezy, in the form of JSON:API.

use perennial_domain::{PaymentMode, PaymentObjectKind};
use serde_json::Value;

use crate::payment_accounts::provider_notification::{
    PaymentObjectRef, ProviderNotification, UnreadableNotification, body_digest, is_storable,
    parse_body, text_at,
};

/// How many characters of the body's digest are part of an event id.
const DIGEST_LENGTH: usize = 32;
const STORE_ID: &str = "/data/attributes/store_id";

/// Reads a webhook request.
pub fn read_notification(raw_body: &[u8]) -> Result<ProviderNotification, UnreadableNotification> {
    let body = parse_body(raw_body)?;
    let event_type = text_at(&body, "/meta/event_name")?;
    let is_test = body.pointer("/meta/test_mode").and_then(Value::as_bool);
    let is_test = is_test.ok_or(UnreadableNotification::new(
        "/meta/test_mode",
        "must be true or false",
    ))?;
    let object = match changed_kind(event_type) {
        None => None,
        Some(kind) => Some(PaymentObjectRef {
            kind,
            id: id_at(&body, "/data/id")?,
        }),
    };
    Ok(ProviderNotification {
        event_id: event_id(&body, raw_body),
        event_type: event_type.to_owned(),
        mode: if is_test {
            PaymentMode::Test
        } else {
            PaymentMode::Live
        },
        account: id_at(&body, STORE_ID).ok(),
        object,
    })
}

/// Returns the id of an event: `meta.webhook_id`, which is not documented and may be missing, and a part of the digest of
/// the body. So events that share a `webhook_id` are not mistaken for repeated ones.
fn event_id(body: &Value, raw_body: &[u8]) -> String {
    let digest = body_digest(raw_body);
    let digest = digest.get(..DIGEST_LENGTH).unwrap_or(&digest);
    let id = body.pointer("/meta/webhook_id").and_then(Value::as_str);
    match id.filter(|id| is_storable(&format!("{id}.{digest}"))) {
        Some(id) => format!("{id}.{digest}"),
        None => digest.to_owned(),
    }
}

/// Returns an id, which is a text or a number.
fn id_at(body: &Value, pointer: &'static str) -> Result<String, UnreadableNotification> {
    match body.pointer(pointer).and_then(Value::as_u64) {
        Some(number) => Ok(number.to_string()),
        None => text_at(body, pointer).map(str::to_owned),
    }
}

/// Returns the kind of object that an event of this type is about, or `None` if the event changes no record.
pub(super) fn changed_kind(event_type: &str) -> Option<PaymentObjectKind> {
    let kind = match event_type {
        "subscription_cancelled"
        | "subscription_created"
        | "subscription_expired"
        | "subscription_paused"
        | "subscription_plan_changed"
        | "subscription_resumed"
        | "subscription_unpaused"
        | "subscription_updated" => PaymentObjectKind::Subscription,
        "subscription_payment_failed"
        | "subscription_payment_recovered"
        | "subscription_payment_refunded"
        | "subscription_payment_success" => PaymentObjectKind::Invoice,
        "order_created" | "order_refunded" => PaymentObjectKind::Order,
        _ => return None,
    };
    Some(kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(name: &str, data_type: &str) -> Value {
        json!({
            "meta": {"event_name": name, "test_mode": true, "webhook_id": "8c4b"},
            "data": {"type": data_type, "id": "41", "attributes": {"store_id": 7}},
        })
    }

    fn read(event: &Value) -> Result<ProviderNotification, UnreadableNotification> {
        read_notification(event.to_string().as_bytes())
    }

    #[test]
    fn event_names_the_object_that_changed() {
        for (name, data_type, kind) in [
            (
                "subscription_updated",
                "subscriptions",
                PaymentObjectKind::Subscription,
            ),
            (
                "subscription_payment_success",
                "subscription-invoices",
                PaymentObjectKind::Invoice,
            ),
            ("order_created", "orders", PaymentObjectKind::Order),
        ] {
            let read = read(&event(name, data_type)).unwrap();
            let id = "41".to_owned();
            assert_eq!(read.object, Some(PaymentObjectRef { kind, id }));
            assert_eq!(read.account.as_deref(), Some("7"));
            assert_eq!(read.mode, PaymentMode::Test);
            assert!(read.event_id.starts_with("8c4b."), "{}", read.event_id);
        }
        let ignored = read(&event("license_key_created", "license-keys")).unwrap();
        assert_eq!(ignored.object, None);
    }

    #[test]
    fn event_id_differs_with_the_body_and_needs_no_webhook_id() {
        let first = event("order_created", "orders");
        let mut second = first.clone();
        second["data"]["id"] = json!("42");
        let id = |event: &Value| read(event).unwrap().event_id;
        assert_eq!(id(&first), id(&first));
        assert_ne!(id(&first), id(&second));
        for missing in [json!(null), json!("x".repeat(250)), json!("a\u{0}")] {
            second["meta"]["webhook_id"] = missing;
            assert_eq!(id(&second).len(), DIGEST_LENGTH);
        }
    }

    #[test]
    fn unreadable_event_names_the_field() {
        for (pointer, value) in [
            ("/meta/event_name", json!(7)),
            ("/meta/test_mode", json!("true")),
            ("/data/id", json!(null)),
        ] {
            let mut event = event("order_created", "orders");
            *event.pointer_mut(pointer).unwrap() = value;
            assert_eq!(read(&event).unwrap_err().field, pointer);
        }
    }
}
