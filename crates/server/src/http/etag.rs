//! Entity tags and `If-Match`.
//!
//! A tag is a hash of the JSON that GET returns, so it changes exactly when the visible record does.
//! `If-Match` is checked after the record has been locked.
//!
//! The hash is SipHash without a secret key, because all instances must compute the same tag. A
//! client could construct two versions of a record with the same tag, which harms only that client.
//! Hot path: SHA-256 took half the time of a long response on a processor without SHA instructions
//! (measured: 700,000 of 1,440,000 instructions saved for entitlements of 50 subscriptions).

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Serialize;
use siphasher::sip128::SipHasher13;

use super::problem::{Code, Problem};

/// Returns the quoted entity tag of a record's JSON, or of other content.
pub fn from_bytes(bytes: &[u8]) -> String {
    let hash = SipHasher13::new().hash(bytes).as_bytes();
    format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(hash))
}

/// The header `If-Match`, if sent.
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
    /// The absent header, which every record matches.
    pub const ABSENT: Self = Self(None);

    /// Fails with `precondition_failed` unless the header is absent, `*`, or has the record's tag.
    pub fn check(&self, record: &impl Serialize) -> Result<(), Problem> {
        let Some(values) = &self.0 else { return Ok(()) };
        let bytes = serde_json::to_vec(record).map_err(|error| Problem::internal(&error))?;
        let current = from_bytes(&bytes);
        let mut tags = values
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim);
        if tags.any(|tag| tag == "*" || tag == current) {
            return Ok(());
        }
        let detail = "the record has changed since the ETag in If-Match was read; read it again";
        Err(Problem::new(Code::PreconditionFailed, detail))
    }
}
