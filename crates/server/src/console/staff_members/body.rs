//! Request fields of staff members: their schema and parsing.

use perennial_domain::{Email, StaffId, StaffRole};

use super::view::COMPUTED;
use crate::{
    auth::staff::StaffMember,
    http::{
        json::{BodyFields, exact, text, timestamp},
        problem::Problem,
        request_schema::{RequestField, request_body},
        schema::named,
    },
};

const FIELDS: &[RequestField] = &[
    RequestField::required("role", || {
        named::STAFF_ROLE
            .reference("What the member may see and do.")
            .into()
    }),
    RequestField::generated_nullable("email", || {
        named::EMAIL
            .reference("The email address. Cannot change.")
            .into()
    }),
    RequestField::generated("id", || {
        named::STAFF_ID
            .reference("The member's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("When the member was invited. Cannot change.")
            .into()
    }),
];

const INVITE_FIELDS: &[RequestField] = &[
    RequestField::required("email", || {
        named::EMAIL
            .reference("The email address of the person.")
            .into()
    }),
    RequestField::required("role", || {
        named::STAFF_ROLE
            .reference("What the member may see and do.")
            .into()
    }),
];

request_body!(
    InviteStaffMember,
    create_schema(INVITE_FIELDS, &[]),
    "The person to invite.",
    {"email": "ada@example.com", "role": "support"}
);

request_body!(
    UpdateStaffMember,
    update_schema(FIELDS, COMPUTED),
    "The role to set. A record that GET returned can be sent back.",
    {"role": "viewer"}
);

/// Parses the body of an invitation, or returns all field errors.
pub(super) fn parse_invite(mut fields: BodyFields) -> Result<(Email, StaffRole), Problem> {
    let email = fields.required("email", text);
    let role = fields.required("role", exact);
    fields.finish(|| Some((email?, role?)))
}

/// Returns the role of an update request, or all field errors.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &StaffMember,
) -> Result<StaffRole, Problem> {
    fields.read_only(COMPUTED);
    let email = current
        .email
        .as_deref()
        .and_then(|email| email.parse().ok());
    fields.immutable_nullable("email", |raw| text::<Email>(raw).map(Some), &email);
    fields.immutable::<StaffId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    let role = fields.or_current("role", exact, current.role);
    fields.finish(|| role)
}
