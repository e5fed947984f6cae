//! Expires all subscriptions of a user whose account is deleted.

use perennial_domain::{EventKind, UserId};

use super::table;
use crate::{clock::Clock, db::Error, record::ChangeContext};

/// Expires all subscriptions of a user and returns their number. A payment provider continues to
/// charge: the events contain the external ids, so that the client can cancel at the provider.
pub async fn expire_all_for_user(
    context: &mut ChangeContext<'_>,
    user: UserId,
    clock: Clock,
) -> Result<usize, Error> {
    let mut expired = 0;
    for subscription in table::lock_unexpired_by_user(context.tx, context.tenant, user).await? {
        context.now = clock.now_after(subscription.updated_at);
        // `None` if the end of the subscription has already passed.
        let Some(after) = subscription.expire(context.now) else {
            continue;
        };
        context
            .save_subscription(EventKind::SubscriptionEnded, &subscription, &after)
            .await?;
        expired += 1;
    }
    Ok(expired)
}
