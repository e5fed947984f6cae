//! Request fields of clients: their schema and parsing.

use ipnet::IpNet;
use perennial_domain::{ClientId, ClientKind, GracePeriod, Rule, SingleLine, ValidationError};
use serde_json::{json, value::RawValue};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

use super::{create::NewClient, table::ClientRow, update::ClientChanges, view::COMPUTED};
use crate::{
    config::parse_network,
    http::{
        json::{BodyFields, ValueError, exact, integer, list, text, timestamp},
        problem::Problem,
        request_schema::{RequestField, request_body},
        schema::{
            self,
            named::{self, NamedSchema},
        },
    },
};

/// The most networks, and the most origins, of a client.
const MAX_ITEMS: usize = 100;
/// The longest network or origin, in characters, as their named schemas say.
const MAX_ITEM_LENGTH: usize = 300;

const FIELDS: &[RequestField] = &[
    RequestField::required("name", || {
        schema::single_line("A display name: a single line.", 200, "Backend").into()
    }),
    RequestField::with_default("kind", || {
        named::CLIENT_KIND
            .reference("Where the client is used. Cannot change.")
            .into()
    })
    .create_note("Default: `secret`."),
    RequestField::with_default("scopes", || {
        let description = "What the client may do. The calling client must have each of these scopes itself.";
        ArrayBuilder::new()
            .items(named::SCOPE.reference("A scope."))
            .description(Some(description))
            .examples([json!(["subscriptions:read"])])
            .into()
    })
    .create_note(
        "Default: all scopes of its kind that the calling client has, except those of clients, identity providers, staff, \
         health and the sandbox.",
    ),
    RequestField::with_default("allow_addresses", || {
        networks(
            "The networks that requests must come from; empty for any. Behind a proxy, the address is the proxy's unless \
             the operator has set PERENNIAL_TRUSTED_PROXIES.",
        )
    })
    .create_note("Default: any."),
    RequestField::with_default("allowed_origins", || {
        origins("The web origins that may use the client. Only for publishable clients.")
    })
    .create_note("Default: none."),
    RequestField::generated("id", || {
        named::CLIENT_ID
            .reference("The client's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

pub(super) fn networks(description: &str) -> RefOr<Schema> {
    items(&named::IP_NETWORK, "10.0.0.0/8", description)
}

pub(super) fn origins(description: &str) -> RefOr<Schema> {
    items(&named::ORIGIN, "https://app.example.com", description)
}

fn items(item: &NamedSchema, example: &str, description: &str) -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(item.reference(""))
        .max_items(Some(MAX_ITEMS))
        .description(Some(description))
        .examples([json!([example])])
        .into()
}

request_body!(
    CreateClient,
    create_schema(FIELDS, COMPUTED),
    "The client to create.",
    {"name": "Backend", "scopes": ["subscriptions:read", "subscriptions:write"]}
);

request_body!(
    UpdateClient,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. A list replaces the current one. A record that GET returned can be sent back.",
    {"name": "Backend", "allow_addresses": ["10.0.0.0/8"]}
);

const ROTATION_FIELDS: &[RequestField] =
    &[RequestField::with_default("grace_period_seconds", || {
        let description = "How long the previous key works, in seconds. 0 revokes it at once.";
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(GracePeriod::MAX_SECONDS))
            .description(Some(description))
            .examples([json!(3_600)])
            .into()
    })
    .create_note("Default: 86400, a day.")];

request_body!(
    RotateApiKey,
    create_schema(ROTATION_FIELDS, &[]),
    "How long the previous key works. The object can be empty.",
    {"grace_period_seconds": 3_600}
);

/// Parses an origin as browsers send it: no path, no trailing slash, no default port.
pub fn parse_origin(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    let origin = url.origin();
    if !["http", "https"].contains(&url.scheme()) || !origin.is_tuple() {
        return Err("expected scheme://host[:port]".to_owned());
    }
    let canonical = origin.ascii_serialization();
    if text.trim_end_matches('/') != canonical {
        return Err(format!("an origin has no path; did you mean {canonical}?"));
    }
    Ok(canonical)
}

/// Parses a list of texts.
fn parsed_list<T>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&RawValue) -> Result<Vec<T>, ValueError> {
    move |raw| {
        let items: Vec<SingleLine<MAX_ITEM_LENGTH>> = list(text)(raw)?;
        if items.len() > MAX_ITEMS {
            let message = format!("must have at most {MAX_ITEMS} items, not {}", items.len());
            return Err(ValidationError::new(Rule::TooMany, message).into());
        }
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match parse(item.as_str()) {
                Ok(value) => values.push(value),
                Err(message) => {
                    let error = ValidationError::new(Rule::InvalidFormat, message);
                    errors.push((index.to_string(), error.into()));
                }
            }
        }
        if errors.is_empty() {
            Ok(values)
        } else {
            Err(ValueError::Items(errors))
        }
    }
}

fn parse_networks(raw: &RawValue) -> Result<Vec<IpNet>, ValueError> {
    parsed_list(parse_network)(raw)
}

fn parse_origins(raw: &RawValue) -> Result<Vec<String>, ValueError> {
    parsed_list(parse_origin)(raw)
}

/// Parses the body of a create request, or returns all field errors.
pub(super) fn parse_create(mut fields: BodyFields) -> Result<NewClient, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let name = fields.required("name", text);
    let kind = fields.with_default("kind", exact, ClientKind::Secret);
    let scopes = fields.optional("scopes", list(exact));
    let allow_addresses = fields.or_default("allow_addresses", parse_networks);
    let allowed_origins = fields.or_default("allowed_origins", parse_origins);
    fields.finish(|| {
        Some(NewClient {
            kind: kind?,
            name: name?,
            scopes: scopes?,
            allow_addresses: allow_addresses?,
            allowed_origins: allowed_origins?,
        })
    })
}

/// Returns the changes of an update request, or all field errors.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &ClientRow,
) -> Result<ClientChanges, Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<ClientId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    fields.immutable("kind", exact, &current.kind);
    let name = fields.if_present("name", text);
    let scopes = fields.if_present("scopes", list(exact));
    let allow_addresses = fields.if_present("allow_addresses", parse_networks);
    let allowed_origins = fields.if_present("allowed_origins", parse_origins);
    fields.finish(|| {
        Some(ClientChanges {
            name: name?,
            scopes: scopes?,
            allow_addresses: allow_addresses?,
            allowed_origins: allowed_origins?,
        })
    })
}

/// Parses the body of a rotation.
pub(super) fn parse_rotation(mut fields: BodyFields) -> Result<GracePeriod, Problem> {
    let period = fields.with_default("grace_period_seconds", integer, GracePeriod::DEFAULT);
    fields.finish(|| period)
}
