//! Stores payments and applies completed ones to their subscription.

use jiff::SignedDuration;
use perennial_domain::{EventKind, Lifecycle, Payment, PaymentEffect, PaymentStatus, Subscription};

use super::{PaymentView, table};
use crate::{db::Error, events, record::ChangeContext};

/// Inserts a payment for a locked subscription and applies it. Returns `None` if another payment has
/// its external id.
pub async fn insert_and_apply(
    context: &mut ChangeContext<'_>,
    mut payment: Payment,
    subscription: Subscription,
    lifecycle: &Lifecycle,
) -> Result<Option<PaymentView>, Error> {
    let application =
        PaymentApplication::new(&mut payment, subscription, context, lifecycle).await?;
    if !table::insert(context.tx, context.tenant, &payment).await? {
        return Ok(None);
    }
    let view = PaymentView::from(&payment);
    let kind = EventKind::PaymentCreated;
    context
        .record_event_at(payment.updated_at, kind, payment.id, &view)
        .await?;
    application.save(context).await?;
    Ok(Some(view))
}

/// Updates a locked payment and records the event.
pub async fn save(
    context: &ChangeContext<'_>,
    before: &Payment,
    after: &Payment,
) -> Result<PaymentView, Error> {
    table::update(context.tx, context.tenant, after).await?;
    let [old_view, new_view] = [before, after].map(PaymentView::from);
    let data = events::diff(&old_view, &new_view)?;
    let kind = EventKind::PaymentUpdated;
    context
        .record_event_at(after.updated_at, kind, after.id, &data)
        .await?;
    Ok(new_view)
}

/// The effect of a payment on its locked subscription, to be saved after the payment.
pub(super) struct PaymentApplication {
    /// The subscription after all transitions due before the payment.
    before: Subscription,
    effect: Option<PaymentEffect>,
}

impl PaymentApplication {
    /// Computes the effect of a completed payment and sets `payment.period` to the paid period. A
    /// payment pays for one period at most.
    pub(super) async fn new(
        payment: &mut Payment,
        subscription: Subscription,
        context: &mut ChangeContext<'_>,
        lifecycle: &Lifecycle,
    ) -> Result<Self, Error> {
        if payment.status != PaymentStatus::Completed || payment.period.is_some() {
            return Ok(Self {
                before: subscription,
                effect: None,
            });
        }
        let before = context.catch_up(subscription, lifecycle).await?;
        // The later time sorts the subscription's event after the payment's.
        context.now = context
            .now
            .saturating_add(SignedDuration::from_micros(1))
            .unwrap_or(context.now);
        let effect = before.apply_payment(payment.amount, lifecycle, context.now);
        payment.period = effect.as_ref().and_then(|effect| effect.period);
        Ok(Self { before, effect })
    }

    /// Updates the subscription and records the event, if the payment has an effect.
    pub(super) async fn save(self, context: &ChangeContext<'_>) -> Result<(), Error> {
        if let Some(effect) = self.effect {
            let kind = EventKind::SubscriptionUpdated;
            context
                .save_subscription(kind, &self.before, &effect.after)
                .await?;
        }
        Ok(())
    }
}
