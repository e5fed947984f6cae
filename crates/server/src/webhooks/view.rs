//! The JSON representations of a webhook endpoint, of attempts and of replays.

use jiff::Timestamp;
use perennial_domain::{EventId, SingleLine, WebhookEndpoint, WebhookEndpointId, WebhookReplayId};
use secrecy::ExposeSecret;
use serde::Serialize;
use url::Url;
use utoipa::{
    ToSchema,
    openapi::{Ref, RefOr, schema::Schema},
};

use super::{
    attempts_sql::WebhookAttempt, body, replays_sql::WebhookReplay, signature::WebhookSecret,
};
use crate::http::{
    response::{display, timestamp, timestamp_or_null},
    schema::named,
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub const COMPUTED: &[&str] = &[
    "disabled_reason",
    "disabled_at",
    "failing_since",
    "updated_at",
];

/// A webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub struct WebhookEndpointView {
    /// Id of the endpoint.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "whe_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: WebhookEndpointId,
    /// Where events are sent.
    #[schema(format = "uri", example = "https://example.com/webhooks")]
    url: String,
    /// A note for operators.
    #[schema(required, example = "Accounting")]
    description: Option<String>,
    #[schema(schema_with = event_types)]
    event_types: Vec<&'static str>,
    #[schema(schema_with = delivery_order)]
    order: &'static str,
    #[schema(schema_with = status)]
    status: &'static str,
    /// Why the endpoint was disabled: `request`, `gone` (it responded with 410) or `failures` (all attempts failed for
    /// five days).
    #[schema(required, example = json!(null))]
    disabled_reason: Option<&'static str>,
    /// When the endpoint was disabled.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    disabled_at: Option<Timestamp>,
    /// Since when all attempts have failed; null after a success.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    failing_since: Option<Timestamp>,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    updated_at: Timestamp,
}

fn event_types() -> RefOr<Schema> {
    body::event_types("The types of events to send; empty means all.")
}

fn replayed_types() -> RefOr<Schema> {
    body::event_types("The types of events to send; empty means those of the endpoint.")
}

fn delivery_order() -> Ref {
    named::DELIVERY_ORDER.reference("The order of events.")
}

fn status() -> Ref {
    named::WEBHOOK_ENDPOINT_STATUS.reference("Whether the endpoint receives events.")
}

impl From<&WebhookEndpoint> for WebhookEndpointView {
    fn from(endpoint: &WebhookEndpoint) -> Self {
        let details = &endpoint.details;
        Self {
            id: endpoint.id,
            url: details.url.as_str().to_owned(),
            description: details.description.as_ref().map(SingleLine::to_string),
            event_types: details.event_types.names(),
            order: details.order.as_str(),
            status: details.status.as_str(),
            disabled_reason: endpoint.disabled.map(|(reason, _)| reason.as_str()),
            disabled_at: endpoint.disabled.map(|(_, at)| at),
            failing_since: endpoint.failing_since,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
        }
    }
}

/// The secret of a webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
pub struct WebhookSecretView {
    /// Verifies the header `webhook-signature`.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    /// Until when requests are also signed with the previous secret.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    previous_secret_expires_at: Option<Timestamp>,
}

impl WebhookSecretView {
    pub fn new(secret: &WebhookSecret, previous_secret_expires_at: Option<Timestamp>) -> Self {
        Self {
            secret: secret.to_text().expose_secret().to_owned(),
            previous_secret_expires_at,
        }
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub fn previous_secret_expires_at(&self) -> Option<Timestamp> {
        self.previous_secret_expires_at
    }
}

/// The data of an endpoint's events. A URL may contain a credential, so events have its origin only.
#[derive(Debug, Serialize)]
pub struct WebhookEndpointEvent {
    #[serde(serialize_with = "display")]
    id: WebhookEndpointId,
    url_origin: String,
    event_types: Vec<&'static str>,
    order: &'static str,
    status: &'static str,
    disabled_reason: Option<&'static str>,
}

impl From<&WebhookEndpoint> for WebhookEndpointEvent {
    fn from(endpoint: &WebhookEndpoint) -> Self {
        let details = &endpoint.details;
        let url = Url::parse(details.url.as_str());
        Self {
            id: endpoint.id,
            url_origin: url
                .map_or_else(|_| String::new(), |url| url.origin().ascii_serialization()),
            event_types: details.event_types.names(),
            order: details.order.as_str(),
            status: details.status.as_str(),
            disabled_reason: endpoint.disabled.map(|(reason, _)| reason.as_str()),
        }
    }
}

/// An attempt to deliver an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
pub struct WebhookAttemptView {
    /// The event, and the header `webhook-id`.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "evt_0192f0c1a2b37c4d8e5f60718293a4b5")]
    event_id: EventId,
    /// Type of the event.
    #[schema(example = "subscription.updated")]
    event_type: String,
    /// 1 for the first attempt.
    #[schema(example = 1)]
    attempt: i32,
    /// Whether the response had a 2xx status.
    #[schema(example = true)]
    is_success: bool,
    /// The HTTP status; null without a response.
    #[schema(required, example = 200)]
    status_code: Option<i32>,
    /// Why there was no response.
    #[schema(required, example = json!(null))]
    error: Option<String>,
    /// Milliseconds until the end of the response.
    #[schema(example = 42)]
    duration_ms: i32,
    /// When the attempt was made.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
}

impl From<&WebhookAttempt> for WebhookAttemptView {
    fn from(attempt: &WebhookAttempt) -> Self {
        Self {
            event_id: attempt.event,
            event_type: attempt.kind.clone(),
            attempt: attempt.number,
            is_success: attempt.is_success,
            status_code: attempt.status_code,
            error: attempt.error.clone(),
            duration_ms: attempt.duration_ms,
            created_at: attempt.created_at,
        }
    }
}

/// A replay of events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookReplay)]
pub struct WebhookReplayView {
    /// Id of the replay.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "whr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: WebhookReplayId,
    /// Events after this position of the log are sent.
    #[schema(example = 1041)]
    after_position: i64,
    /// The last position to send.
    #[schema(example = 2042)]
    last_position: i64,
    #[schema(schema_with = replayed_types)]
    event_types: Vec<&'static str>,
    /// Whether only events are sent whose attempts were given up.
    #[schema(example = false)]
    only_failed: bool,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
}

impl From<&WebhookReplay> for WebhookReplayView {
    fn from(replay: &WebhookReplay) -> Self {
        Self {
            id: replay.id,
            after_position: replay.position,
            last_position: replay.last_position,
            event_types: replay.event_types.names(),
            only_failed: replay.only_failed,
            created_at: replay.created_at,
        }
    }
}
