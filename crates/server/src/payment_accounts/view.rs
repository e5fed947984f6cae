//! The JSON representations of a payment account and of notifications.

use jiff::Timestamp;
use perennial_domain::{
    AsciiToken, PaymentAccount, PaymentAccountId, PaymentNotificationId, SingleLine,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use super::notifications_sql::PaymentNotification;
use crate::http::{
    response::{display, timestamp, timestamp_or_null},
    schema::named,
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub const COMPUTED: &[&str] = &[
    "has_api_key",
    "has_secret",
    "last_heard_at",
    "last_reconciled_at",
    "pending_commands",
    "updated_at",
];

/// A tenant's account with a payment provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentAccount)]
pub struct PaymentAccountView {
    /// Id of the account. Notifications are sent to `/payment-notifications/` and this id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pac_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PaymentAccountId,
    #[schema(schema_with = provider)]
    provider: &'static str,
    #[schema(schema_with = mode)]
    mode: &'static str,
    /// A note for operators.
    #[schema(required, example = "Shop")]
    description: Option<String>,
    /// The provider's id of the account or store.
    #[schema(required, example = "acct_1042")]
    external_account_id: Option<String>,
    /// Whether a customer whom no user matches gets a new one. Otherwise the notification waits until a user matches.
    #[schema(example = true)]
    creates_users: bool,
    /// Whether an API key is stored.
    #[schema(example = true)]
    has_api_key: bool,
    /// Whether a secret is stored. Without one, no notification is accepted.
    #[schema(example = true)]
    has_secret: bool,
    /// When a notification was received; exact to a minute.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    last_heard_at: Option<Timestamp>,
    /// When all records were compared with the provider's.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    last_reconciled_at: Option<Timestamp>,
    /// How many commands, such as cancellations, the provider has not acknowledged yet.
    #[schema(example = 0)]
    pending_commands: i64,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    updated_at: Timestamp,
}

fn provider() -> Ref {
    named::PAYMENT_PROVIDER.reference("The payment provider.")
}

fn mode() -> Ref {
    named::PAYMENT_MODE.reference("Whether payments are real.")
}

fn state() -> Ref {
    named::PAYMENT_NOTIFICATION_STATE.reference("What has become of the notification.")
}

impl From<&PaymentAccount> for PaymentAccountView {
    fn from(account: &PaymentAccount) -> Self {
        let details = &account.details;
        Self {
            id: account.id,
            provider: account.provider.as_str(),
            mode: account.mode.as_str(),
            description: details.description.as_ref().map(SingleLine::to_string),
            external_account_id: { details.external_account_id.as_ref() }
                .map(AsciiToken::to_string),
            creates_users: details.creates_users,
            has_api_key: account.has_api_key,
            has_secret: account.has_secret,
            last_heard_at: account.last_heard_at,
            last_reconciled_at: account.last_reconciled_at,
            pending_commands: account.pending_commands,
            created_at: account.created_at,
            updated_at: account.updated_at,
        }
    }
}

/// The data of an account's events.
#[derive(Debug, Serialize)]
pub struct PaymentAccountEvent {
    #[serde(serialize_with = "display")]
    id: PaymentAccountId,
    provider: &'static str,
    mode: &'static str,
    description: Option<String>,
    external_account_id: Option<String>,
    creates_users: bool,
    has_api_key: bool,
}

impl From<&PaymentAccount> for PaymentAccountEvent {
    fn from(account: &PaymentAccount) -> Self {
        let view = PaymentAccountView::from(account);
        Self {
            id: view.id,
            provider: view.provider,
            mode: view.mode,
            description: view.description,
            external_account_id: view.external_account_id,
            creates_users: view.creates_users,
            has_api_key: view.has_api_key,
        }
    }
}

/// The result of rotating a payment account's secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentSecret)]
pub struct PaymentSecretView {
    /// The secret that was generated; null if the request has one.
    #[schema(required, example = "5f0c4d8e2a6b4c1f9d7e3b8a1c2d4e6f")]
    secret: Option<String>,
    /// Until when notifications with the previous secret are accepted.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    previous_secret_expires_at: Option<Timestamp>,
}

impl PaymentSecretView {
    pub fn new(
        generated: Option<&SecretString>,
        previous_secret_expires_at: Option<Timestamp>,
    ) -> Self {
        Self {
            secret: generated.map(|secret| secret.expose_secret().to_owned()),
            previous_secret_expires_at,
        }
    }

    pub fn secret(&self) -> Option<&str> {
        self.secret.as_deref()
    }

    pub fn previous_secret_expires_at(&self) -> Option<Timestamp> {
        self.previous_secret_expires_at
    }
}

/// A notification of a payment provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentNotification)]
pub struct PaymentNotificationView {
    /// Id of the notification.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pnt_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PaymentNotificationId,
    /// The account that it was sent to.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pac_0192f0c1a2b37c4d8e5f60718293a4b5")]
    payment_account_id: PaymentAccountId,
    /// The provider's id of the event.
    #[schema(example = "evt_1042")]
    event_id: String,
    /// The provider's type of the event; empty if the notification could not be read.
    #[schema(example = "customer.subscription.updated")]
    r#type: String,
    /// Kind of the provider's object that may have changed, such as `subscription` or `invoice`.
    #[schema(required, example = "subscription")]
    object_type: Option<&'static str>,
    /// The provider's id of the object.
    #[schema(required, example = "sub_1042")]
    object_id: Option<String>,
    #[schema(schema_with = state)]
    state: &'static str,
    /// Why the notification is ignored, waiting, failed or refused.
    #[schema(required, example = json!(null))]
    reason: Option<String>,
    /// Failed attempts to process it.
    #[schema(example = 0)]
    attempts: i32,
    /// When it is processed again.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    next_attempt_at: Option<Timestamp>,
    /// When it was received.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
}

impl From<&PaymentNotification> for PaymentNotificationView {
    fn from(notification: &PaymentNotification) -> Self {
        let content = &notification.content;
        let object = content.object.as_ref();
        Self {
            id: notification.id,
            payment_account_id: notification.account,
            event_id: content.event_id.clone(),
            r#type: content.event_type.clone(),
            object_type: object.map(|object| object.kind.as_str()),
            object_id: object.map(|object| object.id.clone()),
            state: content.state.as_str(),
            reason: content.reason.clone(),
            attempts: notification.attempts,
            next_attempt_at: notification.next_attempt_at,
            created_at: notification.created_at,
        }
    }
}

/// The response to a payment provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReceivedNotification)]
pub struct ReceivedNotificationView {
    /// Id of the notification; of the first one, if it was sent before.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pnt_0192f0c1a2b37c4d8e5f60718293a4b5")]
    pub id: PaymentNotificationId,
}
