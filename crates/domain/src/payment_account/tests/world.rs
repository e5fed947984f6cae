//! A model of the service: the rows of objects, the records that follow them, and the events.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::provider::{Object, Provider, usd};
use crate::{
    BillingCycle, Fact, FactFields, FetchLease, FetchedDecision, FollowedPayment,
    FollowedSubscription, Id, Lifecycle, ListedDecision, Offer, Payment, PaymentFact, PaymentId,
    PlanId, ReportedFact, Subscription, SubscriptionFact, SubscriptionId, SyncState, Trial, UserId,
};

pub(super) const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// What the API or a notification says about an object.
#[derive(Debug, Clone)]
pub(super) enum Report {
    Subscription(ReportedFact<SubscriptionFact>),
    Invoice(usize, ReportedFact<PaymentFact>),
}

impl Report {
    pub(super) fn read(provider: &Provider, object: Object) -> Self {
        match object {
            Object::Subscription => Self::Subscription(provider.subscription().unwrap()),
            Object::Invoice(index) => Self::Invoice(index, provider.invoice(index)),
        }
    }

    pub(super) fn object(&self) -> Object {
        match self {
            Self::Subscription(_) => Object::Subscription,
            Self::Invoice(index, _) => Object::Invoice(*index),
        }
    }

    pub(super) fn fields(&self) -> FactFields {
        match self {
            Self::Subscription(reported) => reported.fact.to_fields(),
            Self::Invoice(_, reported) => reported.fact.to_fields(),
        }
    }
}

/// A payment's row and record.
#[derive(Debug, Clone, Default)]
struct TrackedPayment {
    sync: SyncState<PaymentFact>,
    record: Option<Payment>,
    /// Waits for the subscription.
    deferred: bool,
}

/// A change that followed a fact.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChangeEvent {
    pub(super) object: Object,
    pub(super) fields: FactFields,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) subscription_sync: SyncState<SubscriptionFact>,
    pub(super) subscription: Option<Subscription>,
    payments: Vec<TrackedPayment>,
    pub(super) events: Vec<ChangeEvent>,
    /// Payloads of payments whose subscription is unknown.
    waiting: Vec<Report>,
    basic: Offer,
    pro: Offer,
}

fn offer(number: u128, price: i64) -> Offer {
    Offer {
        plan: PlanId::new(Uuid::from_u128(number)),
        slug: format!("plan-{number}").parse().unwrap(),
        price: usd(price),
        billing_cycle: BillingCycle::Monthly,
        trial_days: 0,
        is_active: true,
    }
}

