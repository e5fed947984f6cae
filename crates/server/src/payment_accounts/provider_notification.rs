//! What a notification says, in terms that all payment providers share.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use perennial_domain::{
    NotificationState, PaymentMode, PaymentObjectKind, PaymentProvider, refusal_reason,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{lemon_squeezy, stripe};

/// The longest id or type that is stored.
const MAX_TEXT_BYTES: usize = 255;

/// An object of a payment provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentObjectRef {
    pub kind: PaymentObjectKind,
    pub id: String,
}

/// A notification as its provider's folder reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderNotification {
    /// The same each time the notification is sent.
    pub event_id: String,
    pub event_type: String,
    pub mode: PaymentMode,
    /// The provider's id of the account or store, if the notification names it.
    pub account: Option<String>,
    /// `None` if notifications of this type change no record.
    pub object: Option<PaymentObjectRef>,
}

/// Which part of a notification could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct UnreadableNotification {
    pub field: &'static str,
    pub message: &'static str,
}

impl UnreadableNotification {
    pub const fn new(field: &'static str, message: &'static str) -> Self {
        Self { field, message }
    }
}

/// Returns the text at a JSON pointer, if it can be stored as an id or a type.
pub fn text_at<'a>(
    body: &'a Value,
    pointer: &'static str,
) -> Result<&'a str, UnreadableNotification> {
    let text = body.pointer(pointer).and_then(Value::as_str);
    text.filter(|text| is_storable(text))
        .ok_or(UnreadableNotification::new(
            pointer,
            "must be a text of 1 to 255 bytes without control characters",
        ))
}

/// Returns whether a text can be stored as an id or a type.
pub fn is_storable(text: &str) -> bool {
    (1..=MAX_TEXT_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Parses a body, or says that it is not JSON.
pub fn parse_body(body: &[u8]) -> Result<Value, UnreadableNotification> {
    serde_json::from_slice(body)
        .map_err(|_| UnreadableNotification::new("", "the body must be a JSON document"))
}

/// Returns the SHA-256 of a body as text.
pub fn body_digest(body: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(body))
}

fn read_notification(
    provider: PaymentProvider,
    body: &[u8],
) -> Result<ProviderNotification, UnreadableNotification> {
    match provider {
        PaymentProvider::Stripe => stripe::read_notification(body),
        PaymentProvider::LemonSqueezy => lemon_squeezy::read_notification(body),
    }
}

/// A notification and what follows from it for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedNotification {
    pub event_id: String,
    /// Empty if the notification could not be read.
    pub event_type: String,
    pub object: Option<PaymentObjectRef>,
    pub state: NotificationState,
    /// Why the state is not `new`.
    pub reason: Option<String>,
}

impl ClassifiedNotification {
    /// Reads an authentic notification. One that is not understood is stored too, with the state that says why.
    pub fn new(
        provider: PaymentProvider,
        expected_mode: PaymentMode,
        expected_account: Option<&str>,
        body: &[u8],
    ) -> Self {
        let read = match read_notification(provider, body) {
            Ok(read) => read,
            Err(unreadable) => {
                return Self {
                    event_id: body_digest(body),
                    event_type: String::new(),
                    object: None,
                    state: NotificationState::Failed,
                    reason: Some(unreadable.to_string()),
                };
            }
        };
        let refusal = refusal_reason(
            expected_mode,
            expected_account,
            Some(read.mode),
            read.account.as_deref(),
        );
        let (state, reason) = match (refusal, &read.object) {
            (Some(reason), _) => (NotificationState::Refused, Some(reason)),
            (None, None) => (
                NotificationState::Ignored,
                Some("notifications of this type change no record"),
            ),
            (None, Some(_)) => (NotificationState::New, None),
        };
        Self {
            event_id: read.event_id,
            event_type: read.event_type,
            object: read.object,
            state,
            reason: reason.map(str::to_owned),
        }
    }

    /// Returns the object that may have changed. `None` if the notification is not to be processed.
    pub fn changed_object(&self) -> Option<&PaymentObjectRef> {
        let is_new = self.state == NotificationState::New;
        self.object.as_ref().filter(|_| is_new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn classify(body: &str) -> ClassifiedNotification {
        let (provider, mode) = (PaymentProvider::Stripe, PaymentMode::Test);
        ClassifiedNotification::new(provider, mode, Some("acct_1"), body.as_bytes())
    }

    #[test]
    fn state_says_what_follows_from_a_notification() {
        let event = |kind: &str, live: bool, account: Option<&str>| {
            let object = json!({"object": {"id": "sub_1", "object": "subscription"}});
            json!({"id": "evt_1", "object": "event", "type": kind, "livemode": live, "account": account, "data": object})
                .to_string()
        };
        let updated = "customer.subscription.updated";
        for (body, state) in [
            (event(updated, false, None), NotificationState::New),
            (
                event(updated, false, Some("acct_1")),
                NotificationState::New,
            ),
            (
                event(updated, false, Some("acct_2")),
                NotificationState::Refused,
            ),
            (event(updated, true, None), NotificationState::Refused),
            (
                event("balance.available", false, None),
                NotificationState::Ignored,
            ),
            (event("", false, None), NotificationState::Failed),
            ("{".to_owned(), NotificationState::Failed),
            ("[]".to_owned(), NotificationState::Failed),
            ("\u{0}".to_owned(), NotificationState::Failed),
        ] {
            let classified = classify(&body);
            assert_eq!(classified.state, state, "{body}");
            let is_new = state == NotificationState::New;
            assert_eq!(classified.reason.is_none(), is_new, "{body}");
            assert_eq!(classified.changed_object().is_some(), is_new, "{body}");
            assert!(is_storable(&classified.event_id), "{body}");
        }
    }

    #[test]
    fn text_that_cannot_be_stored_is_unreadable() {
        for id in ["", "a\u{0}b", "a\nb", &"x".repeat(256)] {
            let body = json!({"id": id, "type": "x", "livemode": false}).to_string();
            let classified = classify(&body);
            assert_eq!(classified.state, NotificationState::Failed, "{id}");
            assert!(classified.reason.unwrap().starts_with("/id: must be"));
        }
    }
}
