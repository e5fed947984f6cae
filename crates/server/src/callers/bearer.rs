//! The bearer of an access token: who it is, and whether it still is.

use std::{sync::Arc, time::Instant};

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

/// What stands before a bearer's token, in whatever case.
const SCHEME: &[u8] = b"bearer ";

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

/// A state by which it can be told whose a bearer is.
pub trait KnowsBearers {
    /// What tells it.
    fn bearers(&self) -> &Bearers;
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
            // Boxed, because it is rare and large, and every request would carry the place for it along.
            verified = Box::pin(self.tokens.verify(token, now)).await?;
        }
        let Some(verified) = verified else {
            self.attempts.guessed(source);
            return Err(refuse());
        };
        // Not before: to verify may have taken a while, and the keys must be fresh now.
        let instant = Instant::now();
        let accepted = self.tokens.accepts(&verified, tenant.id, instant, now);
        if !accepted.await? {
            return Err(refuse());
        }
        self.attempts.may_use(verified.session, instant)?;
        let live = self.sessions.live(tenant, &verified, now).await?;
        live.ok_or_else(|| {
            self.attempts.used_after_its_end(verified.session);
            refuse()
        })
    }
}

/// The token in the header, if it stands there once and as a bearer's.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    let (scheme, token) = only.as_bytes().split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
}
