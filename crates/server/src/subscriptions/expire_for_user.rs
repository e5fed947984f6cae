//! Expires all subscriptions of a user whose account is deleted.

use perennial_domain::{EventKind, Lifecycle, UserId};

use super::table;
use crate::{clock::Clock, db::Error, record::ChangeContext};

/// Expires all subscriptions of a user and returns their number. The payment provider of a subscription that no
/// payment account runs continues to charge: the events contain the external ids, so that the client can cancel there.
pub async fn expire_all_for_user(
    context: &mut ChangeContext<'_>,
    lifecycle: Lifecycle,
    user: UserId,
    clock: Clock,
) -> Result<usize, Error> {
    let mut expired = 0;
    for subscription in
        table::lock_unexpired_by_user(context.tx, (context.tenant, lifecycle), user).await?
    {
        context.now = clock.now_after(subscription.updated_at);
        // `None` if the end of the subscription has already passed.
        let Some(applied) = subscription.expire(context.now) else {
            continue;
        };
        context
            .save_applied(EventKind::SubscriptionEnded, &subscription, &applied)
            .await?;
        expired += 1;
    }
    Ok(expired)
}
