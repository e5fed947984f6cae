//! The request id: in the header X-Request-Id, log lines and events.

use std::{fmt::Write, sync::Arc};

use arrayvec::ArrayString;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;

use crate::{clock::IdGenerator, randomness::Randomness};

pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The value of the header X-Request-Id.
#[derive(Debug, Clone)]
pub struct RequestIdHeader(Arc<str>);

impl RequestIdHeader {
    /// Returns the client's id if it is 1 to 128 characters of `A-Z a-z 0-9 . _ -`, else a new one.
    pub(super) fn from_headers(headers: &HeaderMap, now: Timestamp) -> Self {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let sent = headers
            .get(HEADER)
            .map(HeaderValue::as_bytes)
            .filter(|bytes| (1..=128).contains(&bytes.len()) && bytes.iter().all(is_allowed))
            .and_then(|bytes| std::str::from_utf8(bytes).ok());
        // On the stack, so that only the `Arc` allocates.
        let mut generated = ArrayString::<64>::new();
        if sent.is_none() {
            let id: perennial_domain::RequestId = IdGenerator(Randomness).generate(now);
            // Cannot fail: an id has 36 characters.
            let _ = write!(generated, "{id}");
        }
        Self(sent.unwrap_or(generated.as_str()).into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}
