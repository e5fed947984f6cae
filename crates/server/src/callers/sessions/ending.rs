//! Ending sessions: the row, the word to all instances, and the event, in one transaction.

use jiff::Timestamp;
use perennial_domain::{EventKind, Id, SessionId, TenantId};
use serde_json::json;

use super::table;
use crate::{
    clock::Ids,
    db::{Error, Transaction},
    events::{self, By},
};

/// Why a session was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its user signed out.
    Logout,
    /// Its user signed out everywhere.
    RevokeAll,
    /// Its user signed out everywhere else.
    RevokeAllExceptCurrent,
    /// An old refresh token came back.
    RefreshTokenReused,
    /// Its user's account was erased.
    AccountErased,
    /// An operator ended it.
    Operator,
}

impl Reason {
    /// The word in the event.
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

/// Ends those of these sessions that have not ended, and answers them. To be forgotten here once the transaction has
/// committed ([`super::Sessions::forget`]).
pub async fn end(
    tx: &Transaction<'_>,
    ids: Ids,
    tenant: TenantId,
    sessions: &[SessionId],
    (reason, by): (Reason, &By),
    now: Timestamp,
) -> Result<Vec<SessionId>, Error> {
    let ended = table::end(tx, tenant, sessions, now).await?;
    let changes: Vec<_> = ended
        .iter()
        .map(|(session, user)| events::Change {
            id: ids.next(now),
            subject: session.uuid(),
            data: json!({
                "id": session.to_string(),
                "user_id": user.to_string(),
                "reason": reason.as_str(),
            }),
        })
        .collect();
    let kind = EventKind::SessionRevoked;
    events::record_all(tx, tenant, kind, by, now, &changes).await?;
    Ok(ended.into_iter().map(|(session, _)| session).collect())
}
