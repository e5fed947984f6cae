//! Checks of claims, in a JWT or in the identity provider's response about an opaque token.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

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

/// Checks that one of the audiences is configured for the provider. `clients` are the claims that name
/// the client that requested the token; they count if the provider was added with `--accept-azp`.
pub(super) fn check_audience(
    provider: &IdentityProvider,
    audiences: &[String],
    clients: &[Option<String>],
) -> Result<(), TokenError> {
    let is_configured = |audience: &String| provider.audiences.contains(audience);
    if audiences.iter().any(is_configured) {
        return Ok(());
    }
    match clients.iter().flatten().any(is_configured) {
        true if provider.accept.azp => Ok(()),
        true => Err(TokenError::invalid(
            "wrong audience: only azp or client_id names the configured audience; put it into aud, or add the \
             provider with --accept-azp",
        )),
        false => Err(TokenError::invalid("wrong audience")),
    }
}

/// Returns when the user authenticated: `auth_time`, or else `iat`, which cannot be earlier.
pub(super) fn authentication_time(
    auth_time: Option<&Value>,
    iat: Option<&Value>,
) -> Option<Timestamp> {
    let to_timestamp = |claim: &Value| {
        let seconds = SignedDuration::try_from_secs_f64(seconds(claim)?).ok()?;
        Timestamp::from_duration(seconds).ok()
    };
    let auth_time = auth_time.and_then(to_timestamp);
    auth_time.or_else(|| iat.and_then(to_timestamp))
}

/// Returns a number, or as some providers send it, a string with a number.
pub(super) fn seconds(claim: &Value) -> Option<f64> {
    claim.as_f64().or_else(|| claim.as_str()?.parse().ok())
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
