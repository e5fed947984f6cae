//! What must hold for every token, however it is verified.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Provider, Refusal};

/// By how much clocks may differ, in seconds.
const SKEW: f64 = 60.0;

/// For whom a token is meant: one, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    pub(super) fn all(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Several(several) => several,
        }
    }
}

/// Whether it is meant for one of the provider's audiences.
pub(super) fn audience(
    provider: &Provider,
    mut named: impl Iterator<Item = String>,
) -> Result<(), Refusal> {
    if named.any(|audience| provider.audiences.contains(&audience)) {
        Ok(())
    } else {
        Err(Refusal::token("it is meant for another audience"))
    }
}

/// Whether its end, in seconds since 1970, has not passed.
pub(super) fn not_expired(exp: f64, now: Timestamp) -> Result<(), Refusal> {
    if exp.is_finite() && now.as_duration().as_secs_f64() < exp + SKEW {
        Ok(())
    } else {
        Err(Refusal::token("it has expired"))
    }
}

/// Whether its beginning, in seconds since 1970, has come.
pub(super) fn has_begun(nbf: f64, now: Timestamp) -> Result<(), Refusal> {
    if nbf.is_finite() && nbf <= now.as_duration().as_secs_f64() + SKEW {
        Ok(())
    } else {
        Err(Refusal::token("it is not valid yet"))
    }
}

/// The subject, if it can be one.
pub(super) fn subject(text: String) -> Result<String, Refusal> {
    if (1..=255).contains(&text.len()) && !text.contains(char::is_control) {
        Ok(text)
    } else {
        Err(Refusal::token("its subject is not one"))
    }
}
