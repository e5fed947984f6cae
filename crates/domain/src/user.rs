//! End users.

use jiff::Timestamp;

use crate::{Email, UserId};

/// An end user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// Unique among the users of a tenant.
    pub email: Email,
    /// When the user was created.
    pub created_at: Timestamp,
}
