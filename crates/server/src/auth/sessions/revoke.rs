//! Revokes sessions: updates the rows or sets a watermark, notifies all instances and records events,
//! in one transaction.

use jiff::Timestamp;
use perennial_domain::{EventKind, Id, SessionId, TenantId, UserId};
use serde_json::json;

use super::{
    super::Tenant,
    table, user_sessions_sql,
    watermark::{SessionScope, Watermark},
    watermark_sql,
};
use crate::{
    clock::IdGenerator,
    db::{CellDatabase, Error, Transaction},
    events::{self, Actor, Event},
};

/// Rows that are ended together with the watermark of their user. Housekeeping ends the others.
const MAX_ENDED_AT_ONCE: i64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokeReason {
    Logout,
    RevokeAll,
    RevokeAllExceptCurrent,
    /// The user ended one session by its id.
    RevokeOne,
    /// The user signed in more often than [`perennial_domain::Session::MAX_PER_USER`].
    SessionLimit,
    /// A refresh token older than the previous one was used.
    RefreshTokenReused,
    AccountErased,
    Operator,
    /// The identity provider was removed.
    ProviderRemoved,
}

impl RevokeReason {
    /// Returns the value of `reason` in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logout => "logout",
            Self::RevokeAll => "revoke_all",
            Self::RevokeAllExceptCurrent => "revoke_all_except_current",
            Self::RevokeOne => "revoke_one",
            Self::SessionLimit => "session_limit",
            Self::RefreshTokenReused => "refresh_token_reused",
            Self::AccountErased => "account_erased",
            Self::Operator => "operator",
            Self::ProviderRemoved => "provider_removed",
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

/// The result of revoking all sessions of a user.
#[derive(Debug)]
pub struct RevokedSessions {
    /// After the commit, the caller must pass it to [`super::SessionStore::apply_watermark`].
    pub watermark: Option<Watermark>,
    /// Number of sessions that were active.
    pub count: i64,
}

/// Revokes all sessions of a user, except one if given. The caller must have locked the user's row, so
/// that sign-ins and other revocations of the user come before or after this one.
pub async fn revoke_for_user(
    tx: &Transaction<'_>,
    ids: IdGenerator,
    tenant: &Tenant,
    user: UserId,
    except: Option<SessionId>,
    (reason, actor): (RevokeReason, &Actor),
    now: Timestamp,
) -> Result<RevokedSessions, Error> {
    let count = user_sessions_sql::count_active(tx, tenant, user, except, now).await?;
    let scope = SessionScope::User(tenant.id, user);
    let row = watermark_sql::set(tx, &scope, except, (reason.as_str(), None), None).await?;
    if let Some(row) = &row {
        let limit = MAX_ENDED_AT_ONCE;
        let ended = watermark_sql::end_for_user(tx, (tenant.id, user), row, limit).await?;
        watermark_sql::save_progress(tx, row, ended < limit).await?;
    }
    if count > 0 {
        let event = Event {
            id: ids.generate(now),
            at: now,
            tenant: tenant.id,
            kind: EventKind::UserSessionsRevoked,
            subject: user.uuid(),
            actor: actor.clone(),
            data: &json!({"id": user.to_string(), "count": count, "reason": reason.as_str()}),
        };
        events::record(tx, &event).await?;
    }
    Ok(RevokedSessions {
        watermark: row.map(|row| row.watermark),
        count,
    })
}

/// Revokes all sessions of an issuer, a tenant or a cell. Housekeeping ends the rows and records an
/// event with their number. Returns the number of the first session that stays valid, and when that was set.
pub async fn set_watermark(
    database: &CellDatabase,
    scope: &SessionScope,
    (reason, actor): (RevokeReason, &Actor),
) -> Result<(i64, Timestamp), Error> {
    let mut connection = database.connection().await?;
    loop {
        let tx = connection.begin();
        let cause = (reason.as_str(), actor.operator);
        let row = watermark_sql::set(&tx, scope, None, cause, None).await?;
        tx.commit().await?;
        // A concurrent call may have set a greater number; then set the next one.
        if let Some(row) = row {
            return Ok((row.watermark.sessions_valid_from, row.set_at));
        }
    }
}
