//! Erasing a user: what is known of the person goes, what the books need stays.
//!
//! The row stays, with nothing in it that says who it was, so that payments go on belonging to somebody. Identities
//! go, and with them the way back: the same person signs up as a new user. Sessions end, and forget where they were
//! begun. Subscriptions end; payments stay. Events carry no e-mail address in the first place.

use perennial_domain::{EventKind, Id, SessionId, TenantId, UserId};
use serde_json::json;

use crate::{
    callers::sessions::{self, Reason},
    clock::{Clocks, Ids},
    db::{Error, Transaction},
    events::{self, By, Event},
    http::idempotency,
    subscriptions::{Whose, end_all_of_user},
    users::table,
};

/// Erases a user; answers the sessions that were ended by it, or `None` if there is no such user any more.
pub async fn erase(
    tx: &Transaction<'_>,
    ids: Ids,
    tenant: TenantId,
    user: UserId,
    by: &By,
    clocks: Clocks,
) -> Result<Option<Vec<SessionId>>, Error> {
    // From here on nobody signs in as this user, or subscribes it.
    if !table::lock(tx, tenant, user).await? {
        return Ok(None);
    }
    // Read under the lock, so that the order of events is the order of changes.
    let now = clocks.real.now();
    // Those that have run out too: another instance's clock may see that differently.
    let all = sessions::table::of_user(tx, tenant, user, true).await?;
    let why = (Reason::AccountErased, by);
    let ended = sessions::end(tx, ids, tenant, &all, why, now).await?;
    sessions::table::forget_devices(tx, tenant, user).await?;
    table::erase(tx, tenant, user, now).await?;
    idempotency::forget_user(tx, tenant.uuid(), &format!("/users/{user}")).await?;
    let whose = Whose { tenant, user };
    end_all_of_user(tx, ids, whose, by, clocks.billing).await?;
    let event = Event {
        id: ids.next(now),
        at: now,
        tenant,
        kind: EventKind::UserErased,
        subject: user.uuid(),
        by: by.clone(),
        data: &json!({"id": user.to_string()}),
    };
    events::record(tx, &event).await?;
    Ok(Some(ended))
}
