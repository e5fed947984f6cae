//! The JSON representations of a user. Events contain only ids and the names of changed fields, because personal
//! data in the event log could not be erased.

use jiff::Timestamp;
use perennial_domain::{Email, ExternalId, Metadata, SessionUser, User, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{
    csv_list::CsvRecord,
    metadata_field,
    response::{display, timestamp},
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub const COMPUTED: &[&str] = &["updated_at"];

/// A user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User, example = json!({
    "id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "external_user_id": "customer-1042",
    "email": "ada@example.com",
    "metadata": {"order": "A-1042"},
    "created_at": "2026-11-15T09:30:00.000000Z",
    "updated_at": "2026-11-15T09:30:00.000000Z"
}))]
pub struct UserView {
    /// Id of the user.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: UserId,
    /// The user's id in your system. Can be sent wherever a request takes `user_id`.
    #[schema(required, example = "customer-1042")]
    external_user_id: Option<String>,
    /// Email address as it was entered; null for a user without one.
    #[schema(required, example = "ada@example.com")]
    email: Option<String>,
    #[serde(serialize_with = "metadata_field::serialize")]
    #[schema(schema_with = metadata_field::response_schema)]
    metadata: Metadata,
    /// When the user was created.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    updated_at: Timestamp,
}

impl CsvRecord for UserView {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "external_user_id",
        "email",
        "metadata",
        "created_at",
        "updated_at",
    ];
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            id: user.id,
            external_user_id: user.external_id.as_ref().map(ExternalId::to_string),
            email: text(user.email.as_ref()),
            metadata: user.metadata.clone(),
            created_at: user.created_at,
            updated_at: user.updated_at,
        }
    }
}

/// The signed-in user of a session. `GET /users/{id}` has the metadata too.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionUser)]
pub struct SessionUserView {
    /// Id of the user.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: UserId,
    /// The user's id in your system.
    #[schema(required, example = "customer-1042")]
    external_user_id: Option<String>,
    /// Email address as it was entered; null for a user without one.
    #[schema(required, example = "ada@example.com")]
    email: Option<String>,
    /// When the user was created.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
}

impl From<&SessionUser> for SessionUserView {
    fn from(user: &SessionUser) -> Self {
        Self {
            id: user.id,
            external_user_id: user.external_id.as_ref().map(ExternalId::to_string),
            email: text(user.email.as_ref()),
            created_at: user.created_at,
        }
    }
}

fn text(email: Option<&Email>) -> Option<String> {
    email.map(|email| email.as_str().to_owned())
}

/// The data of a user's event: ids, and for an update the names of the changed fields.
#[derive(Debug, Serialize)]
pub struct UserEvent {
    #[serde(serialize_with = "display")]
    id: UserId,
    external_user_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<&'static str>,
}

impl UserEvent {
    /// Describes a user that was created.
    pub fn created(user: &User) -> Self {
        Self {
            id: user.id,
            external_user_id: user.external_id.as_ref().map(ExternalId::to_string),
            changed: Vec::new(),
        }
    }

    /// Describes an update of a user.
    pub fn updated(before: &User, after: &User) -> Self {
        let differs = [
            ("external_user_id", before.external_id != after.external_id),
            ("email", before.email != after.email),
            ("metadata", before.metadata != after.metadata),
        ];
        let changed = differs.into_iter().filter(|(_, differs)| *differs);
        Self {
            changed: changed.map(|(field, _)| field).collect(),
            ..Self::created(after)
        }
    }
}
