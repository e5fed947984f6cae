//! Entity tags: what a record looks like, in a few characters.
//!
//! A tag is a hash of the very bytes that GET answers, so it changes exactly when what is shown does,
//! whatever made it change. `If-Match` is held against the record as it stands under its lock.
//!
//! Every instance must come to the same tag, so the hash has no secret key; somebody could make two versions of a record with
//! one tag, and would have outwitted nobody but themselves. SHA-256, which would rule that out too, takes half of the
//! time of a long answer on a processor without instructions for it.

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Serialize;
use siphasher::sip128::SipHasher13;

use super::problem::{Code, Problem};

/// The tag of a record's bytes, in quotation marks.
pub(super) fn of_bytes(bytes: &[u8]) -> String {
    let hash = SipHasher13::new().hash(bytes).as_bytes();
    format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(hash))
}

/// The header `If-Match`: the change is wanted only if the record is still the one that was seen.
#[derive(Debug, Clone)]
pub struct IfMatch(Option<Vec<HeaderValue>>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let values: Vec<_> = parts
            .headers
            .get_all(header::IF_MATCH)
            .iter()
            .cloned()
            .collect();
        Ok(Self((!values.is_empty()).then_some(values)))
    }
}

impl IfMatch {
    /// Refuses unless the record as it stands is one of those that the caller named.
    pub fn check(&self, record: &impl Serialize) -> Result<(), Problem> {
        let Some(values) = &self.0 else { return Ok(()) };
        let bytes = serde_json::to_vec(record).map_err(|error| Problem::internal(&error))?;
        let current = of_bytes(&bytes);
        let mut named = values
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim);
        if named.any(|tag| tag == "*" || tag == current) {
            return Ok(());
        }
        let detail = "the record has changed since the ETag in If-Match was seen; read it again";
        Err(Problem::new(Code::PreconditionFailed, detail))
    }
}
