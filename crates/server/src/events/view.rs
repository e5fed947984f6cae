//! The JSON representation of an event, in the API, in webhooks and in streams.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{
    EventId, Id, PaymentAccountId, PaymentId, PlanId, SessionId, SubscriptionId, UserId,
    WebhookEndpointId,
};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{RecordedActor, log::LoggedEvent};
use crate::http::response::{display, timestamp};

/// An event: a change of a record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event, example = json!({
    "id": "evt_0192f0c1a2b37c4d8e5f60718293a4b5",
    "type": "subscription.updated",
    "occurred_at": "2026-11-15T09:30:00.000000Z",
    "recorded_at": "2026-11-15T09:30:00.050000Z",
    "position": 1042,
    "subject_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
    "actor": {"type": "client", "id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5"},
    "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
    "data": {"status": "active"},
    "previous": {"status": "on_trial"}
}))]
pub struct EventView {
    /// Id of the event.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String)]
    id: EventId,
    /// The changed record and what happened to it.
    r#type: &'static str,
    /// When the change took effect. A late renewal has the time at which it was due.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Timestamp,
    /// When the event received its position.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime)]
    recorded_at: Timestamp,
    /// The place in the order of events, starting at 1.
    #[schema(minimum = 1)]
    position: i64,
    /// Id of the changed record.
    subject_id: String,
    actor: EventActor,
    /// Id of the request that made the change.
    #[schema(required)]
    request_id: Option<String>,
    /// The record after the change.
    #[schema(value_type = Object)]
    data: Fields,
    /// The old values of the changed fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    previous: Option<Box<RawValue>>,
}

/// What made a change.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventActor {
    /// `client`: an API key; `user`: a user through a client; `staff`: a staff member in the console; `operator`: a
    /// command; `payment_account`: a payment provider; `system`: a background task.
    #[schema(example = "client")]
    pub r#type: &'static str,
    /// Id of the client, user, staff member or payment account, or the name of the operator.
    #[schema(required, example = "cli_0192f0c1a2b37c4d8e5f60718293a4b5")]
    pub id: Option<String>,
}

/// The fields of a JSON object. Raw text keeps amounts exactly as in the API's responses.
type Fields = BTreeMap<String, Box<RawValue>>;

impl EventView {
    pub fn subject_id(&self) -> &str {
        &self.subject_id
    }
}

impl From<&LoggedEvent> for EventView {
    fn from(event: &LoggedEvent) -> Self {
        // The data of each event is an object.
        let mut data: Fields = serde_json::from_str(event.data.get()).unwrap_or_default();
        let previous = data.remove("previous");
        Self {
            id: event.id,
            r#type: event.kind.as_str(),
            occurred_at: event.at,
            recorded_at: event.recorded_at,
            position: event.position,
            subject_id: subject_id(event.kind.record_type(), event.subject),
            actor: EventActor::from(&event.actor),
            request_id: event.request_id.clone(),
            data,
            previous,
        }
    }
}

impl From<&RecordedActor> for EventActor {
    fn from(actor: &RecordedActor) -> Self {
        let names = [
            ("staff", actor.staff.map(|id| id.to_string())),
            ("user", actor.user.map(|id| id.to_string())),
            ("client", actor.client.map(|id| id.to_string())),
            ("operator", actor.operator.clone()),
            (
                "payment_account",
                actor.payment_account.map(|id| id.to_string()),
            ),
        ];
        let known = names.into_iter().find(|(_, id)| id.is_some());
        let (r#type, id) = known.unwrap_or(("system", None));
        Self { r#type, id }
    }
}

/// Returns the id of a record with the prefix of its type.
pub fn subject_id(record_type: &str, id: Uuid) -> String {
    match record_type {
        "payment_account" => PaymentAccountId::new(id).to_string(),
        "payment" => PaymentId::new(id).to_string(),
        "plan" => PlanId::new(id).to_string(),
        "session" => SessionId::new(id).to_string(),
        "subscription" => SubscriptionId::new(id).to_string(),
        "user" => UserId::new(id).to_string(),
        "webhook_endpoint" => WebhookEndpointId::new(id).to_string(),
        // Records of operators.
        _ => id.to_string(),
    }
}
