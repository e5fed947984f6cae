//! Revokes sessions: updates the rows, notifies all instances and records events, in one transaction.

use jiff::Timestamp;
use perennial_domain::{EventKind, Id, SessionId, TenantId};
use serde_json::json;

use super::table;
use crate::{
    clock::IdGenerator,
    db::{Error, Transaction},
    events::{self, Actor},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokeReason {
    Logout,
    RevokeAll,
    RevokeAllExceptCurrent,
    /// A refresh token older than the previous one was used.
    RefreshTokenReused,
    AccountErased,
    Operator,
}

impl RevokeReason {
    /// Returns the value of `reason` in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logout => "logout",
            Self::RevokeAll => "revoke_all",
            Self::RevokeAllExceptCurrent => "revoke_all_except_current",
            Self::RefreshTokenReused => "refresh_token_reused",
            Self::AccountErased => "account_erased",
            Self::Operator => "operator",
        }
    }
}

/// Revokes the sessions that have not ended, and returns them. After the commit, the caller must
/// remove them from the cache with [`super::SessionStore::invalidate`].
pub async fn revoke(
    tx: &Transaction<'_>,
    ids: IdGenerator,
    tenant: TenantId,
    sessions: &[SessionId],
    (reason, actor): (RevokeReason, &Actor),
    now: Timestamp,
) -> Result<Vec<SessionId>, Error> {
    let revoked = table::revoke(tx, tenant, sessions, now).await?;
    let events: Vec<_> = revoked
        .iter()
        .map(|(session, user)| events::BulkEvent {
            id: ids.generate(now),
            subject: session.uuid(),
            data: json!({
                "id": session.to_string(),
                "user_id": user.to_string(),
                "reason": reason.as_str(),
            }),
        })
        .collect();
    let kind = EventKind::SessionRevoked;
    events::record_all(tx, tenant, kind, actor, now, &events).await?;
    Ok(revoked.into_iter().map(|(session, _)| session).collect())
}