impl World {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            now,
            subscription_sync: SyncState::new(),
            subscription: None,
            payments: Vec::new(),
            events: Vec::new(),
            waiting: Vec::new(),
            basic: offer(3, 1_000),
            pro: offer(4, 3_000),
        }
    }

    fn payment(&mut self, index: usize) -> &mut TrackedPayment {
        if self.payments.len() <= index {
            self.payments
                .resize_with(index + 1, TrackedPayment::default);
        }
        &mut self.payments[index]
    }

    /// Stores a notification: marks the object as changed.
    pub(super) fn hint(&mut self, object: Object) {
        match object {
            Object::Subscription => self.subscription_sync.hint(),
            Object::Invoice(index) => self.payment(index).sync.hint(),
        }
    }

    pub(super) fn dirty_objects(&self) -> Vec<Object> {
        let payments = self.payments.iter().enumerate();
        let payments = payments.filter(|(_, payment)| payment.sync.is_dirty());
        let payments = payments.map(|(index, _)| Object::Invoice(index));
        let subscription = self.subscription_sync.is_dirty();
        let subscription = subscription.then_some(Object::Subscription);
        subscription.into_iter().chain(payments).collect()
    }

    pub(super) fn claim(&mut self, object: Object) -> Option<FetchLease> {
        let now = self.now;
        match object {
            Object::Subscription => self.subscription_sync.claim(now, LEASE),
            Object::Invoice(index) => self.payment(index).sync.claim(now, LEASE),
        }
    }

    pub(super) fn release(&mut self, object: Object, lease: FetchLease) {
        match object {
            Object::Subscription => self.subscription_sync.release(lease),
            Object::Invoice(index) => self.payment(index).sync.release(lease),
        }
    }

    /// Applies a response in one transaction.
    pub(super) fn apply_fetched(&mut self, lease: FetchLease, report: Report) -> FetchedDecision {
        match report {
            Report::Subscription(fetched) => {
                let decision = self.subscription_sync.judge_fetched(lease, &fetched);
                if decision == FetchedDecision::Apply {
                    self.follow_subscription(&fetched.fact);
                    self.subscription_sync.complete_fetch(lease, fetched);
                }
                decision
            }
            Report::Invoice(index, fetched) => {
                let decision = self.payment(index).sync.judge_fetched(lease, &fetched);
                if decision != FetchedDecision::Apply {
                    return decision;
                }
                if self.follow_payment(index, &fetched.fact) {
                    self.payment(index).sync.complete_fetch(lease, fetched);
                } else {
                    self.payment(index).sync.defer(lease);
                    self.payment(index).deferred = true;
                    self.hint(Object::Subscription);
                }
                decision
            }
        }
    }

    /// Applies an entry of a list, which was read earlier. Returns whether anything differed.
    pub(super) fn apply_listed(&mut self, report: Report) -> bool {
        let now = self.now;
        match report {
            Report::Subscription(listed) => {
                let decision = self.subscription_sync.judge_listed(&listed.fact, now);
                match decision {
                    ListedDecision::Apply => {
                        self.follow_subscription(&listed.fact);
                        self.subscription_sync.complete_listed(listed);
                    }
                    ListedDecision::Hint => self.hint(Object::Subscription),
                    ListedDecision::Unchanged => {}
                }
                decision != ListedDecision::Unchanged
            }
            Report::Invoice(index, listed) => {
                let decision = self.payment(index).sync.judge_listed(&listed.fact, now);
                match decision {
                    ListedDecision::Apply if self.follow_payment(index, &listed.fact) => {
                        self.payment(index).sync.complete_listed(listed);
                    }
                    ListedDecision::Apply | ListedDecision::Hint => {
                        self.hint(Object::Invoice(index));
                    }
                    ListedDecision::Unchanged => {}
                }
                decision != ListedDecision::Unchanged
            }
        }
    }

    /// Applies the payload of a notification, when objects cannot be fetched.
    pub(super) fn apply_payload(&mut self, report: Report) {
        match report {
            Report::Subscription(payload) => {
                if self.subscription_sync.accepts_payload(&payload) {
                    self.follow_subscription(&payload.fact);
                    self.subscription_sync.complete_payload(payload);
                }
                for waiting in std::mem::take(&mut self.waiting) {
                    self.apply_payload(waiting);
                }
            }
            Report::Invoice(index, payload) => {
                if !self.payment(index).sync.accepts_payload(&payload) {
                    return;
                }
                if self.follow_payment(index, &payload.fact) {
                    self.payment(index).sync.complete_payload(payload);
                } else {
                    self.waiting.push(Report::Invoice(index, payload));
                }
            }
        }
    }

    /// Follows a report without any ordering, as for a history that arrives in order.
    pub(super) fn apply_in_order(&mut self, report: Report) {
        match report {
            Report::Subscription(reported) => {
                self.follow_subscription(&reported.fact);
                self.subscription_sync.applied = Some(reported);
            }
            Report::Invoice(index, reported) => {
                assert!(self.follow_payment(index, &reported.fact));
                self.payment(index).sync.applied = Some(reported);
            }
        }
    }

    fn follow_subscription(&mut self, fact: &SubscriptionFact) {
        let last = self.subscription_sync.applied.as_ref();
        let last = last.map(|applied| &applied.fact);
        let offer = match fact.plan.variant.as_str() {
            "basic" => &self.basic,
            _ => &self.pro,
        };
        let followed = match &self.subscription {
            None => FollowedSubscription::New {
                id: SubscriptionId::new(Uuid::from_u128(1)),
                user: UserId::new(Uuid::from_u128(2)),
                external_user_id: None,
                offer,
                lifecycle: Lifecycle::Recorded,
            },
            Some(record) => FollowedSubscription::Existing {
                record,
                last,
                offer: fact.selects_plan(last).then_some(offer),
            },
        };
        let Some(applied) = Subscription::follow(&followed, fact, self.now) else {
            return;
        };
        if self.subscription.is_none() {
            for payment in &mut self.payments {
                if std::mem::take(&mut payment.deferred) {
                    payment.sync.hint();
                }
            }
        }
        self.subscription = Some(applied.after);
        self.events.push(ChangeEvent {
            object: Object::Subscription,
            fields: fact.to_fields(),
        });
    }

    /// Returns false if the payment's subscription is unknown.
    fn follow_payment(&mut self, index: usize, fact: &PaymentFact) -> bool {
        let now = self.now;
        let Some(subscription) = self.subscription.as_ref().map(|record| record.id) else {
            return false;
        };
        let payment = self.payment(index);
        let last = payment.sync.applied.as_ref();
        let followed = match &payment.record {
            Some(record) => FollowedPayment::Existing {
                record,
                last: last.map(|applied| &applied.fact),
            },
            None => FollowedPayment::New(PaymentId::new(Uuid::from_u128(100))),
        };
        if let Some(after) = Payment::follow(followed, fact, subscription, now) {
            payment.record = Some(after);
            self.events.push(ChangeEvent {
                object: Object::Invoice(index),
                fields: fact.to_fields(),
            });
        }
        true
    }

    /// Stores an expiry that is due, as the worker for due transitions does.
    pub(super) fn expire_due(&mut self) {
        if let Some(record) = &mut self.subscription
            && let Some(due) = record.next_transition(self.now)
        {
            *record = due.after;
        }
    }

    /// Returns the records at `now`, without the times at which the service stored them.
    pub(super) fn records(&self, now: Timestamp) -> (Option<Subscription>, Vec<Option<Payment>>) {
        let epoch = Timestamp::UNIX_EPOCH;
        let subscription = self.subscription.as_ref().map(|record| Subscription {
            created_at: epoch,
            updated_at: epoch,
            // The plan of a trial is the first that the service saw.
            trial: record.trial.map(|trial| Trial {
                plan: self.basic.plan,
                ..trial
            }),
            ..record.as_of(now)
        });
        let payments = self.payments.iter().map(|payment| {
            payment.record.as_ref().map(|record| Payment {
                created_at: epoch,
                updated_at: epoch,
                ..record.clone()
            })
        });
        (subscription, payments.collect())
    }
}
