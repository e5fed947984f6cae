//! Entity tags, `If-Match` and `If-None-Match`.
//!
//! A tag is a hash of the JSON that GET returns, so it changes exactly when the visible record does.
//! `If-Match` is checked after the record has been locked. `If-None-Match` saves the body of a GET response: the
//! middleware responds 304 if the client already has it.
//!
//! The hash is SipHash without a secret key, because all instances must compute the same tag. A
//! client could construct two versions of a record with the same tag, which harms only that client.
//! Hot path: SHA-256 took half the time of a long response on a processor without SHA instructions
//! (measured: 700,000 of 1,440,000 instructions saved for entitlements of 50 subscriptions).

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, header, request::Parts},
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

/// The tags of `If-None-Match` headers. `None` if there is none.
pub fn if_none_match(headers: &HeaderMap) -> Option<Vec<HeaderValue>> {
    let values = headers.get_all(header::IF_NONE_MATCH);
    let values: Vec<_> = values.iter().cloned().collect();
    (!values.is_empty()).then_some(values)
}

/// Returns whether one of the tags is `*` or the current tag. A weak tag equals the strong one.
pub fn matches_weakly(tags: &[HeaderValue], current: &str) -> bool {
    let plain = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    split(tags).any(|tag| tag == "*" || plain(tag) == plain(current))
}

/// Returns the tags of header values, which are separated by commas.
fn split(values: &[HeaderValue]) -> impl Iterator<Item = &str> {
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
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
        if split(values).any(|tag| tag == "*" || tag == current) {
            return Ok(());
        }
        let detail = "the record has changed since the ETag in If-Match was read; read it again";
        Err(Problem::new(Code::PreconditionFailed, detail))
    }
}
