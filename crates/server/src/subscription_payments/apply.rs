//! Stores payments together with their effect on the subscription.
//!
//! In managed billing, a payment posts to the subscription's ledger when it completes, is refunded or
//! is disputed. For other subscriptions without a payment provider, a completed payment only ends a
//! past due or unpaid status. The rules are in `domain/payment` and `domain/subscription`.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    AppliedChange, DayPayments, EventKind, LifecycleKind, Payment, PaymentStatus, Subscription,
    SubscriptionStatus,
};

use super::{PaymentView, table};
use crate::{db::Error, events, record::ChangeContext, revenue_journal};

/// The precision of stored timestamps.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// Inserts a payment for a locked subscription and applies it. Returns the stored payment, or `None`
/// if another one has its external id.
pub async fn insert_and_apply(
    context: &mut ChangeContext<'_>,
    mut payment: Payment,
    subscription: &Subscription,
) -> Result<Option<Payment>, Error> {
    let at = effect_time(context, &payment);
    let effect = SubscriptionEffect::new(None, &mut payment, subscription, at);
    if !table::insert(context.tx, context.tenant, &payment).await? {
        return Ok(None);
    }
    append_totals(context, &payment, &payment.changed_totals(None)).await?;
    let (kind, view) = (EventKind::PaymentCreated, PaymentView::from(&payment));
    context
        .record_event_at(payment.updated_at, kind, payment.id, &view)
        .await?;
    if let Some(effect) = effect {
        effect.save(context, subscription, at).await?;
    }
    Ok(Some(payment))
}

/// Updates a locked payment and applies the change. Returns the stored payment. `subscription` is
/// locked; it can be `None` if the status and the refunded amount stay the same.
pub async fn update_and_apply(
    context: &mut ChangeContext<'_>,
    before: &Payment,
    mut after: Payment,
    subscription: Option<&Subscription>,
) -> Result<Payment, Error> {
    let at = effect_time(context, &after);
    let effect = subscription.and_then(|subscription| {
        let effect = SubscriptionEffect::new(Some(before), &mut after, subscription, at)?;
        Some((effect, subscription))
    });
    table::update(context.tx, context.tenant, &after).await?;
    append_totals(context, &after, &after.changed_totals(Some(before))).await?;
    let [old_view, new_view] = [before, &after].map(PaymentView::from);
    let data = events::diff(&old_view, &new_view)?;
    let kind = EventKind::PaymentUpdated;
    context
        .record_event_at(after.updated_at, kind, after.id, &data)
        .await?;
    if let Some((effect, subscription)) = effect {
        effect.save(context, subscription, at).await?;
    }
    Ok(after)
}

/// Appends what a change of a payment adds to the sums of its day to the journal of the reports.
pub(super) async fn append_totals(
    context: &ChangeContext<'_>,
    payment: &Payment,
    totals: &[DayPayments],
) -> Result<(), Error> {
    revenue_journal::append_payment(context.tx, context.tenant, payment.id, totals).await
}

/// Returns the time at which a payment changes its subscription. It is later than the payment's own
/// change, so that the subscription's event sorts after the payment's.
fn effect_time(context: &ChangeContext<'_>, payment: &Payment) -> Timestamp {
    let now = context.now.max(payment.updated_at);
    now.saturating_add(TICK).unwrap_or(now)
}

/// Returns a deleted subscription as expired. It has no access and starts no more periods, so
/// payments change nothing but its credit.
pub(super) fn without_periods(deleted: Subscription, now: Timestamp) -> Subscription {
    if deleted.status == SubscriptionStatus::Expired {
        return deleted;
    }
    let end = deleted.ends_at.map_or(now, |end| end.min(now));
    Subscription {
        status: SubscriptionStatus::Expired,
        ends_at: Some(end.max(deleted.starts_at)),
        late_since: None,
        ..deleted
    }
}

/// What a payment changes in its subscription. It is saved after the payment, because ledger entries
/// refer to the payment.
enum SubscriptionEffect {
    /// The change after a posting to the ledger, in managed billing.
    Posted(AppliedChange),
    /// The subscription after it became active, outside managed billing.
    Reactivated(Subscription),
}

