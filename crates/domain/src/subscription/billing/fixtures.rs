//! A managed subscription with its ledger and payments, driven by calls as the service makes them.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::*;
use crate::{
    BillingCycle, CreateContext, Currency, Id, Lifecycle, Money, NewPayment, NewSubscription,
    Offer, Payment, PaymentChanges, PaymentId, PaymentStatus, Quantity, SubscriptionChanges,
    SubscriptionId, SubscriptionUpdateError, UserId, subscription::AppliedChange,
};

pub(in crate::subscription) const DUNNING: Dunning = Dunning {
    since: Timestamp::UNIX_EPOCH,
    unpaid_after: 7,
    expired_after: 30,
};

/// Noon on a day of 2026 or later. Day 0 is January 1, so day 31 is one month later.
pub(in crate::subscription) fn noon(day: i64) -> Timestamp {
    let first: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    first + SignedDuration::from_hours(24 * day)
}

pub(in crate::subscription) fn usd() -> Currency {
    "USD".parse().unwrap()
}

/// An active plan in USD without a trial.
pub(in crate::subscription) fn plan(
    number: u128,
    price: i64,
    billing_cycle: BillingCycle,
) -> Offer {
    Offer {
        plan: PlanId::new(Uuid::from_u128(number)),
        slug: format!("plan-{number}").parse().unwrap(),
        price: Money::from_minor_units(price, usd()).unwrap(),
        billing_cycle,
        trial_days: 0,
        is_active: true,
    }
}

pub(in crate::subscription) fn monthly(price: i64) -> Offer {
    plan(3, price, BillingCycle::Monthly)
}

pub(in crate::subscription) fn new() -> NewSubscription {
    NewSubscription::new(UserId::new(Uuid::from_u128(2)))
}

pub(in crate::subscription) fn context(offer: &Offer, now: Timestamp) -> CreateContext<'_> {
    CreateContext {
        offer,
        lifecycle: Lifecycle::Managed(DUNNING),
        had_trial: false,
        id: SubscriptionId::new(Uuid::from_u128(1)),
        now,
    }
}

pub(in crate::subscription) fn to_status(status: SubscriptionStatus) -> SubscriptionChanges {
    SubscriptionChanges {
        status: Some(status),
        ..SubscriptionChanges::default()
    }
}

pub(in crate::subscription) fn to_plan(offer: Offer) -> SubscriptionChanges {
    SubscriptionChanges {
        offer: Some(offer),
        ..SubscriptionChanges::default()
    }
}

pub(in crate::subscription) fn to_quantity(quantity: i64) -> SubscriptionChanges {
    SubscriptionChanges {
        quantity: Some(Quantity::try_from(quantity).unwrap()),
        ..SubscriptionChanges::default()
    }
}

pub(in crate::subscription) fn to_free_time(until: Timestamp) -> SubscriptionChanges {
    SubscriptionChanges {
        free_until: Some(Some(until)),
        ..SubscriptionChanges::default()
    }
}

/// A subscription, its ledger and its payments.
#[derive(Debug, Clone)]
pub(in crate::subscription) struct Book {
    pub sub: Subscription,
    pub entries: Vec<LedgerEntry>,
    pub payments: Vec<Payment>,
    /// When the last change took effect: after everything due at the same instant.
    pub changed_at: Timestamp,
}

impl Book {
    pub fn create(new: &NewSubscription, context: &CreateContext<'_>) -> Self {
        let BillingChange { after, entries } = Subscription::create(new, context).unwrap();
        Self {
            sub: after,
            entries,
            payments: Vec::new(),
            changed_at: context.now,
        }
    }

    /// A pending subscription to `offer`, created on day 0.
    pub fn pending(offer: &Offer) -> Self {
        Self::create(&new(), &context(offer, noon(0)))
    }

    /// A subscription to `offer` that is paid and starts on day 0.
    pub fn paid(offer: &Offer) -> Self {
        let mut book = Self::create(&new(), &context(offer, noon(0) - TICK));
        book.pay(offer.price.minor_units(), noon(0));
        assert_eq!(book.sub.status, SubscriptionStatus::Active);
        book
    }

    /// Applies everything due by `now`, as the worker does.
    pub fn run(&mut self, now: Timestamp) -> &Subscription {
        for step in self.sub.due_transitions(now) {
            self.entries.extend(step.entries);
            self.sub = step.after;
        }
        &self.sub
    }

