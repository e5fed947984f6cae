//! Revokes sessions and ends them in the cache.

use perennial_domain::SessionId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{
        Caller, SignedInUser,
        sessions::{self, RevokeReason, user_sessions_sql},
    },
    db::Transaction,
    http::problem::{Code, Problem},
    users,
};

/// The result of revoking sessions.
#[derive(Serialize, ToSchema)]
#[schema(as = Revoked, example = json!({"success": true, "revoked": 1}))]
pub struct RevokedView {
    /// Always true.
    #[schema(example = true)]
    success: bool,
    /// Number of revoked sessions.
    #[schema(example = 1)]
    revoked: i64,
}

impl RevokedView {
    fn new(revoked: i64) -> Self {
        Self {
            success: true,
            revoked,
        }
    }
}

/// Revokes the current session of the signed-in user.
pub(super) async fn revoke_current(
    app: &App,
    caller: &Caller<SignedInUser>,
) -> Result<RevokedView, Problem> {
    let current = caller.require_user_session()?.session.id;
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    let reason = RevokeReason::Logout;
    let revoked = revoke(app, connection.begin(), caller, reason, &[current]).await?;
    Ok(RevokedView::new(i64::try_from(revoked).unwrap_or(i64::MAX)))
}

/// Revokes all sessions of the signed-in user, with or without the current one.
pub(super) async fn revoke_all(
    app: &App,
    caller: &Caller<SignedInUser>,
    includes_current: bool,
) -> Result<RevokedView, Problem> {
    let user_session = caller.require_user_session()?;
    let (user, current) = (user_session.user.id, user_session.session.id);
    let (reason, except) = if includes_current {
        (RevokeReason::RevokeAll, None)
    } else {
        (RevokeReason::RevokeAllExceptCurrent, Some(current))
    };
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    users::lock_sql::lock_known(&tx, tenant.id, user).await?;
    let now = app.clock.now();
    // Under the lock: a session that was revoked a moment ago, on another instance, must not except
    // itself from the revocation of the others.
    if !user_sessions_sql::is_active(&tx, tenant, user, current, now).await? {
        let detail = "the session of the access token has ended";
        return Err(Problem::new(Code::InvalidToken, detail));
    }
    let cause = (reason, &caller.actor());
    let revoked = sessions::revoke_for_user(&tx, app.ids, tenant, user, except, cause, now).await?;
    tx.commit().await?;
    if let Some(watermark) = &revoked.watermark {
        let sessions = &app.authenticator.sessions;
        sessions.apply_watermark(tenant, watermark);
    }
    Ok(RevokedView::new(revoked.count))
}

/// Revokes sessions, commits, and removes them from the cache. Returns how many were revoked.
pub(super) async fn revoke<P>(
    app: &App,
    tx: Transaction<'_>,
    caller: &Caller<P>,
    reason: RevokeReason,
    sessions: &[SessionId],
) -> Result<usize, Problem> {
    let tenant = caller.tenant();
    let now = app.clock.now();
    let cause = (reason, &caller.actor());
    let revoked = sessions::revoke(&tx, app.ids, tenant.id, sessions, cause, now).await?;
    tx.commit().await?;
    app.authenticator.sessions.invalidate(tenant, &revoked);
    Ok(revoked.len())
}
