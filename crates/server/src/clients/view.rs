//! The JSON representations of a client and of a new API key.

use jiff::Timestamp;
use perennial_domain::ClientId;
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{
        Ref, RefOr,
        schema::{ArrayBuilder, Schema},
    },
};

use super::{body, table::ClientRow};
use crate::http::{
    response::{display, timestamp, timestamp_or_null},
    schema::named,
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub(super) const COMPUTED: &[&str] = &["live_values", "disabled_at"];

/// A client: an application that calls the API.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Client)]
pub struct ClientView {
    /// Id of the client. It is not the API key.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "cli_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: ClientId,
    #[schema(schema_with = kind)]
    kind: &'static str,
    /// A display name.
    #[schema(example = "Backend")]
    name: String,
    #[schema(schema_with = scopes)]
    scopes: Vec<String>,
    #[schema(schema_with = allow_addresses)]
    allow_addresses: Vec<String>,
    #[schema(schema_with = allowed_origins)]
    allowed_origins: Vec<String>,
    /// The number of valid API keys; 2 during the grace period of a rotation.
    #[schema(example = 1)]
    live_values: i64,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// When the client was disabled; null for an enabled client.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    disabled_at: Option<Timestamp>,
}

fn kind() -> Ref {
    named::CLIENT_KIND.reference("Where the client is used. Cannot change.")
}

fn scopes() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(named::SCOPE.reference("A scope."))
        .description(Some("What the client may do."))
        .into()
}

fn allow_addresses() -> RefOr<Schema> {
    body::networks("The networks that requests must come from; empty for any.")
}

fn allowed_origins() -> RefOr<Schema> {
    body::origins("The web origins that may use a publishable client.")
}

impl From<&ClientRow> for ClientView {
    fn from(client: &ClientRow) -> Self {
        let settings = client.settings.clone();
        Self {
            id: client.id,
            kind: client.kind.as_str(),
            name: settings.name,
            scopes: settings.scopes,
            allow_addresses: settings.allow_addresses,
            allowed_origins: settings.allowed_origins,
            live_values: client.live_values,
            created_at: client.created_at,
            disabled_at: client.disabled_at,
        }
    }
}

/// A client with its API key.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedClient {
    #[serde(flatten)]
    #[schema(inline = false)]
    client: ClientView,
    /// The API key: the value of the header `client-id`. It cannot be read again. Null if the response is replayed.
    #[schema(
        required,
        example = "prn_sk_9UoWkMZVYw3M2g7rIhVHQJjXn0h0cUqYdYl2Vd7m3oA"
    )]
    client_id: Option<String>,
}

/// A rotated API key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RotatedApiKey)]
pub struct RotatedApiKeyView {
    /// Id of the client.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "cli_0192f0c1a2b37c4d8e5f60718293a4b5")]
    pub id: ClientId,
    /// The new API key: the value of the header `client-id`. It cannot be read again.
    #[schema(example = "prn_sk_9UoWkMZVYw3M2g7rIhVHQJjXn0h0cUqYdYl2Vd7m3oA")]
    pub client_id: String,
    /// Until when the previous key works.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-16T09:30:00.000000Z")]
    pub old_value_expires_at: Timestamp,
}