impl SubscriptionEffect {
    /// Computes what the change from `before` to `payment` does to the subscription at `at`. Sets the
    /// fields of the payment that follow from its completion: the ledger amount and the paid period.
    fn new(
        before: Option<&Payment>,
        payment: &mut Payment,
        subscription: &Subscription,
        at: Timestamp,
    ) -> Option<Self> {
        let currency = subscription.plan.price.currency();
        let kind = subscription.lifecycle_kind();
        let is_managed = kind == LifecycleKind::Managed;
        // What a payment has posted follows its refunds and disputes, also while the ledger rests.
        if let Some(posting) = payment.post(before, currency, is_managed) {
            let applied = subscription.apply_posting(&posting, at)?;
            payment.record_posting(&posting, &applied, subscription);
            return Some(Self::Posted(applied));
        }
        match kind {
            LifecycleKind::Recorded => {
                // A dispute that is won also ends as completed, but receives no new money.
                let was_settled = before.is_some_and(|before| before.status.is_settled());
                let completes = payment.status == PaymentStatus::Completed && !was_settled;
                let pays =
                    payment.amount.minor_units() > 0 && payment.amount.currency() == currency;
                (completes && pays)
                    .then(|| subscription.reactivate(at))?
                    .map(Self::Reactivated)
            }
            // The payment provider reports the subscription's status itself.
            LifecycleKind::Managed | LifecycleKind::Provider => None,
        }
    }

