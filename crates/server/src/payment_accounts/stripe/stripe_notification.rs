//! The events of Stripe: full ones, which contain the object, and thin ones, which only name it.

use perennial_domain::{PaymentMode, PaymentObjectKind};
use serde_json::Value;

use crate::payment_accounts::provider_notification::{
    PaymentObjectRef, ProviderNotification, UnreadableNotification, is_storable, parse_body,
    text_at,
};

/// The value of `object` in a thin event.
const THIN_EVENT: &str = "v2.core.event";

/// Reads an event.
pub fn read_notification(body: &[u8]) -> Result<ProviderNotification, UnreadableNotification> {
    let body = parse_body(body)?;
    let event_type = text_at(&body, "/type")?;
    let is_live = body.get("livemode").and_then(Value::as_bool);
    let is_live = is_live.ok_or(UnreadableNotification::new(
        "/livemode",
        "must be true or false",
    ))?;
    let is_thin = body.get("object").and_then(Value::as_str) == Some(THIN_EVENT);
    // Thin events of objects of the first API have its types, with the prefix `v1.`.
    let known_type = event_type.strip_prefix("v1.").unwrap_or(event_type);
    let object = match changed_kind(known_type) {
        None => None,
        Some(_) if is_thin => Some(related_object(&body)?),
        Some(kind) => contained_object(&body, kind)?,
    };
    // The account of a platform's event: `account`, or `context` in a thin event.
    let account = ["account", "context"]
        .iter()
        .find_map(|field| body.get(*field).and_then(Value::as_str));
    Ok(ProviderNotification {
        event_id: text_at(&body, "/id")?.to_owned(),
        event_type: event_type.to_owned(),
        mode: if is_live {
            PaymentMode::Live
        } else {
            PaymentMode::Test
        },
        account: account.map(str::to_owned),
        object,
    })
}

/// Returns the kind of object that an event of this type is about, or `None` if the event changes no record.
///
/// `invoice.created` is not in the list. Stripe delays the finalization of an invoice if its notification fails.
pub(super) fn changed_kind(event_type: &str) -> Option<PaymentObjectKind> {
    let kind = match event_type {
        "customer.subscription.created"
        | "customer.subscription.deleted"
        | "customer.subscription.paused"
        | "customer.subscription.pending_update_applied"
        | "customer.subscription.pending_update_expired"
        | "customer.subscription.resumed"
        | "customer.subscription.trial_will_end"
        | "customer.subscription.updated"
        | "checkout.session.async_payment_succeeded"
        | "checkout.session.completed" => PaymentObjectKind::Subscription,
        "invoice.finalized"
        | "invoice.marked_uncollectible"
        | "invoice.overdue"
        | "invoice.overpaid"
        | "invoice.paid"
        | "invoice.payment_action_required"
        | "invoice.payment_failed"
        | "invoice.payment_succeeded"
        | "invoice.updated"
        | "invoice.voided" => PaymentObjectKind::Invoice,
        "charge.refunded" => PaymentObjectKind::Charge,
        "charge.refund.updated" | "refund.created" | "refund.failed" | "refund.updated" => {
            PaymentObjectKind::Refund
        }
        "charge.dispute.closed"
        | "charge.dispute.created"
        | "charge.dispute.funds_reinstated"
        | "charge.dispute.funds_withdrawn"
        | "charge.dispute.updated" => PaymentObjectKind::Dispute,
        _ => return None,
    };
    Some(kind)
}

/// Returns the object in a full event. Refunds, disputes and charges lead to their payment, because that is what an invoice
/// can be found by. A checkout session leads to its subscription, or to the invoice of a one-time purchase. Without both, it
/// changes no record.
fn contained_object(
    body: &Value,
    kind: PaymentObjectKind,
) -> Result<Option<PaymentObjectRef>, UnreadableNotification> {
    let object = body.pointer("/data/object").unwrap_or(&Value::Null);
    let is_session = object.get("object").and_then(Value::as_str) == Some("checkout.session");
    let payment = match kind {
        PaymentObjectKind::Charge | PaymentObjectKind::Refund | PaymentObjectKind::Dispute => {
            linked_id(object, "payment_intent")
        }
        PaymentObjectKind::Subscription
        | PaymentObjectKind::Invoice
        | PaymentObjectKind::Order
        | PaymentObjectKind::PaymentIntent
        | PaymentObjectKind::Customer => None,
    };
    let found = match (payment, is_session) {
        (Some(id), _) => Some((PaymentObjectKind::PaymentIntent, id)),
        (None, true) => {
            let subscription = linked_id(object, "subscription").map(|id| (kind, id));
            let invoice = || Some((PaymentObjectKind::Invoice, linked_id(object, "invoice")?));
            subscription.or_else(invoice)
        }
        (None, false) => Some((kind, text_at(body, "/data/object/id")?)),
    };
    Ok(found.map(|(kind, id)| PaymentObjectRef {
        kind,
        id: id.to_owned(),
    }))
}

/// Returns the id of an object that a field names, or contains if the field is expanded.
fn linked_id<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    let linked = object.get(field)?;
    let id = linked.as_str().or_else(|| linked.get("id")?.as_str());
    id.filter(|id| is_storable(id))
}

