//! Checks of claims, in a JWT or in the identity provider's response about an opaque token.

use jiff::Timestamp;
use serde::Deserialize;

use super::{IdentityProvider, TokenError};

/// Tolerated clock difference, in seconds.
const CLOCK_SKEW: f64 = 60.0;

/// The claim `aud`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(audience) => vec![audience],
            Self::Many(audiences) => audiences,
        }
    }
}

/// Checks that one of the audiences is configured for the provider.
pub(super) fn check_audience(
    provider: &IdentityProvider,
    mut audiences: impl Iterator<Item = String>,
) -> Result<(), TokenError> {
    if audiences.any(|audience| provider.audiences.contains(&audience)) {
        Ok(())
    } else {
        Err(TokenError::invalid("wrong audience"))
    }
}

/// Checks the claim `exp`, in seconds since 1970.
pub(super) fn check_expiry(exp: f64, now: Timestamp) -> Result<(), TokenError> {
    if exp.is_finite() && now.as_duration().as_secs_f64() < exp + CLOCK_SKEW {
        Ok(())
    } else {
        Err(TokenError::invalid("expired"))
    }
}

/// Checks the claim `nbf`, in seconds since 1970.
pub(super) fn check_not_before(nbf: f64, now: Timestamp) -> Result<(), TokenError> {
    if nbf.is_finite() && nbf <= now.as_duration().as_secs_f64() + CLOCK_SKEW {
        Ok(())
    } else {
        Err(TokenError::invalid("not valid yet"))
    }
}

/// Returns the claim `sub` if it has 1 to 255 bytes and no control characters.
pub(super) fn check_subject(sub: String) -> Result<String, TokenError> {
    if (1..=255).contains(&sub.len()) && !sub.contains(char::is_control) {
        Ok(sub)
    } else {
        Err(TokenError::invalid("invalid subject"))
    }
}
