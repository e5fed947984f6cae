//! End users.

use jiff::Timestamp;

use crate::{
    Email, ExternalId, FieldError, Metadata, Rule, UserId, ValidationError,
    card_number::reject_card_number,
};

/// An end user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// The user's identifier in the client's system. Unique among the users of a tenant.
    pub external_id: Option<ExternalId>,
    /// Unique among the users of a tenant. A user without one has an external id.
    pub email: Option<Email>,
    /// Pairs that the client attached.
    pub metadata: Metadata,
    /// When the user was created.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The part of a user that a session carries. Metadata may be large, so it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUser {
    /// The user's id.
    pub id: UserId,
    /// The user's identifier in the client's system.
    pub external_id: Option<ExternalId>,
    /// The email address.
    pub email: Option<Email>,
    /// When the user was created.
    pub created_at: Timestamp,
}

impl From<User> for SessionUser {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            external_id: user.external_id,
            email: user.email,
            created_at: user.created_at,
        }
    }
}

/// The fields of a user that clients set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserChanges {
    /// The identifier in the client's system.
    pub external_id: Option<ExternalId>,
    /// The email address.
    pub email: Option<Email>,
    /// Pairs that the client attached.
    pub metadata: Metadata,
}

impl User {
    /// Creates a user at `now`, or returns all validation errors.
    pub fn create(
        fields: UserChanges,
        id: UserId,
        now: Timestamp,
    ) -> Result<Self, Vec<FieldError>> {
        fields.validate(None)?;
        let UserChanges {
            external_id,
            email,
            metadata,
        } = fields;
        Ok(Self {
            id,
            external_id,
            email,
            metadata,
            created_at: now,
            updated_at: now,
        })
    }

    /// Creates a user with this email address at `now`.
    pub fn with_email(email: Email, id: UserId, now: Timestamp) -> Self {
        Self {
            id,
            external_id: None,
            email: Some(email),
            metadata: Metadata::default(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the user with these fields, updated at `now`, or `None` if nothing changes.
    pub fn update(
        &self,
        fields: UserChanges,
        now: Timestamp,
    ) -> Result<Option<Self>, Vec<FieldError>> {
        fields.validate(self.external_id.as_ref())?;
        let next = Self {
            external_id: fields.external_id,
            email: fields.email,
            metadata: fields.metadata,
            ..self.clone()
        };
        Ok((next != *self).then_some(Self {
            updated_at: now,
            ..next
        }))
    }
}

impl UserChanges {
    /// Checks that the user can be found by something, and that a new external id is no card number.
    fn validate(&self, current: Option<&ExternalId>) -> Result<(), Vec<FieldError>> {
        let new = self.external_id.as_ref().filter(|id| Some(*id) != current);
        let mut errors: Vec<FieldError> = reject_card_number("external_user_id", new)
            .into_iter()
            .collect();
        if self.external_id.is_none() && self.email.is_none() {
            let message = "is required, unless the user has an external_user_id";
            errors.push(("email", ValidationError::new(Rule::Required, message)));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}
