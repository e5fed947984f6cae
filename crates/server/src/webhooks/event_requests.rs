//! The requests that endpoints receive: `webhooks` in the OpenAPI document.

use perennial_domain::EventKind;
use serde_json::{Value, json};
use utoipa::openapi::{
    Components, Content, HttpMethod, OpenApi, PathItem, Ref, RefOr, Required, Response,
    ResponseBuilder,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathsBuilder},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type},
};

use crate::http::openapi::pascal_case;

/// Not the tag of the API's own operations: a generator writes the operations of both to the same file.
const TAG: &str = "Webhook events";
const HEADERS: [&str; 3] = ["WebhookId", "WebhookTimestamp", "WebhookSignature"];
const REQUEST: &str = "WebhookEvent";
const RESPONSES: [(&str, &str); 4] = [
    ("2XX", "WebhookReceived"),
    ("410", "WebhookGone"),
    ("429", "WebhookPaused"),
    ("503", "WebhookPaused"),
];

/// Adds a request for each type of event that clients can receive.
pub fn add_webhooks(document: &mut OpenApi) {
    add_components(document.components.get_or_insert_default());
    let public = EventKind::ALL.into_iter().filter(|kind| kind.is_public());
    let webhooks = public.fold(PathsBuilder::new(), |paths, kind| {
        let request = PathItem::new(HttpMethod::Post, operation(kind));
        paths.path(kind.as_str(), request)
    });
    document.webhooks = Some(webhooks.build());
}

/// The signature replaces the credentials of the API's own requests.
fn operation(kind: EventKind) -> Operation {
    let operation = OperationBuilder::new()
        .tag(TAG)
        .operation_id(Some(format!("receive{}", pascal_case(kind.as_str()))))
        .description(Some(kind.documentation()));
    let operation = RESPONSES
        .into_iter()
        .fold(operation, |operation, (status, name)| {
            operation.response(status, Ref::from_response_name(name))
        });
    let mut operation = operation.build();
    let reference = |name| RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")));
    operation.parameters = Some(HEADERS.map(reference).to_vec());
    let body = format!("#/components/requestBodies/{REQUEST}");
    operation.request_body = Some(RefOr::Ref(Ref::new(body)));
    operation.security = Some(Vec::new());
    operation
}

fn add_components(components: &mut Components) {
    let body = message_body(event_example(components));
    let schema = message_schema();
    components.schemas.insert(REQUEST.to_owned(), schema.into());
    components
        .request_bodies
        .insert(REQUEST.to_owned(), body.into());
    for (name, parameter) in HEADERS.into_iter().zip(header_parameters()) {
        components
            .parameters
            .insert(name.to_owned(), parameter.into());
    }
    let received = "The endpoint has received the event. A redirect, another status or no response within 15 seconds \
        is a failure, and the event is sent again.";
    let gone = "The endpoint does not want events any more. It is disabled.";
    let paused =
        "The endpoint is overloaded. Requests pause for the time in `Retry-After`, up to an hour.";
    let mut add = |name: &str, response: Response| {
        components
            .responses
            .insert(name.to_owned(), response.into())
    };
    add("WebhookReceived", response(received).build());
    add("WebhookGone", response(gone).build());
    let mut paused = response(paused).build();
    let retry_after = Ref::new("#/components/headers/Retry-After");
    paused
        .headers
        .insert("Retry-After".to_owned(), RefOr::Ref(retry_after));
    add("WebhookPaused", paused);
}

fn response(description: &str) -> ResponseBuilder {
    ResponseBuilder::new().description(description)
}

/// Returns the example of an event.
fn event_example(components: &Components) -> Option<Value> {
    match components.schemas.get("Event")? {
        RefOr::T(Schema::Object(event)) => event.example.clone(),
        _ => None,
    }
}

/// Describes the body that [`WebhookMessage`](super::delivery::message::WebhookMessage) sends.
fn message_schema() -> Object {
    let reference = |name| RefOr::<Schema>::Ref(Ref::from_schema_name(name));
    let kind = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The type of the event."))
        .examples([json!("subscription.updated")]);
    let timestamp = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("When the event occurred."))
        .examples([json!("2026-11-15T09:30:00.000000Z")]);
    ObjectBuilder::new()
        .description(Some("The body of a request to a webhook endpoint."))
        .property("type", kind)
        .property("timestamp", timestamp)
        .property("data", reference("Event"))
        .required("type")
        .required("timestamp")
        .required("data")
        .build()
}

fn message_body(event: Option<Value>) -> RequestBody {
    let description =
        "The event. [Event types](/docs/reference/events) has an example of each type.";
    let mut content = Content::new(Some(Ref::from_schema_name(REQUEST)));
    content.example = event.map(|event| {
        let (kind, at) = (event.get("type"), event.get("occurred_at"));
        json!({"type": kind, "timestamp": at, "data": event})
    });
    RequestBodyBuilder::new()
        .description(Some(description))
        .content("application/json", content)
        .required(Some(Required::True))
        .build()
}

fn header_parameters() -> [Parameter; 3] {
    [
        header(
            "webhook-id",
            Type::String,
            "The event's id, the same in each attempt.",
            json!("evt_0192f0c1a2b37c4d8e5f60718293a4b5"),
        ),
        header(
            "webhook-timestamp",
            Type::Integer,
            "When the attempt was made, in Unix seconds.",
            json!(1_763_199_000),
        ),
        header(
            "webhook-signature",
            Type::String,
            "Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the \
             base64 text of an HMAC-SHA256.",
            json!("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ),
    ]
}

fn header(name: &str, kind: Type, description: &str, example: Value) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(kind)))
        .example(Some(example))
        .build()
}
