//! What a completed payment does to its subscription.

use jiff::SignedDuration;
use perennial_domain::{EventKind, Id, Lifecycle, Paid, Payment, PaymentStatus, Subscription};

use serde::Serialize;

use super::{PaymentView, table};
use crate::{
    db::Error,
    events::{self, Event},
    subscriptions::Change,
};

/// Adds a new payment for a subscription, which is locked, and what it does to that; unless another payment has its
/// external id.
pub async fn add(
    change: &mut Change<'_>,
    mut payment: Payment,
    subscription: Subscription,
    lifecycle: &Lifecycle,
) -> Result<Option<PaymentView>, Error> {
    let counted = Counted::of(&mut payment, subscription, change, lifecycle).await?;
    if !table::insert(change.tx, change.tenant, &payment).await? {
        return Ok(None);
    }
    let view = PaymentView::from(&payment);
    record(change, EventKind::PaymentCreated, &payment, &view).await?;
    counted.save(change).await?;
    Ok(Some(view))
}

/// Writes what a payment that was locked has become; refused by [`table::EXTERNAL_ID_UNIQUE`] if another has its external
/// id.
pub async fn save(
    change: &Change<'_>,
    before: &Payment,
    after: &Payment,
) -> Result<PaymentView, Error> {
    table::save(change.tx, change.tenant, after).await?;
    let [was, is] = [before, after].map(PaymentView::from);
    let changed = events::changed(&was, &is)?;
    record(change, EventKind::PaymentUpdated, after, &changed).await?;
    Ok(is)
}

async fn record<T: Serialize>(
    change: &Change<'_>,
    kind: EventKind,
    payment: &Payment,
    data: &T,
) -> Result<(), Error> {
    let event = Event {
        id: change.ids.next(payment.updated_at),
        at: payment.updated_at,
        tenant: change.tenant,
        kind,
        subject: payment.id.uuid(),
        by: change.by.clone(),
        data,
    };
    events::record(change.tx, &event).await
}

/// A payment that has become completed, and the subscription that it is for, which is locked.
pub(super) struct Counted {
    /// What the subscription was, with everything written down that was due before.
    before: Subscription,
    paid: Option<Paid>,
}

impl Counted {
    /// Counts a payment, and notes in it the period that it pays for. One that has paid for a period pays for no other.
    pub(super) async fn of(
        payment: &mut Payment,
        subscription: Subscription,
        change: &mut Change<'_>,
        lifecycle: &Lifecycle,
    ) -> Result<Self, Error> {
        let counts = payment.status == PaymentStatus::Completed && payment.period.is_none();
        if !counts {
            let before = subscription;
            return Ok(Self { before, paid: None });
        }
        let before = change.catch_up(subscription, lifecycle).await?;
        // First there is a payment, and then what it does.
        change.now = change
            .now
            .saturating_add(SignedDuration::from_micros(1))
            .unwrap_or(change.now);
        let paid = before.pay(payment.amount, lifecycle, change.now);
        payment.period = paid.as_ref().and_then(|paid| paid.period);
        Ok(Self { before, paid })
    }

    /// Writes down what it did to the subscription.
    pub(super) async fn save(self, change: &Change<'_>) -> Result<(), Error> {
        if let Some(paid) = self.paid {
            let kind = EventKind::SubscriptionUpdated;
            change.save(kind, &self.before, &paid.after).await?;
        }
        Ok(())
    }
}
