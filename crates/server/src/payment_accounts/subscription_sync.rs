//! Applies a fact about a subscription: finds or creates the record, its plan and its user.

use jiff::SignedDuration;
use perennial_domain::{
    BillingChange, EventKind, ExternalId, FollowedSubscription, Id, Offer, ReportedFact,
    Subscription, SubscriptionFact, SubscriptionId,
};

use super::{
    fetched_object::CustomerRef,
    sync_apply::{FactDecision, ObjectSync, SyncOutcome},
    sync_sql::{self, AwaitedRecord, SettledObject},
    user_match::{UserMatch, awaited_notification, customer_key, find_or_create_user},
};
use crate::{db::Error, subscription_plans, subscriptions, users};

/// How long the notification that names the user of a new subscription is awaited. Lemon Squeezy sends it for the last time
/// after 155 seconds.
const NAMING_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Makes the record of a subscription follow a fact.
pub(super) async fn follow(
    sync: &ObjectSync<'_>,
    reported: &ReportedFact<SubscriptionFact>,
    customer: &CustomerRef,
) -> Result<SyncOutcome, Error> {
    let last = match sync.judge(reported)? {
        FactDecision::Apply { last } => last,
        FactDecision::Skip(outcome) => return Ok(outcome),
    };
    let tenant = sync.key().tenant;
    let external_id = reported.fact.external_id.as_str();
    let id = match sync.locked.record {
        Some(record) => Some(SubscriptionId::new(record)),
        None => {
            subscriptions::table::find_by_external_id(sync.database, tenant, external_id).await?
        }
    };
    let record = match id {
        Some(id) => {
            let scope = (tenant, sync.lifecycle);
            subscriptions::table::lock_with_deleted(sync.tx, scope, id).await?
        }
        None => None,
    };
    match record {
        Some((_, true)) => Ok(unfollowed(reported, "the subscription was deleted")),
        // Its subscriptions have ended with the user. A provider that ends them later must not reopen them here.
        Some((record, false)) if users::table::is_erased(sync.tx, tenant, record.user).await? => {
            Ok(unfollowed(reported, "the user was erased"))
        }
        // A client has moved the record to another subscription of the payment provider, so this one is not its own any more.
        Some((record, false)) if is_moved(&record, &reported.fact) => {
            let reason = "the record follows another subscription of the payment provider";
            Ok(unfollowed(reported, reason))
        }
        Some((record, false)) => update(sync, reported, customer, &record, last.as_ref()).await,
        None => create(sync, reported, customer).await,
    }
}

/// Returns the outcome of a fact that the record does not follow any more.
fn unfollowed(reported: &ReportedFact<SubscriptionFact>, reason: &str) -> SyncOutcome {
    SyncOutcome::Ignored {
        reason: reason.to_owned(),
        settled: SettledObject::new(reported, None),
    }
}

fn is_moved(record: &Subscription, fact: &SubscriptionFact) -> bool {
    let current = record.external_id.as_ref();
    current.is_some_and(|current| *current != fact.external_id)
}

async fn update(
    sync: &ObjectSync<'_>,
    reported: &ReportedFact<SubscriptionFact>,
    customer: &CustomerRef,
    record: &Subscription,
    last: Option<&SubscriptionFact>,
) -> Result<SyncOutcome, Error> {
    let fact = &reported.fact;
    let mut offer = None;
    if fact.selects_plan(last) {
        let mut offers = find_offers(sync, fact).await?;
        // A client has chosen the plan before the first fact. It stays unless the fact selects another one.
        let keeps_plan = match last {
            None => offers.is_empty() || offers.iter().any(|offer| offer.plan == record.plan.id),
            Some(_) => false,
        };
        if !keeps_plan {
            match (offers.pop(), offers.is_empty()) {
                (None, _) => return Ok(awaits_plan(fact)),
                (Some(only), true) => offer = Some(only),
                (Some(_), false) => return Ok(several_plans(fact)),
            }
        }
    }
    let now = sync.app.billing_clock.now_after(record.updated_at);
    let followed = FollowedSubscription::Existing {
        record,
        last,
        offer: offer.as_ref(),
    };
    if let Some(applied) = Subscription::follow(&followed, fact, now) {
        let mut context = sync.context(now);
        let kind = EventKind::SubscriptionUpdated;
        context.save_applied(kind, record, &applied).await?;
    }
    let customer = customer_key(sync.key(), customer);
    sync_sql::set_customer(sync.tx, &customer, record.user.uuid()).await?;
    let settled = SettledObject::new(reported, Some(record.id.uuid()));
    Ok(SyncOutcome::Applied(settled))
}