    /// Updates the locked subscription and records the events.
    async fn save(
        self,
        context: &mut ChangeContext<'_>,
        subscription: &Subscription,
        at: Timestamp,
    ) -> Result<(), Error> {
        let kind = EventKind::SubscriptionUpdated;
        context.now = at;
        match self {
            Self::Posted(applied) => {
                context.save_applied(kind, subscription, &applied).await?;
            }
            Self::Reactivated(active) => {
                context
                    .save_subscription(kind, subscription, &active)
                    .await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use perennial_domain::{
        BillingCycle, CreateContext, Dunning, Id, Lifecycle, Money, NewPayment, NewSubscription,
        Offer, PaymentChanges, PaymentId, PlanId, SubscriptionId, UserId,
    };
    use uuid::Uuid;

    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
    }

    fn usd(minor_units: i64) -> Money {
        Money::from_minor_units(minor_units, "USD".parse().unwrap()).unwrap()
    }

    fn subscription(lifecycle: Lifecycle, new: &NewSubscription) -> Subscription {
        let offer = Offer {
            plan: PlanId::new(Uuid::max()),
            slug: "pro".parse().unwrap(),
            price: usd(1_000),
            billing_cycle: BillingCycle::Monthly,
            trial_days: 0,
            is_active: true,
        };
        let context = CreateContext {
            offer: &offer,
            lifecycle,
            had_trial: false,
            id: SubscriptionId::new(Uuid::max()),
            now: at(0),
        };
        Subscription::create(new, &context).unwrap().after
    }

    fn managed() -> Subscription {
        let dunning = Dunning {
            since: at(0),
            unpaid_after: 7,
            expired_after: 30,
        };
        let new = NewSubscription::new(UserId::new(Uuid::max()));
        subscription(Lifecycle::Managed(dunning), &new)
    }

    fn recorded(external_id: Option<&str>) -> Subscription {
        let new = NewSubscription {
            status: Some(SubscriptionStatus::PastDue),
            external_id: external_id.map(|id| id.parse().unwrap()),
            ..NewSubscription::new(UserId::new(Uuid::max()))
        };
        subscription(Lifecycle::Recorded, &new)
    }

    fn payment(amount: Money, status: PaymentStatus) -> Payment {
        let new = NewPayment {
            status: Some(status),
            ..NewPayment::new(SubscriptionId::new(Uuid::max()), amount)
        };
        Payment::create(new, PaymentId::new(Uuid::max()), at(1)).unwrap()
    }

    fn with_status(before: &Payment, status: PaymentStatus, day: i64) -> Payment {
        let changes = PaymentChanges {
            status: Some(status),
            ..PaymentChanges::default()
        };
        before.update(&changes, at(day)).unwrap().unwrap()
    }

    fn posted(effect: Option<SubscriptionEffect>) -> Subscription {
        match effect {
            Some(SubscriptionEffect::Posted(applied)) => applied.after,
            _ => panic!("the payment posts nothing"),
        }
    }

    #[test]
    fn managed_payment_posts_once_and_keeps_its_period() {
        let pending = managed();
        let mut completed = payment(usd(2_500), PaymentStatus::Completed);
        let effect = SubscriptionEffect::new(None, &mut completed, &pending, at(1));
        let active = posted(effect);
        assert_eq!(active.status, SubscriptionStatus::Active);
        assert_eq!(active.credit, 1_500);
        let period = completed.period;
        assert_eq!(period.map(|(start, _)| start), Some(at(1)));

        let mut same = completed.clone();
        let effect = SubscriptionEffect::new(Some(&completed), &mut same, &active, at(2));
        assert!(effect.is_none(), "an unchanged payment posts nothing");

        let mut disputed = with_status(&completed, PaymentStatus::Disputed, 2);
        let effect = SubscriptionEffect::new(Some(&completed), &mut disputed, &active, at(2));
        let late = posted(effect);
        assert_eq!(late.credit, -1_000);
        let mut won = with_status(&disputed, PaymentStatus::Completed, 3);
        let effect = SubscriptionEffect::new(Some(&disputed), &mut won, &late, at(3));
        assert_eq!(posted(effect).credit, 1_500);
        assert_eq!(won.period, period);
    }

    #[test]
    fn deleted_subscription_keeps_its_credit_until_a_refund() {
        let mut completed = payment(usd(2_500), PaymentStatus::Completed);
        let effect = SubscriptionEffect::new(None, &mut completed, &managed(), at(1));
        let deleted = without_periods(posted(effect), at(90));
        let mut refunded = with_status(&completed, PaymentStatus::Refunded, 90);
        let effect = SubscriptionEffect::new(Some(&completed), &mut refunded, &deleted, at(90));
        let Some(SubscriptionEffect::Posted(applied)) = effect else {
            panic!("the refund posts nothing");
        };
        let amounts: Vec<i64> = applied.entries().map(|entry| entry.amount).collect();
        assert_eq!(amounts, [-2_500, 1_000], "no renewals before the refund");
        assert!(!applied.after.has_access(at(90)));
    }

    #[test]
    fn recorded_subscription_is_reactivated_by_a_completion_only() {
        let late = recorded(None);
        let reactivates = |before: Option<&Payment>, mut payment: Payment, late: &Subscription| {
            let effect = SubscriptionEffect::new(before, &mut payment, late, at(4));
            assert_eq!(payment.ledger_amount, None);
            matches!(effect, Some(SubscriptionEffect::Reactivated(_)))
        };
        let completed = payment(usd(1), PaymentStatus::Completed);
        assert!(reactivates(None, completed.clone(), &late));
        let pending = payment(usd(1), PaymentStatus::Pending);
        let paid = with_status(&pending, PaymentStatus::Completed, 2);
        assert!(reactivates(Some(&pending), paid, &late));
        let refunded = payment(usd(1), PaymentStatus::Refunded);
        assert!(!reactivates(None, refunded, &late));
        assert!(!reactivates(None, pending, &late));

        let disputed = with_status(&completed, PaymentStatus::Disputed, 2);
        let won = with_status(&disputed, PaymentStatus::Completed, 3);
        assert!(!reactivates(Some(&disputed), won, &late));
        let free = payment(usd(0), PaymentStatus::Completed);
        assert!(!reactivates(None, free, &late));
        let foreign = Money::from_minor_units(1_000, "EUR".parse().unwrap()).unwrap();
        let foreign = payment(foreign, PaymentStatus::Completed);
        assert!(!reactivates(None, foreign, &late));
        assert!(!reactivates(None, completed, &recorded(Some("sub_42"))));
    }
}