/// Returns the object that a thin event names. The prefix of its id tells its kind.
fn related_object(body: &Value) -> Result<PaymentObjectRef, UnreadableNotification> {
    const ID: &str = "/related_object/id";
    let id = text_at(body, ID)?;
    let prefix = id.split_once('_').map_or("", |(prefix, _)| prefix);
    let kind = match prefix {
        "sub" => PaymentObjectKind::Subscription,
        "in" => PaymentObjectKind::Invoice,
        "pi" => PaymentObjectKind::PaymentIntent,
        "ch" | "py" => PaymentObjectKind::Charge,
        "re" | "pyr" => PaymentObjectKind::Refund,
        "dp" | "du" => PaymentObjectKind::Dispute,
        _ => {
            let message = "must be the id of a subscription, invoice, payment, refund or dispute";
            return Err(UnreadableNotification::new(ID, message));
        }
    };
    Ok(PaymentObjectRef {
        kind,
        id: id.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object_of(event: &Value) -> Option<(PaymentObjectKind, String)> {
        let body = event.to_string();
        let object = read_notification(body.as_bytes()).unwrap().object;
        object.map(|object| (object.kind, object.id))
    }

    #[test]
    fn full_event_names_the_object_that_changed() {
        use PaymentObjectKind::{Charge, Dispute, Invoice, PaymentIntent, Refund, Subscription};
        let cases = [
            (
                "customer.subscription.updated",
                json!({"id": "sub_1"}),
                (Subscription, "sub_1"),
            ),
            ("invoice.paid", json!({"id": "in_1"}), (Invoice, "in_1")),
            (
                "checkout.session.completed",
                json!({"id": "cs_1", "object": "checkout.session", "subscription": "sub_1"}),
                (Subscription, "sub_1"),
            ),
            (
                "checkout.session.completed",
                json!({"id": "cs_1", "object": "checkout.session", "subscription": null, "invoice": "in_1"}),
                (Invoice, "in_1"),
            ),
            (
                "charge.refunded",
                json!({"id": "ch_1", "payment_intent": "pi_1"}),
                (PaymentIntent, "pi_1"),
            ),
            (
                "charge.refunded",
                json!({"id": "ch_1", "payment_intent": null}),
                (Charge, "ch_1"),
            ),
            (
                "refund.updated",
                json!({"id": "re_1", "payment_intent": {"id": "pi_1"}}),
                (PaymentIntent, "pi_1"),
            ),
            ("refund.failed", json!({"id": "re_1"}), (Refund, "re_1")),
            (
                "charge.dispute.created",
                json!({"id": "dp_1"}),
                (Dispute, "dp_1"),
            ),
        ];
        for (kind, object, (expected_kind, expected_id)) in cases {
            let event = json!({"id": "evt_1", "object": "event", "type": kind, "livemode": true, "data": {"object": object}});
            let expected = Some((expected_kind, expected_id.to_owned()));
            assert_eq!(object_of(&event), expected, "{event}");
        }
    }

    #[test]
    fn checkout_session_without_subscription_has_no_object() {
        let session = json!({"id": "cs_1", "object": "checkout.session", "payment_intent": "pi_1"});
        let event = json!({"id": "evt_1", "type": "checkout.session.completed", "livemode": true,
            "data": {"object": session}});
        assert_eq!(object_of(&event), None);
    }

    #[test]
    fn thin_event_names_the_object_that_changed() {
        for (kind, id, expected) in [
            (
                "v1.customer.subscription.updated",
                "sub_1",
                PaymentObjectKind::Subscription,
            ),
            ("v1.invoice.paid", "in_1", PaymentObjectKind::Invoice),
            ("v1.refund.created", "re_1", PaymentObjectKind::Refund),
        ] {
            let event = json!({"id": "evt_1", "object": THIN_EVENT, "type": kind, "livemode": false,
                "related_object": {"id": id, "type": "x", "url": "/v1/x"}, "context": "acct_1"});
            assert_eq!(object_of(&event), Some((expected, id.to_owned())));
            let read = read_notification(event.to_string().as_bytes()).unwrap();
            assert_eq!(read.account.as_deref(), Some("acct_1"));
            assert_eq!(
                (read.event_id.as_str(), read.mode),
                ("evt_1", PaymentMode::Test)
            );
        }
    }

    #[test]
    fn unknown_type_has_no_object() {
        for kind in [
            "invoice.created",
            "invoice.upcoming",
            "customer.created",
            "v2.x",
            "x",
        ] {
            for object in ["event", THIN_EVENT] {
                let event =
                    json!({"id": "evt_1", "object": object, "type": kind, "livemode": false});
                assert_eq!(object_of(&event), None, "{event}");
            }
        }
    }

    #[test]
    fn unreadable_event_names_the_field() {
        let valid = json!({"id": "evt_1", "type": "invoice.paid", "livemode": false, "data": {"object": {"id": "in_1"}}});
        for (pointer, expected) in [
            ("/id", "/id"),
            ("/type", "/type"),
            ("/livemode", "/livemode"),
            ("/data/object/id", "/data/object/id"),
            ("/data", "/data/object/id"),
        ] {
            let mut event = valid.clone();
            *event.pointer_mut(pointer).unwrap() = json!(7);
            let error = read_notification(event.to_string().as_bytes()).unwrap_err();
            assert_eq!(error.field, expected, "{pointer}");
        }
        let thin = json!({"id": "evt_1", "object": THIN_EVENT, "type": "v1.invoice.paid", "livemode": false,
            "related_object": {"id": "unknown_1"}});
        let error = read_notification(thin.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.field, "/related_object/id");
    }
}
