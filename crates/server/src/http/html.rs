//! Headers of responses that browsers show as documents.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Adds the security headers of a document. `content_sources` are the directives of its content
/// security policy that allow something; all else is denied, as is showing the document in a frame.
/// The middleware adds `nosniff` to every response.
pub fn add_security_headers(headers: &mut HeaderMap, content_sources: &str) {
    let policy = format!(
        "default-src 'none'; {content_sources}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    let fixed = HeaderValue::from_static;
    headers.insert(header::REFERRER_POLICY, fixed("no-referrer"));
    headers.insert(OPENER_POLICY, fixed("same-origin"));
}
