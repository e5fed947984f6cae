//! Applies a fact about a payment: finds its subscription, and finds or creates the record.

use perennial_domain::{
    FollowedPayment, Id, Payment, PaymentFact, PaymentId, PaymentObjectKind, ReportedFact,
    SubscriptionId,
};

use super::{
    provider_notification::PaymentObjectRef,
    sync_apply::{FactDecision, ObjectSync, SyncOutcome},
    sync_sql::{self, AwaitedRecord, ObjectKey, SettledObject},
};
use crate::{db::Error, subscription_payments, subscriptions};

/// Makes the record of a payment follow a fact.
pub(super) async fn follow(
    sync: &ObjectSync<'_>,
    reported: &ReportedFact<PaymentFact>,
) -> Result<SyncOutcome, Error> {
    follow_for(sync, reported, None).await
}

/// Makes the record of a payment for a subscription follow a fact. The default is the subscription that the fact names.
pub(super) async fn follow_for(
    sync: &ObjectSync<'_>,
    reported: &ReportedFact<PaymentFact>,
    subscription: Option<SubscriptionId>,
) -> Result<SyncOutcome, Error> {
    let fact = &reported.fact;
    let last = match sync.judge(reported)? {
        FactDecision::Apply { last } => last,
        FactDecision::Skip(outcome) => return Ok(outcome),
    };
    let is_purchase = subscription.is_some();
    let subscription = match subscription {
        Some(bought) => Some(bought),
        None => find_subscription(sync, fact).await?,
    };
    let Some(subscription) = subscription else {
        return Ok(awaits_subscription(fact));
    };
    let tenant = sync.key().tenant;
    let external_id = fact.external_id.as_str();
    let id = match sync.locked.record {
        Some(record) => Some(PaymentId::new(record)),
        None => {
            subscription_payments::table::find_by_external_id(sync.database, tenant, external_id)
                .await?
        }
    };
    let before = match id {
        Some(id) => {
            let locked = subscription_payments::table::lock(sync.tx, tenant, id).await?;
            let Some(payment) = locked else {
                return Ok(SyncOutcome::Ignored {
                    reason: "the payment was deleted".to_owned(),
                    settled: SettledObject::new(reported, None),
                });
            };
            Some(payment)
        }
        None => None,
    };
    let scope = (tenant, sync.lifecycle);
    let locked = subscriptions::table::lock_with_deleted(sync.tx, scope, subscription).await?;
    let Some((subscription, is_deleted)) = locked else {
        return Ok(awaits_subscription(fact));
    };
    let last_change = before.as_ref().map_or(subscription.created_at, |payment| {
        payment.updated_at.max(subscription.created_at)
    });
    let now = sync.app.billing_clock.now_after(last_change);
    let followed = match &before {
        Some(record) => FollowedPayment::Existing {
            record,
            last: last.as_ref(),
        },
        None if is_deleted => {
            return Ok(SyncOutcome::Ignored {
                reason: "the subscription was deleted".to_owned(),
                settled: SettledObject::new(reported, None),
            });
        }
        None => FollowedPayment::New(sync.app.ids.generate(now)),
    };
    let after = Payment::follow(followed, fact, subscription.id, now);
    let mut context = sync.context(now);
    let record = match (before, after) {
        // A free purchase has a subscription and no payment.
        (None, None) if is_purchase => {
            return Ok(SyncOutcome::Applied(SettledObject::new(reported, None)));
        }
        (None, None) => {
            return Ok(SyncOutcome::ignored("an invoice of 0 gets no payment"));
        }
        (Some(unchanged), None) => unchanged,
        (Some(before), Some(after)) => {
            let subscription = Some(&subscription);
            subscription_payments::update_and_apply(&mut context, &before, after, subscription)
                .await?
        }
        (None, Some(new)) => {
            let inserted =
                subscription_payments::insert_and_apply(&mut context, new, &subscription).await?;
            let Some(inserted) = inserted else {
                return Ok(SyncOutcome::Conflict);
            };
            inserted
        }
    };
    let settled = SettledObject::new(reported, Some(record.id.uuid()));
    Ok(SyncOutcome::Applied(settled))
}

/// Returns the subscription that a payment is for.
async fn find_subscription(
    sync: &ObjectSync<'_>,
    fact: &PaymentFact,
) -> Result<Option<SubscriptionId>, Error> {
    let external_id = fact.subscription.as_str();
    let key = ObjectKey {
        object: PaymentObjectRef {
            kind: PaymentObjectKind::Subscription,
            id: external_id.to_owned(),
        },
        ..sync.key().clone()
    };
    if let Some(record) = sync_sql::find_record(sync.database, &key).await? {
        return Ok(Some(SubscriptionId::new(record)));
    }
    subscriptions::table::find_by_external_id(sync.database, key.tenant, external_id).await
}

fn awaits_subscription(fact: &PaymentFact) -> SyncOutcome {
    let subscription = fact.subscription.to_string();
    let reason = format!("no subscription follows {subscription} yet");
    let awaited = AwaitedRecord {
        kind: "subscription",
        ids: vec![subscription],
    };
    SyncOutcome::Waiting(awaited, reason)
}
