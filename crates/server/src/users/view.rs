//! A user as we return it. Events carry its id alone: an e-mail address in them could never be erased.

use perennial_domain::User;
use serde::Serialize;
use serde_json::json;
use utoipa::{
    ToSchema,
    openapi::{
        SchemaFormat,
        schema::{Object, ObjectBuilder, Type},
    },
};

/// What a user's answer carries beyond what can be said of it: a caller may send it back.
pub const READ_ONLY: &[&str] = &["id", "created_at"];

/// A user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User, example = json!({
    "id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "email": "ada@example.com",
    "created_at": "2026-11-15T09:30:00Z"
}))]
pub struct UserView {
    /// The user's identifier.
    #[schema(example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: String,
    /// How to reach the user, as it was written.
    #[schema(example = "ada@example.com")]
    email: String,
    /// Since when the user is known.
    #[schema(format = DateTime, example = "2026-11-15T09:30:00Z")]
    created_at: String,
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email.as_str().to_owned(),
            created_at: user.created_at.to_string(),
        }
    }
}

/// How an e-mail address looks in the document where one is sent: a little narrower than what is taken.
pub fn email_in() -> Object {
    let (atom, label) = ("[A-Za-z0-9_+-]{1,20}", "[A-Za-z0-9]{1,20}");
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::Custom("email".to_owned())))
        .max_length(Some(254))
        .pattern(Some(format!(
            r"^{atom}(\.{atom}){{0,2}}@{label}(\.{label}){{1,2}}$"
        )))
        .description(Some(
            "An e-mail address. Two that differ by upper and lower case are the same.",
        ))
        .examples([json!("ada@example.com")])
        .build()
}
