//! Applies a one-time purchase: a lifetime subscription and its payment follow one object.
//!
//! The subscription has a row in `payment_objects` of its own, so that everything that looks for the object of a subscription
//! finds it. No notification names that row: both rows change in the transaction of the purchase.

use perennial_domain::{BillingCycle, Id, Offer, PaymentId, PaymentObjectKind, SubscriptionId};

use super::{
    fetched_object::FetchedPurchase,
    listed_sql,
    object_lease_sql::ClaimedObject,
    payment_sync,
    provider_notification::PaymentObjectRef,
    subscription_sync,
    sync_apply::{ObjectSync, SyncOutcome},
    sync_sql::{self, ObjectKey},
    user_token,
};
use crate::{db::Error, subscription_payments};

/// Makes the records of a purchase follow it.
pub(super) async fn follow(
    sync: &ObjectSync<'_>,
    purchase: &FetchedPurchase,
) -> Result<SyncOutcome, Error> {
    let fact = &purchase.subscription.fact;
    let key = ObjectKey {
        object: PaymentObjectRef {
            kind: PaymentObjectKind::Subscription,
            id: fact.external_id.to_string(),
        },
        ..sync.key().clone()
    };
    listed_sql::insert_listed(sync.tx, &key).await?;
    let Some(locked) = sync_sql::lock(sync.tx, &key).await? else {
        return Ok(SyncOutcome::Conflict);
    };
    if locked.record.is_none()
        && let Some(outcome) = find_obstacle(sync, purchase).await?
    {
        return Ok(outcome);
    }
    // Locks are taken in one order: payment, then subscription.
    if let Some(payment) = sync.locked.record {
        let id = PaymentId::new(payment);
        subscription_payments::table::lock(sync.tx, key.tenant, id).await?;
    }
    let item = ClaimedObject {
        key,
        lease: locked.listed_lease(),
        has_record: locked.record.is_some(),
        ..sync.item.clone()
    };
    let bought = ObjectSync {
        item: &item,
        locked: &locked,
        ..*sync
    };
    let reported = &purchase.subscription;
    let record = match subscription_sync::follow(&bought, reported, &purchase.customer).await? {
        SyncOutcome::Applied(settled) => {
            sync_sql::settle(sync.tx, &item.key, item.lease, &settled).await?;
            settled.record.or(locked.record)
        }
        // The payment of a deleted subscription can still be refunded.
        SyncOutcome::Ignored { .. } if sync.locked.record.is_some() => locked.record,
        other => return Ok(other),
    };
    payment_sync::follow_for(sync, &purchase.payment, record.map(SubscriptionId::new)).await
}

/// Returns the outcome of a purchase that no lifetime plan sells.
async fn find_obstacle(
    sync: &ObjectSync<'_>,
    purchase: &FetchedPurchase,
) -> Result<Option<SyncOutcome>, Error> {
    let fact = &purchase.subscription.fact;
    let offers = subscription_sync::find_offers(sync, fact).await?;
    if offers.iter().any(is_lifetime) {
        return Ok(None);
    }
    let token = purchase.customer.user_token.as_deref();
    let account = sync.key().account;
    let signed = token.and_then(|token| user_token::verify(&sync.app.keys, account, token));
    // A checkout of the service sells plans only, so the plan was deleted, or lost the price.
    Ok(Some(if offers.is_empty() && signed.is_some() {
        subscription_sync::awaits_plan(fact)
    } else {
        let variant = &fact.plan.variant;
        SyncOutcome::ignored(format!(
            "it is for no subscription, and no lifetime plan has {variant} in its variants"
        ))
    }))
}

/// Returns whether a plan is paid once.
pub(super) fn is_lifetime(offer: &Offer) -> bool {
    offer.billing_cycle == BillingCycle::Lifetime
}
