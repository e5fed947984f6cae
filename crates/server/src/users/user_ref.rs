//! References to users in requests.

use perennial_domain::{ExternalId, UserId};

/// A reference to a user in a request.
#[derive(Debug, Clone)]
pub enum UserRef {
    Id(UserId),
    ExternalId(ExternalId),
    /// Both must be of the same user.
    Both(UserId, ExternalId),
}

/// A user that exists.
#[derive(Debug, Clone)]
pub struct KnownUser {
    pub id: UserId,
    pub external_id: Option<ExternalId>,
}

impl UserRef {
    /// Returns the user that was found by this reference, or the field that is wrong and why.
    pub fn resolve(&self, found: Option<KnownUser>) -> Result<KnownUser, (&'static str, String)> {
        match (self, found) {
            (Self::Both(id, external_id), Some(user))
                if user.external_id.as_ref() != Some(external_id) =>
            {
                let message = format!("the user {id} does not have this external_user_id");
                Err(("external_user_id", message))
            }
            (_, Some(user)) => Ok(user),
            (Self::Id(id) | Self::Both(id, _), None) => {
                Err(("user_id", format!("no record has the id {id}")))
            }
            (Self::ExternalId(_), None) => {
                let message = "no user has this external_user_id".to_owned();
                Err(("external_user_id", message))
            }
        }
    }
}
