//! Request fields of `POST /users` and `PUT /users/{id}`: their schema and parsing.

use perennial_domain::{User, UserChanges, UserId};

use super::view::COMPUTED;
use crate::http::{
    json::{BodyFields, text, timestamp},
    metadata_field,
    problem::Problem,
    request_schema::{RequestField, request_body},
    schema::named,
};

const FIELDS: &[RequestField] = &[
    RequestField::nullable("email", || {
        named::EMAIL
            .reference("The user's email address; case-insensitive.")
            .into()
    }),
    RequestField::nullable("external_user_id", || {
        let description = "The user's id in your system. Must be unique within the tenant. Cannot be a card number. \
                           Events keep it, so it should not be an email address.";
        named::EXTERNAL_ID.reference(description).into()
    }),
    metadata_field::FIELD,
    RequestField::generated("id", || {
        named::USER_ID
            .reference("The user's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

request_body!(
    CreateUser,
    create_schema(FIELDS, COMPUTED),
    "The user to create: `email`, `external_user_id` or both.",
    {"email": "ada@example.com", "external_user_id": "customer-1042"}
);

request_body!(
    UpdateUser,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"external_user_id": "customer-1042"}
);

/// Parses the body of a create request, or returns all field errors.
pub(super) fn parse_create(mut fields: BodyFields) -> Result<UserChanges, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let email = fields.optional("email", text);
    let external_id = fields.optional("external_user_id", text);
    let metadata = metadata_field::from_create(&mut fields);
    fields.finish(|| {
        Some(UserChanges {
            external_id: external_id?,
            email: email?,
            metadata: metadata?,
        })
    })
}

/// Returns the fields after an update request, or all field errors.
pub(super) fn parse_update(mut fields: BodyFields, current: &User) -> Result<UserChanges, Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<UserId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    let external_id =
        fields.or_current_nullable("external_user_id", text, current.external_id.clone());
    let email = fields.or_current_nullable("email", text, current.email.clone());
    let metadata = metadata_field::from_update(&mut fields, &current.metadata);
    fields.finish(|| {
        Some(UserChanges {
            external_id: external_id?,
            email: email?,
            metadata: metadata?,
        })
    })
}
