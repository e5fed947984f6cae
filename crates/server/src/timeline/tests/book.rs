//! Subscriptions in every situation, built by the domain's rules, with the events that the service would record.

use jiff::Timestamp;
use perennial_domain::{
    BillingCycle, CreateContext, Dunning, EntryCause, EventKind, Id, Lifecycle, LifecycleKind,
    Money, NewSubscription, Offer, PaymentId, PaymentPosting, PlanId, Subscription,
    SubscriptionChanges, SubscriptionId, SubscriptionStatus, UserId,
};
use uuid::Uuid;

use super::StatusHistory;
use crate::events::StatusChange;

/// The instant at noon of a day.
pub fn noon(day: &str) -> Timestamp {
    format!("{day}T12:00:00Z").parse().unwrap()
}

pub const START: &str = "2026-11-15";
pub const MANAGED: Lifecycle = Lifecycle::Managed(Dunning {
    since: Timestamp::UNIX_EPOCH,
    unpaid_after: 7,
    expired_after: 30,
});

/// A subscription with its events.
#[derive(Clone)]
pub struct Book {
    pub sub: Subscription,
    pub changes: Vec<StatusChange>,
}

pub fn offer(price: i64, billing_cycle: BillingCycle) -> Offer {
    Offer {
        plan: PlanId::new(Uuid::nil()),
        slug: "pro".parse().unwrap(),
        price: Money::from_minor_units(price, "USD".parse().unwrap()).unwrap(),
        billing_cycle,
        trial_days: 0,
        is_active: true,
    }
}

pub fn new() -> NewSubscription {
    NewSubscription::new(UserId::new(Uuid::nil()))
}

impl Book {
    pub fn create(new: &NewSubscription, offer: &Offer, lifecycle: Lifecycle) -> Self {
        let context = CreateContext {
            offer,
            lifecycle,
            had_trial: false,
            id: SubscriptionId::new(Uuid::nil()),
            now: noon(START),
        };
        let sub = Subscription::create(new, &context).unwrap().after;
        let mut book = Self {
            sub: sub.clone(),
            changes: Vec::new(),
        };
        book.store(EventKind::SubscriptionCreated, noon(START), sub);
        book
    }

    /// A monthly subscription of 19.99 USD.
    pub fn managed(new: &NewSubscription) -> Self {
        Self::create(new, &offer(1_999, BillingCycle::Monthly), MANAGED)
    }

    pub fn of_plan(new: &NewSubscription, price: i64, cycle: BillingCycle) -> Self {
        Self::create(new, &offer(price, cycle), MANAGED)
    }

    pub fn trial() -> Self {
        let offer = Offer {
            trial_days: 14,
            ..offer(1_999, BillingCycle::Monthly)
        };
        Self::create(&new(), &offer, MANAGED)
    }

    /// A subscription whose changes are reported.
    pub fn reported(status: SubscriptionStatus, is_provider: bool) -> Self {
        let new = NewSubscription {
            status: Some(status),
            external_id: is_provider.then(|| "sub_42".parse().unwrap()),
            ends_at: (status == SubscriptionStatus::Cancelled).then(|| noon("2026-12-15")),
            ..new()
        };
        Self::create(
            &new,
            &offer(1_999, BillingCycle::Monthly),
            Lifecycle::Recorded,
        )
    }

    pub fn history(&self) -> StatusHistory {
        StatusHistory::new(&self.changes)
    }

    pub fn is_managed(&self) -> bool {
        self.sub.lifecycle_kind() == LifecycleKind::Managed
    }

    fn store(&mut self, kind: EventKind, at: Timestamp, after: Subscription) {
        let text = |instant: Timestamp| instant.to_string();
        let before = std::mem::replace(&mut self.sub, after);
        let after = &self.sub;
        self.changes.push(StatusChange {
            at,
            kind: kind.as_str().to_owned(),
            subject: after.id.uuid(),
            status: Some(after.status.as_str().to_owned()),
            is_active: Some(after.has_access(at)),
            starts_at: Some(text(after.starts_at)),
            ends_at: after.ends_at.map(text),
            previous_status: (before.status != after.status)
                .then(|| before.status.as_str().to_owned()),
            has_new_end: before.ends_at != after.ends_at,
        });
    }

    /// Applies everything due, as the worker does.
    pub fn run(mut self, day: &str) -> Self {
        for due in self.sub.due_transitions(noon(day)) {
            self.store(due.transition.event_kind(), due.at, due.after);
        }
        self
    }

    fn post(&mut self, cause: EntryCause, amount: i64, now: Timestamp) {
        let posting = PaymentPosting {
            payment: PaymentId::new(Uuid::nil()),
            cause,
            amount,
            waived: 0,
            lost: 0,
        };
        let applied = self.sub.apply_posting(&posting, now).unwrap();
        self.save(applied);
    }

    fn save(&mut self, applied: perennial_domain::AppliedChange) {
        for due in applied.due {
            self.store(due.transition.event_kind(), due.at, due.after);
        }
        let at = applied.after.updated_at;
        self.store(EventKind::SubscriptionUpdated, at, applied.after);
    }

    pub fn pay(&mut self, amount: i64, now: Timestamp) {
        self.post(EntryCause::Payment, amount, now);
    }

    pub fn paid(mut self, amount: i64, day: &str) -> Self {
        self.pay(amount, noon(day));
        self
    }

    pub fn disputed(mut self, amount: i64, day: &str) -> Self {
        self.post(EntryCause::Dispute, -amount, noon(day));
        self
    }

    pub fn changed(mut self, changes: &SubscriptionChanges, day: &str) -> Self {
        let applied = self.sub.update(changes, noon(day)).unwrap().unwrap();
        self.save(applied);
        self
    }

    pub fn status(self, status: SubscriptionStatus, day: &str) -> Self {
        let changes = SubscriptionChanges {
            status: Some(status),
            ..SubscriptionChanges::default()
        };
        self.changed(&changes, day)
    }

    pub fn ending(self, end: &str, day: &str) -> Self {
        let ends_at = Some(Some(noon(end)));
        self.changed(
            &SubscriptionChanges {
                ends_at,
                ..SubscriptionChanges::default()
            },
            day,
        )
    }

    pub fn suspended(self, day: &str) -> Self {
        let is_active = Some(false);
        self.changed(
            &SubscriptionChanges {
                is_active,
                ..SubscriptionChanges::default()
            },
            day,
        )
    }

    /// Sets the status to active, as the request of a fix does.
    pub fn activate(&mut self, lifts: bool, now: Timestamp) {
        let changes = SubscriptionChanges {
            status: Some(SubscriptionStatus::Active),
            is_active: lifts.then_some(true),
            ..SubscriptionChanges::default()
        };
        let applied = self.sub.update(&changes, now).unwrap();
        if let Some(applied) = applied {
            self.save(applied);
        }
    }

    pub fn lift(&mut self, now: Timestamp) {
        let is_active = Some(true);
        let changes = SubscriptionChanges {
            is_active,
            ..SubscriptionChanges::default()
        };
        let applied = self.sub.update(&changes, now).unwrap().unwrap();
        self.save(applied);
    }
}