async fn create(
    sync: &ObjectSync<'_>,
    reported: &ReportedFact<SubscriptionFact>,
    customer: &CustomerRef,
) -> Result<SyncOutcome, Error> {
    let fact = &reported.fact;
    let now = sync.app.billing_clock.now();
    let context = sync.context(now);
    let age = now.duration_since(fact.starts_at);
    if customer.may_be_named_later && age < NAMING_TIMEOUT {
        let reason = "the notification that names the user has not arrived yet".to_owned();
        return Ok(SyncOutcome::Waiting(awaited_notification(), reason));
    }
    let user = match find_or_create_user(sync, &context, customer).await? {
        UserMatch::Found(user) => user,
        UserMatch::Missing(awaited, reason) => {
            return Ok(SyncOutcome::Waiting(awaited, reason.to_owned()));
        }
        UserMatch::Conflict => return Ok(SyncOutcome::Conflict),
    };
    let mut offers = find_offers(sync, fact).await?;
    let offer = match (offers.pop(), offers.is_empty()) {
        (None, _) => return Ok(awaits_plan(fact)),
        (Some(only), true) => only,
        (Some(_), false) => return Ok(several_plans(fact)),
    };
    let followed = FollowedSubscription::New {
        id: sync.app.ids.generate(now),
        user: user.id,
        external_user_id: user.external_id,
        offer: &offer,
        lifecycle: sync.lifecycle,
    };
    let Some(applied) = Subscription::follow(&followed, fact, now) else {
        return Err(Error::Internal("a new record follows no fact".to_owned()));
    };
    let created = BillingChange {
        after: applied.after,
        entries: applied.own_entries,
    };
    if context.insert_subscription(&created).await?.is_none() {
        return Ok(SyncOutcome::Conflict);
    }
    let customer = customer_key(sync.key(), customer);
    sync_sql::set_customer(sync.tx, &customer, user.id.uuid()).await?;
    let settled = SettledObject::new(reported, Some(created.after.id.uuid()));
    Ok(SyncOutcome::Applied(settled))
}

/// Returns the offers of the plans that a fact selects.
pub(super) async fn find_offers(
    sync: &ObjectSync<'_>,
    fact: &SubscriptionFact,
) -> Result<Vec<Offer>, Error> {
    let variant = fact.plan.variant.as_str();
    let product = fact.plan.product.as_ref().map(ExternalId::as_str);
    let tenant = sync.key().tenant;
    subscription_plans::table::lock_offers_for_variant(sync.tx, tenant, variant, product).await
}

pub(super) fn awaits_plan(fact: &SubscriptionFact) -> SyncOutcome {
    let variant = &fact.plan.variant;
    let ids = [Some(variant), fact.plan.product.as_ref()];
    let ids: Vec<String> = { ids.into_iter().flatten() }
        .map(ToString::to_string)
        .collect();
    let reason = match &fact.plan.product {
        Some(product) => format!("no plan has {variant} in its variants, or the product {product}"),
        None => format!("no plan has {variant} in its variants"),
    };
    let kind = "plan";
    SyncOutcome::Waiting(AwaitedRecord { kind, ids }, reason)
}

fn several_plans(fact: &SubscriptionFact) -> SyncOutcome {
    let variant = &fact.plan.variant;
    let reason = format!(
        "needs attention: several plans have {variant} in their variants, or its product; remove it from all but one and \
         replay the notification"
    );
    SyncOutcome::Failed(reason)
}
