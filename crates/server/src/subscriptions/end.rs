//! Ending what a user has, because the user goes.

use perennial_domain::{EventKind, TenantId, UserId};

use super::{Change, table};
use crate::{
    clock::{Clock, Ids},
    db::{Error, Transaction},
    events::By,
};

/// A user of a tenant.
#[derive(Debug, Clone, Copy)]
pub struct Whose {
    /// The tenant.
    pub tenant: TenantId,
    /// The user.
    pub user: UserId,
}

/// Ends all subscriptions of a user; answers how many. A payment provider that runs one goes on charging until it is
/// told: the event carries what it calls the subscription.
pub async fn end_all_of_user(
    tx: &Transaction<'_>,
    ids: Ids,
    Whose { tenant, user }: Whose,
    by: &By,
    clock: Clock,
) -> Result<usize, Error> {
    let mut ended = 0;
    for subscription in table::lock_live_of_user(tx, tenant, user).await? {
        let now = clock.after(subscription.updated_at);
        // What has passed its end is over already.
        let Some(after) = subscription.end(now) else {
            continue;
        };
        let change = Change {
            tenant,
            by: by.clone(),
            ids,
            now,
            tx,
        };
        change
            .save(EventKind::SubscriptionEnded, &subscription, &after)
            .await?;
        ended += 1;
    }
    Ok(ended)
}
