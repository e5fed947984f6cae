//! The name of a request: in its answer, its log lines and its events.

use std::{fmt::Write, sync::Arc};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;

use super::brief::Brief;
use crate::{clock::Ids, randomness::Randomness};

/// The header in which a caller may give the name, and in which we return it.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The name of a request.
#[derive(Debug, Clone)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The caller's own name for it, if that is fit for logs and headers; else a new one.
    pub(super) fn of(headers: &HeaderMap, now: Timestamp) -> Self {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let given = headers
            .get(HEADER)
            .map(HeaderValue::as_bytes)
            .filter(|bytes| (1..=128).contains(&bytes.len()) && bytes.iter().all(allowed))
            .and_then(|bytes| std::str::from_utf8(bytes).ok());
        let mut made = Brief::new();
        if given.is_none() {
            let id: perennial_domain::RequestId = Ids(Randomness).next(now);
            // It fits.
            let _ = write!(made, "{id}");
        }
        Self(given.unwrap_or(made.as_str()).into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, for whoever keeps it.
    pub(super) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}
