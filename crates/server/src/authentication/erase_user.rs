//! Erases a user: personal data is deleted, accounting records are kept.
//!
//! The user's row is kept without personal data, so that payments still refer to it. Identities are
//! deleted, so the same person signs up as a new user. Sessions are revoked and lose their IP
//! address and user agent. Subscriptions expire; payments are kept. Events contain no email
//! addresses.

use perennial_domain::{EventKind, Id, SessionId, UserId};
use serde_json::json;

use crate::{
    auth::sessions::{self, RevokeReason},
    clock::{Clocks, IdGenerator},
    db::{Error, Transaction},
    events::{self, Actor, Event},
    record::ChangeContext,
    subscriptions::{expire_all_for_user, table::Scope},
    users::table,
};

/// Erases a user and returns the revoked sessions, or `None` if the user does not exist.
pub async fn erase_user(
    tx: &Transaction<'_>,
    ids: IdGenerator,
    (tenant, lifecycle): Scope,
    user: UserId,
    actor: &Actor,
    clocks: Clocks,
) -> Result<Option<Vec<SessionId>>, Error> {
    // The lock blocks new sessions and subscriptions of the user.
    if !table::lock_for_update(tx, tenant, user).await? {
        return Ok(None);
    }
    // Read under the lock, so that events are in the order of changes.
    let now = clocks.real.now();
    // Includes expired sessions: an instance whose clock is behind still accepts them.
    let sessions = sessions::table::list_ids(tx, tenant, user, true).await?;
    let cause = (RevokeReason::AccountErased, actor);
    let revoked = sessions::revoke(tx, ids, tenant, &sessions, cause, now).await?;
    sessions::table::clear_device_data(tx, tenant, user).await?;
    table::erase(tx, tenant, user, now).await?;
    table::delete_stored_responses(tx, tenant, user).await?;
    let mut context = ChangeContext {
        tenant,
        actor: actor.clone(),
        ids,
        now,
        tx,
    };
    expire_all_for_user(&mut context, lifecycle, user, clocks.billing).await?;
    let event = Event {
        id: ids.generate(now),
        at: now,
        tenant,
        kind: EventKind::UserErased,
        subject: user.uuid(),
        actor: actor.clone(),
        data: &json!({"id": user.to_string()}),
    };
    events::record(tx, &event).await?;
    Ok(Some(revoked))
}