    fn apply(&mut self, applied: AppliedChange) {
        self.entries.extend(applied.entries().cloned());
        let first = applied.own_entries.first();
        self.changed_at = first.map_or(applied.after.updated_at, |entry| entry.at);
        self.sub = applied.after;
    }

    /// Updates the subscription. Returns whether it changed.
    pub fn update(
        &mut self,
        changes: &SubscriptionChanges,
        now: Timestamp,
    ) -> Result<bool, SubscriptionUpdateError> {
        match self.sub.update(changes, now)? {
            Some(applied) => {
                self.apply(applied);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Updates the subscription, which must change.
    pub fn change(&mut self, changes: &SubscriptionChanges, now: Timestamp) -> &Subscription {
        assert_eq!(self.update(changes, now), Ok(true));
        &self.sub
    }

    pub fn status(&mut self, status: SubscriptionStatus, now: Timestamp) -> &Subscription {
        self.change(&to_status(status), now)
    }

    /// Returns the amount due of a change that is refused for lack of money.
    pub fn shortage(&self, changes: &SubscriptionChanges, now: Timestamp) -> i64 {
        match self.sub.update(changes, now) {
            Err(SubscriptionUpdateError::PaymentRequired { amount_due, .. }) => amount_due,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the fields of a rejected change.
    pub fn invalid(&self, changes: &SubscriptionChanges, now: Timestamp) -> Vec<&'static str> {
        match self.sub.update(changes, now) {
            Err(SubscriptionUpdateError::InvalidFields(errors)) => {
                errors.into_iter().map(|(field, _)| field).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Records a completed payment. Returns its index.
    pub fn pay(&mut self, minor: i64, now: Timestamp) -> usize {
        let amount = Money::from_minor_units(minor, usd()).unwrap();
        let new = NewPayment {
            status: Some(PaymentStatus::Completed),
            ..NewPayment::new(self.sub.id, amount)
        };
        self.add_payment(new, now)
    }

    pub fn add_payment(&mut self, new: NewPayment, now: Timestamp) -> usize {
        let index = self.payments.len();
        let number = u128::try_from(index).unwrap() + 100;
        let id = PaymentId::new(Uuid::from_u128(number));
        let payment = Payment::create(new, id, now).unwrap();
        self.payments.push(payment);
        self.post(index, None, now);
        index
    }

    /// Changes a payment and posts the difference.
    pub fn update_payment(
        &mut self,
        index: usize,
        changes: &PaymentChanges,
        now: Timestamp,
    ) -> bool {
        let before = self.payments[index].clone();
        match before.update(changes, now) {
            Ok(Some(after)) => {
                self.payments[index] = after;
                self.post(index, Some(&before), now);
                true
            }
            _ => false,
        }
    }

    pub fn payment_status(&mut self, index: usize, status: PaymentStatus, now: Timestamp) {
        let changes = PaymentChanges {
            status: Some(status),
            ..PaymentChanges::default()
        };
        assert!(self.update_payment(index, &changes, now));
    }

    /// Sets the refunded amount of a payment.
    pub fn refund(&mut self, index: usize, total: i64, now: Timestamp) -> bool {
        let amount = self.payments[index].amount.minor_units();
        let partial = Money::from_minor_units(total, usd()).unwrap();
        let status = match total {
            0 => PaymentStatus::Completed,
            _ if total == amount => PaymentStatus::Refunded,
            _ => PaymentStatus::PartiallyRefunded,
        };
        let changes = PaymentChanges {
            status: Some(status),
            refunded: (0 < total && total < amount).then(|| Some(partial.to_decimal())),
            ..PaymentChanges::default()
        };
        self.update_payment(index, &changes, now)
    }

    fn post(&mut self, index: usize, before: Option<&Payment>, now: Timestamp) {
        let is_managed = self.sub.dunning().is_some();
        let posting = self.payments[index].post(before, usd(), is_managed);
        let Some(posting) = posting else { return };
        if let Some(applied) = self.sub.apply_posting(&posting, now) {
            self.payments[index].record_posting(&posting, &applied, &self.sub);
            self.apply(applied);
        }
    }

    /// Returns the amounts of the ledger, in order, with their types.
    pub fn amounts(&self) -> String {
        let entries = self.entries.iter();
        let labels = entries.map(|entry| format!("{} {}", entry.entry_type, entry.amount));
        labels.collect::<Vec<_>>().join(", ")
    }

    /// Forgets the ledger, so that [`Self::amounts`] shows only what follows.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
