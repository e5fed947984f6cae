//! A subscription at an instant: the input of every sentence.
//!
//! The domain's rules decide; this module only asks them.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    BillingCycle, BillingSummary, Currency, DueTransition, Lifecycle, LifecycleKind, Metadata,
    Subscription, SubscriptionStatus, Transition,
};

use super::{history::StatusHistory, plain_text::sum};

/// How far ahead a forecast looks, unless the next change is later.
const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 366);
/// How many transitions a forecast has at most: a year of daily renewals.
const MAX_TRANSITIONS: usize = 370;

/// A subscription at an instant, with what its events tell.
pub struct Situation<'a> {
    /// As responses show it. The switch to managed billing is applied, although it is stored with the next change.
    pub current: Subscription,
    pub history: &'a StatusHistory,
    /// The transitions that follow without a payment or a request. Those up to `now` are due and not applied yet.
    pub forecast: Vec<DueTransition>,
    /// Billing time.
    pub now: Timestamp,
}

impl<'a> Situation<'a> {
    pub fn new(subscription: &Subscription, history: &'a StatusHistory, now: Timestamp) -> Self {
        let now = now.max(subscription.updated_at);
        let mut current = subscription.as_of(now);
        if let Some(due) = current.next_transition(now)
            && due.transition == Transition::Managed
        {
            current = due.after;
        }
        Self {
            forecast: forecast(&current, now),
            current,
            history,
            now,
        }
    }

    pub fn status(&self) -> SubscriptionStatus {
        self.current.status
    }

    pub fn kind(&self) -> LifecycleKind {
        self.current.lifecycle_kind()
    }

    pub fn currency(&self) -> Currency {
        self.current.plan.price.currency()
    }

    /// Formats minor units of the subscription's currency.
    pub fn sum(&self, minor_units: i64) -> String {
        sum(minor_units, self.currency())
    }

    /// Returns the derived fields of managed billing.
    pub fn billing(&self) -> Option<BillingSummary> {
        self.current.billing_summary(self.now)
    }

    /// Returns price × quantity; 0 if the price is unknown.
    pub fn amount(&self) -> i64 {
        self.current.amount().unwrap_or(0)
    }

    /// Returns the minor units to pay now to be active, in managed billing.
    pub fn amount_due(&self) -> i64 {
        self.billing().map_or(0, |billing| billing.amount_due)
    }

    pub fn is_lifetime(&self) -> bool {
        self.current.billing_cycle == BillingCycle::Lifetime
    }

    pub fn is_late(&self) -> bool {
        self.current.late_since.is_some()
    }

    pub fn has_started(&self) -> bool {
        self.current.starts_at <= self.now
    }

    /// Returns whether time that is paid or free reaches beyond now, in managed billing.
    pub fn is_covered(&self) -> bool {
        let renewal = self.current.renews_at;
        self.current.was_covered() && renewal.is_none_or(|renewal| renewal > self.now)
    }

    /// Returns whether the tenant's billing is managed, but not this subscription, because its price is unknown.
    pub fn is_unpriced(&self) -> bool {
        self.current.lifecycle != Lifecycle::Recorded
            && self.current.external_id.is_none()
            && self.current.price().is_none()
    }

    /// Returns the renewal date if it is before the end.
    pub fn renewal(&self) -> Option<Timestamp> {
        let end = self.current.ends_at;
        let renewal = self.current.renews_at?;
        end.is_none_or(|end| renewal < end).then_some(renewal)
    }
}

/// Returns the transitions of the next 12 months, at least one if there is any, and those that follow a missing payment.
fn forecast(current: &Subscription, now: Timestamp) -> Vec<DueTransition> {
    let horizon = now.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
    let mut steps: Vec<DueTransition> = Vec::new();
    // Metadata decides nothing, and each step copies the subscription.
    let mut state = Subscription {
        metadata: Metadata::default(),
        ..current.clone()
    };
    while steps.len() < MAX_TRANSITIONS {
        let Some(next) = state.next_transition(Timestamp::MAX) else {
            break;
        };
        let is_near = match steps.last() {
            None => true,
            Some(last) => next.at <= horizon || is_late_transition(last.transition),
        };
        if !is_near {
            break;
        }
        state = next.after.clone();
        steps.push(next);
    }
    steps
}

/// Returns whether a transition follows from a missing payment, and others follow it.
pub fn is_late_transition(transition: Transition) -> bool {
    matches!(transition, Transition::PastDue | Transition::Unpaid)
}
