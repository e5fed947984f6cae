//! The bearer of an access token: who it is, and whether it still is.

use std::sync::Arc;

use axum::http::{HeaderMap, header};

use super::{
    Attempts, Source, Tenant,
    sessions::{Sessions, SignedIn},
    tokens::Tokens,
};
use crate::{
    clock::Clock,
    http::problem::{Code, Problem},
};

/// Knows our tokens and the sign-ins behind them.
pub struct Bearers {
    /// Our tokens.
    pub tokens: Tokens,
    /// Which sign-ins live.
    pub sessions: Sessions,
    /// How much somebody may try.
    pub attempts: Attempts,
    /// What time it is.
    pub clock: Clock,
}

impl Bearers {
    /// Whose access token stands in the header, if its session lives. One body for all that is wrong with it.
    pub(super) async fn signed_in(
        &self,
        tenant: &Tenant,
        headers: &HeaderMap,
        source: Source,
    ) -> Result<Arc<SignedIn>, Problem> {
        let refuse = || {
            let detail = "send the header Authorization: Bearer, once, with an access token whose session lives";
            Problem::new(Code::InvalidToken, detail)
        };
        let now = self.clock.now();
        let token = bearer(headers).ok_or_else(refuse)?;
        let mut verified = self.tokens.recall(token);
        if verified.is_none() {
            self.attempts.may_send(source)?;
            verified = self.tokens.verify(token, now).await?;
        }
        let Some(verified) = verified else {
            self.attempts.guessed(source);
            return Err(refuse());
        };
        if !self.tokens.accepts(&verified, tenant.id, now).await? {
            return Err(refuse());
        }
        self.attempts.may_use(verified.session)?;
        let live = self.sessions.live(tenant, &verified, now).await?;
        live.ok_or_else(|| {
            self.attempts.used_after_its_end(verified.session);
            refuse()
        })
    }
}

/// The token in the header, if it stands there once and as a bearer's.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
