//! The JSON representation of a user. Events contain only the user's id, because an email address in the
//! event log could not be erased.

use perennial_domain::User;
use serde::Serialize;
use utoipa::ToSchema;

/// Fields of the response that are ignored in a request.
pub const READ_ONLY: &[&str] = &["id", "created_at"];

/// A user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User, example = json!({
    "id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "email": "ada@example.com",
    "created_at": "2026-11-15T09:30:00Z"
}))]
pub struct UserView {
    /// Id of the user.
    #[schema(example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: String,
    /// Email address as it was entered.
    #[schema(example = "ada@example.com")]
    email: String,
    /// When the user was created.
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
