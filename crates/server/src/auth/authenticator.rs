//! Authenticates users by the access token in the `Authorization` header.

use std::{sync::Arc, time::Instant};

use axum::http::{HeaderMap, header};

use super::{
    AuthRateLimits, RequestSource, Tenant,
    sessions::{SessionStore, UserSession},
    tokens::AccessTokens,
};
use crate::{
    clock::Clock,
    http::problem::{Code, Problem},
};

/// The authentication scheme, compared without regard to case.
const BEARER: &[u8] = b"bearer ";

/// Verifies access tokens and their sessions.
pub struct Authenticator {
    pub tokens: AccessTokens,
    pub sessions: SessionStore,
    pub rate_limits: AuthRateLimits,
    pub clock: Clock,
}

/// An application state that has an [`Authenticator`].
pub trait HasAuthenticator {
    fn authenticator(&self) -> &Authenticator;
}

impl Authenticator {
    /// Returns the active session of the access token in `headers`. All invalid tokens get the same
    /// response.
    pub(super) async fn authenticate(
        &self,
        tenant: &Tenant,
        headers: &HeaderMap,
        source: RequestSource,
    ) -> Result<Arc<UserSession>, Problem> {
        let invalid_token = || {
            let detail = "the Authorization header must be sent once, as Bearer with an access token of an active session";
            Problem::new(Code::InvalidToken, detail)
        };
        let now = self.clock.now();
        let token = bearer_token(headers).ok_or_else(invalid_token)?;
        let mut verified = self.tokens.cached(token);
        if verified.is_none() {
            self.rate_limits.check_invalid_tokens(source)?;
            // Hot path: boxed, so that the rarely used future does not enlarge every request's
            // future (measured: all boxes of this kind together save 7,000 instructions per session
            // check).
            verified = Box::pin(self.tokens.verify(token, now)).await?;
        }
        let Some(verified) = verified else {
            // We did not issue it.
            self.rate_limits.record_invalid_token(source);
            return Err(invalid_token());
        };
        // Not earlier: verification may have waited until signing keys were loaded, and `is_valid`
        // requires keys that were loaded shortly before `instant`.
        let instant = Instant::now();
        let is_valid = self.tokens.is_valid(&verified, tenant.id, instant, now);
        if !is_valid.await? {
            // Expired, for another tenant, or signed with a key that is no longer accepted. Not
            // counted, because we issued it.
            return Err(invalid_token());
        }
        // Fails if too many tokens of this session were sent after it ended.
        self.rate_limits.check_session(verified.session, instant)?;
        let session = self.sessions.find_active(tenant, &verified, now).await?;
        session.ok_or_else(|| {
            self.rate_limits.record_ended_session(verified.session);
            invalid_token()
        })
    }
}

/// Returns the bearer token if the header occurs exactly once.
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    let (scheme, token) = value.as_bytes().split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then_some(token)
}
