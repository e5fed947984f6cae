//! Events in words: what happened, and which fields changed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::EventKind;
use serde_json::value::RawValue;

use super::plain_text::date;
use crate::events::RecordedEvent;

/// Changed fields that are left out, because others say the same.
const OMITTED: [&str; 4] = [
    "updated_at",
    "current_period_starts_at",
    "current_period_ends_at",
    "paid_until",
];

/// The fields of an event's data, as text, so that amounts keep the currency's decimals.
type Fields = BTreeMap<String, Box<RawValue>>;

/// Returns what happened, and the changed fields.
pub fn sentence(event: &RecordedEvent) -> String {
    let summary = summarize(event);
    let title = match event.kind.parse() {
        Ok(kind) => title(kind).unwrap_or(&event.kind),
        Err(_) => &event.kind,
    };
    if summary.is_empty() {
        format!("{title}.")
    } else {
        format!("{title}: {summary}.")
    }
}

/// Names an event of a user, a subscription or a payment.
fn title(kind: EventKind) -> Option<&'static str> {
    Some(match kind {
        EventKind::UserCreated => "User created",
        EventKind::UserClaimed => "User signed up",
        EventKind::UserErased => "User erased",
        EventKind::UserUpdated => "User updated",
        EventKind::UserEmailChanged => "Email address changed",
        EventKind::UserSessionsRevoked => "Sessions of the user revoked",
        EventKind::SubscriptionCreated => "Subscription created",
        EventKind::SubscriptionUpdated => "Subscription updated",
        EventKind::SubscriptionRenewed => "Subscription renewed",
        EventKind::SubscriptionPastDue => "Subscription became past due",
        EventKind::SubscriptionUnpaid => "Subscription became unpaid",
        EventKind::SubscriptionExpired => "Subscription expired",
        EventKind::SubscriptionEnded => "Subscription ended with the user's account",
        EventKind::SubscriptionDeleted => "Subscription deleted",
        EventKind::PaymentCreated => "Payment recorded",
        EventKind::PaymentUpdated => "Payment updated",
        EventKind::PaymentDeleted => "Payment deleted",
        _ => return None,
    })
}

/// Returns the changed fields of an update. For any other event, returns the status, and for a payment
/// also the amount.
pub fn summarize(event: &RecordedEvent) -> String {
    let parse = |raw: &RawValue| serde_json::from_str::<Fields>(raw.get()).ok();
    let fields = parse(&event.data).unwrap_or_default();
    let field = |name: &str| fields.get(name).map(|value| format_value(value));
    let Some(previous) = fields.get("previous").and_then(|previous| parse(previous)) else {
        let amount = field("amount").zip(field("currency"));
        let amount = amount.map(|(amount, currency)| format!("{amount} {currency}, "));
        return match field("status") {
            Some(status) => format!("{}{status}", amount.unwrap_or_default()),
            None => String::new(),
        };
    };
    let mut previous: Vec<_> = previous
        .iter()
        .filter(|(name, _)| !OMITTED.contains(&name.as_str()))
        .collect();
    // The most important fields first.
    previous.sort_by_key(|(name, _)| (name.as_str() != "status", name.as_str() != "is_active"));
    let changes = previous.into_iter().map(|(name, old)| {
        // Its values may be long, and personal data.
        if name == "metadata" {
            return "metadata changed".to_owned();
        }
        let new = field(name).unwrap_or_default();
        format!("{name} {} → {new}", format_value(old))
    });
    changes.collect::<Vec<_>>().join(", ")
}

/// Formats a JSON value: instants to the minute, other strings without quotes, numbers as they were
/// written.
fn format_value(value: &RawValue) -> String {
    match serde_json::from_str::<Option<String>>(value.get()) {
        Ok(None) => "none".to_owned(),
        Ok(Some(text)) => match text.parse::<Timestamp>() {
            Ok(instant) => date(instant),
            Err(_) => text,
        },
        Err(_) => value.get().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::events::RecordedActor;

    fn event(kind: &str, data: &str) -> RecordedEvent {
        RecordedEvent {
            at: Timestamp::UNIX_EPOCH,
            kind: kind.to_owned(),
            subject: Uuid::nil(),
            actor: RecordedActor::default(),
            request_id: None,
            data: RawValue::from_string(data.to_owned()).unwrap(),
        }
    }

    fn summary_of(data: &str) -> String {
        summarize(&event("subscription.updated", data))
    }

    #[test]
    fn amounts_keep_the_decimals_of_their_currency() {
        let created = r#"{"status": "completed", "amount": 10.00, "currency": "USD"}"#;
        assert_eq!(summary_of(created), "10.00 USD, completed");
        let updated = r#"{"price": 20.50, "previous": {"price": 10.00}}"#;
        assert_eq!(summary_of(updated), "price 10.00 → 20.50");
    }

    #[test]
    fn updates_show_the_status_first_and_instants_to_the_minute() {
        let updated = r#"{"ends_at": null, "status": "active", "previous":
            {"ends_at": "2026-11-15T09:30:00.123456Z", "status": "past_due", "updated_at": "x"}}"#;
        assert_eq!(
            summary_of(updated),
            "status past_due → active, ends_at 2026-11-15 09:30 → none"
        );
    }

    #[test]
    fn values_of_metadata_are_not_shown() {
        let updated = r#"{"metadata": {"name": "Ada"}, "previous": {"metadata": {}}}"#;
        assert_eq!(summary_of(updated), "metadata changed");
    }

    #[test]
    fn sentence_names_what_happened() {
        let paid = r#"{"status": "failed", "amount": 19.99, "currency": "USD"}"#;
        let paid = sentence(&event("payment.created", paid));
        assert_eq!(paid, "Payment recorded: 19.99 USD, failed.");
        assert_eq!(sentence(&event("user.created", "{}")), "User created.");
        assert_eq!(sentence(&event("user.moved", "{}")), "user.moved.");
    }
}
