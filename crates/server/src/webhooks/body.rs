//! Request fields of webhook endpoints and replays: their schema and parsing.

use jiff::Timestamp;
use perennial_domain::{
    DeliveryOrder, EndpointStatus, EventId, EventTypes, WebhookEndpoint, WebhookEndpointDetails,
    WebhookEndpointId,
};
use serde_json::{json, value::RawValue};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, Schema},
};

use super::view::COMPUTED;
use crate::http::{
    json::{BodyFields, ValueError, boolean, exact, list, text, timestamp},
    problem::Problem,
    request_schema::{RequestField, request_body},
    schema::{self, named},
};

const FIELDS: &[RequestField] = &[
    RequestField::required("url", || {
        let description =
            "Where events are sent. Must be https in live mode, and resolve to a public address.";
        named::URL.reference(description).into()
    }),
    RequestField::nullable("description", || {
        schema::single_line("A note for operators: a single line.", 200, "Accounting").into()
    }),
    RequestField::with_default("event_types", || {
        event_types("The types of events to send; empty means all.")
    })
    .create_note("Default: all."),
    RequestField::with_default("order", || {
        named::DELIVERY_ORDER
            .reference("The order of events.")
            .into()
    })
    .create_note("Default: `none`."),
    RequestField::with_default("status", || {
        named::WEBHOOK_ENDPOINT_STATUS
            .reference("Whether the endpoint receives events.")
            .into()
    })
    .create_note("Default: `enabled`."),
    RequestField::generated("id", || {
        named::WEBHOOK_ENDPOINT_ID
            .reference("The endpoint's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

pub(super) fn event_types(description: &str) -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(named::EVENT_TYPE_PATTERN.reference("A pattern."))
        .description(Some(description))
        .examples([json!(["subscription.*"])])
        .into()
}

request_body!(
    CreateWebhookEndpoint,
    create_schema(FIELDS, COMPUTED),
    "The endpoint to create.",
    {"url": "https://example.com/webhooks", "event_types": ["subscription.*"]}
);

request_body!(
    UpdateWebhookEndpoint,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"order": "subject"}
);

const REPLAY_FIELDS: &[RequestField] = &[
    RequestField::nullable("event_id", || {
        named::EVENT_ID.reference("Send this event only.").into()
    }),
    RequestField::nullable("from", || {
        named::TIMESTAMP
            .reference("Send events that were recorded at or after this time. Required without `event_id`.")
            .into()
    }),
    RequestField::nullable("to", || {
        named::TIMESTAMP
            .reference("Send events that were recorded before this time. Default: now.")
            .into()
    }),
    RequestField::with_default("event_types", || {
        event_types(
            "The types of events to send; empty means those of the endpoint, or the one of the event.",
        )
    }),
    RequestField::with_default("only_failed", || {
        schema::boolean("Only events whose attempts were given up.").into()
    })
    .create_note("Default: false."),
];

request_body!(
    CreateWebhookReplay,
    create_schema(REPLAY_FIELDS, &[]),
    "The events to send again.",
    {"from": "2026-11-15T00:00:00Z"}
);

fn types(raw: &RawValue) -> Result<EventTypes, ValueError> {
    Ok(EventTypes::new(list(text)(raw)?))
}

/// Parses the body of a create request, or returns all field errors.
pub fn parse_create(mut fields: BodyFields) -> Result<WebhookEndpointDetails, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let url = fields.required("url", text);
    let description = fields.optional("description", text);
    let event_types = fields.or_default("event_types", types);
    let order = fields.with_default("order", exact, DeliveryOrder::None);
    let status = fields.with_default("status", exact, EndpointStatus::Enabled);
    fields.finish(|| {
        Some(WebhookEndpointDetails {
            url: url?,
            description: description?,
            event_types: event_types?,
            order: order?,
            status: status?,
        })
    })
}

/// Returns the details with the changes of an update request, or all field errors.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &WebhookEndpoint,
) -> Result<WebhookEndpointDetails, Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<WebhookEndpointId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    let current = current.details.clone();
    let url = fields.or_current("url", text, current.url);
    let description = fields.or_current_nullable("description", text, current.description);
    let event_types = fields.or_current("event_types", types, current.event_types);
    let order = fields.or_current("order", exact, current.order);
    let status = fields.or_current("status", exact, current.status);
    fields.finish(|| {
        Some(WebhookEndpointDetails {
            url: url?,
            description: description?,
            event_types: event_types?,
            order: order?,
            status: status?,
        })
    })
}

/// The events to send again.
#[derive(Debug)]
pub struct ReplayRange {
    /// The only event to send.
    pub event: Option<EventId>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub event_types: EventTypes,
    pub only_failed: bool,
}

/// Parses the body of a replay request, or returns all field errors.
pub fn parse_replay(mut fields: BodyFields) -> Result<ReplayRange, Problem> {
    let event = fields.optional("event_id", text);
    let from = fields.optional("from", timestamp);
    if (event, from) == (Some(None), Some(None)) {
        fields.push_missing("from", "event_id");
    }
    let to = fields.optional("to", timestamp);
    let event_types = fields.or_default("event_types", types);
    let only_failed = fields.or_default("only_failed", boolean);
    fields.finish(|| {
        Some(ReplayRange {
            event: event?,
            from: from?,
            to: to?,
            event_types: event_types?,
            only_failed: only_failed?,
        })
    })
}
