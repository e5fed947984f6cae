//! Erases a user: personal data is deleted, accounting records are kept.
//!
//! The user's row is kept without personal data, so that payments still refer to it. Identities are
//! deleted, so the same person signs up as a new user. Sessions are revoked and deleted, with their IP
//! addresses and user agents. Subscriptions expire, also at the payment provider if a payment account
//! runs them; payments are kept. Events contain no email addresses.

use perennial_domain::{EventKind, Id, UserId};
use serde_json::json;

use crate::{
    auth::{
        Tenant,
        sessions::{self, RevokeReason, RevokedSessions},
    },
    clock::{Clocks, IdGenerator},
    db::{Error, Transaction},
    events::{self, Actor, Event},
    payment_commands,
    record::ChangeContext,
    subscriptions::{self, expire_all_for_user},
    users::erase_sql,
};

/// Erases a user and returns the revoked sessions, or `None` if the user does not exist.
pub async fn erase_user(
    tx: &Transaction<'_>,
    ids: IdGenerator,
    tenant: &Tenant,
    user: UserId,
    actor: &Actor,
    clocks: Clocks,
) -> Result<Option<RevokedSessions>, Error> {
    let (tenant_id, lifecycle) = subscriptions::scope(tenant);
    // The lock blocks new sessions and subscriptions of the user.
    if !erase_sql::lock_for_update(tx, tenant_id, user).await? {
        return Ok(None);
    }
    // Read under the lock, so that events are in the order of changes.
    let now = clocks.real.now();
    // The watermark includes expired sessions: an instance whose clock is behind still accepts them.
    let cause = (RevokeReason::AccountErased, actor);
    let revoked = sessions::revoke_for_user(tx, ids, tenant, user, None, cause, now).await?;
    sessions::table::delete_for_user(tx, tenant_id, user).await?;
    erase_sql::erase(tx, tenant_id, user, now).await?;
    erase_sql::delete_stored_responses(tx, tenant_id, user).await?;
    let mut context = ChangeContext {
        tenant: tenant_id,
        actor: actor.clone(),
        ids,
        now,
        tx,
    };
    expire_all_for_user(&mut context, lifecycle, user, clocks.billing).await?;
    payment_commands::end_all_for_user(tx, tenant_id, user).await?;
    let event = Event {
        id: ids.generate(now),
        at: now,
        tenant: tenant_id,
        kind: EventKind::UserErased,
        subject: user.uuid(),
        actor: actor.clone(),
        data: &json!({"id": user.to_string()}),
    };
    events::record(tx, &event).await?;
    Ok(Some(revoked))
}
