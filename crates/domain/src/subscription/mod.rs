//! Subscriptions: a user has a plan, from one instant to another.
//!
//! Three things decide whether somebody has **access** at an instant: the [status](Status), the time (it has begun and
//! not ended), and whether it is *suspended*, which is kept by itself, so that lifting a suspension brings back what was
//! there. Nobody needs to write down that time has passed: what has passed its `ends_at` **is** expired, for everybody
//! who looks ([`Subscription::settled`]), and written down later.
//!
//! `start.rs` makes one, `amend.rs` changes one as somebody says, and `lifecycle.rs` is what happens by itself.

use jiff::Timestamp;

use crate::{BillingCycle, Invalid, Line, Money, PlanId, SubscriptionId, UserId};

mod amend;
mod lifecycle;
mod start;
mod status;

pub use amend::{Changes, Refused};
pub use lifecycle::{Dunning, Lifecycle, Paid, Step, Turn};
pub use start::NewSubscription;
pub use status::Status;

/// What a payment provider calls a subscription or a payment.
pub type ExternalId = Line<255>;

/// A field, and what is wrong with it.
pub type Wrong = (&'static str, Invalid);

/// What a plan offers to whoever takes it now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// The plan.
    pub plan: PlanId,
    /// What one billing cycle costs.
    pub price: Money,
    /// How often it is paid for.
    pub billing_cycle: BillingCycle,
    /// Whether it can be taken.
    pub is_active: bool,
}

/// What was taken: the plan as it was then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The plan.
    pub plan: PlanId,
    /// What one of the plan's billing cycles cost.
    pub price: Money,
    /// How often the plan was paid for.
    pub billing_cycle: BillingCycle,
}

impl From<&Offer> for Terms {
    fn from(offer: &Offer) -> Self {
        Self {
            plan: offer.plan,
            price: offer.price,
            billing_cycle: offer.billing_cycle,
        }
    }
}

/// A subscription as it was written down last.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Its identifier.
    pub id: SubscriptionId,
    /// Who has it.
    pub user: UserId,
    /// What was taken.
    pub terms: Terms,
    /// What the payment provider calls it, if one runs it.
    pub external_id: Option<ExternalId>,
    /// How often it is paid for.
    pub billing_cycle: BillingCycle,
    /// Where it stands.
    pub status: Status,
    /// Whether access is withheld, whatever the status says.
    pub suspended: bool,
    /// When it begins.
    pub starts_at: Timestamp,
    /// When it is paid for next.
    pub renews_at: Option<Timestamp>,
    /// When it ends; always there once it is cancelled or expired.
    pub ends_at: Option<Timestamp>,
    /// From where its cycles are counted: the `renews_at` that somebody set, else its begin.
    pub anchor: Timestamp,
    /// How many of the periods from `renews_at` on are paid for.
    pub prepaid: u32,
    /// Since when a payment is late; only while it is past due or unpaid.
    pub late_since: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Subscription {
    /// It as it is at `now`: expired if it has passed its end, whether or not that was written down.
    #[must_use]
    pub fn settled(&self, now: Timestamp) -> Self {
        let mut settled = self.clone();
        if let Some(end) = self.ends_at.filter(|end| *end <= now)
            && self.status != Status::Expired
        {
            settled.status = Status::Expired;
            settled.late_since = None;
            settled.updated_at = self.updated_at.max(end);
        }
        settled
    }

    /// Where it stands at `now`.
    pub fn status_at(&self, now: Timestamp) -> Status {
        match self.ends_at {
            Some(end) if end <= now => Status::Expired,
            _ => self.status,
        }
    }

    /// Whether its user has access at `now`.
    pub fn has_access(&self, now: Timestamp) -> bool {
        self.starts_at <= now && !self.suspended && self.status_at(now).gives_access()
    }

    /// What one cycle of it costs; not known if it is paid for in another cycle than the plan's.
    pub fn price(&self) -> Option<Money> {
        (self.billing_cycle == self.terms.billing_cycle).then_some(self.terms.price)
    }

    /// It ended at `now`, if it had not.
    pub fn end(&self, now: Timestamp) -> Option<Self> {
        (self.status_at(now) != Status::Expired).then(|| Self {
            status: Status::Expired,
            ends_at: Some(now.max(self.starts_at)),
            late_since: None,
            updated_at: now,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use uuid::Uuid;

    use super::*;
    use crate::Id;

    pub(super) fn day(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
    }

    /// Begun on day 0, renewed on day 30.
    pub(super) fn subscription(status: Status) -> Subscription {
        Subscription {
            id: SubscriptionId::new(Uuid::from_u128(1)),
            user: UserId::new(Uuid::from_u128(2)),
            terms: Terms {
                plan: PlanId::new(Uuid::from_u128(3)),
                price: Money::of_minor_units(1_999, "USD".parse().unwrap()).unwrap(),
                billing_cycle: BillingCycle::Monthly,
            },
            external_id: None,
            billing_cycle: BillingCycle::Monthly,
            status,
            suspended: false,
            starts_at: day(0),
            renews_at: Some(day(30)),
            ends_at: match status {
                Status::Cancelled => Some(day(30)),
                Status::Expired => Some(day(10)),
                _ => None,
            },
            anchor: day(0),
            prepaid: 0,
            late_since: match status {
                Status::PastDue | Status::Unpaid => Some(day(0)),
                _ => None,
            },
            created_at: day(0),
            updated_at: day(0),
        }
    }

    #[test]
    fn the_grid_of_access() {
        let mut grid = format!(
            "{:12}{:>12}{:>12}{:>12}{:>12}{:>20}",
            "", "before", "meanwhile", "suspended", "at its end", "after a payment"
        );
        for status in Status::ALL {
            let mut one = subscription(status);
            let shown = |access: bool| if access { "access" } else { "-" };
            let before = one.has_access(day(-1));
            let meanwhile = one.has_access(day(5));
            one.suspended = true;
            let suspended = one.has_access(day(5));
            one.suspended = false;
            let amount = one.terms.price;
            let revived = one
                .pay(amount, &Lifecycle::Recorded, day(5))
                .map_or("-", |paid| paid.after.status.as_str());
            one.ends_at = Some(one.ends_at.unwrap_or(day(20)));
            let end = one.ends_at.unwrap();
            let ended = one.has_access(end);
            assert_eq!(one.status_at(end), Status::Expired);
            let just_before = end
                .checked_sub(jiff::SignedDuration::from_micros(1))
                .unwrap();
            assert_eq!(one.has_access(just_before), meanwhile, "{status}");
            write!(
                grid,
                "\n{:12}{:>12}{:>12}{:>12}{:>12}{:>20}",
                status.as_str(),
                shown(before),
                shown(meanwhile),
                shown(suspended),
                shown(ended),
                revived
            )
            .unwrap();
        }
        insta::assert_snapshot!(grid);
    }

    #[test]
    fn what_a_provider_runs_waits_for_the_provider() {
        let mut one = subscription(Status::PastDue);
        let pay = |one: &Subscription| one.pay(one.terms.price, &Lifecycle::Recorded, day(5));
        assert!(pay(&one).is_some());
        one.external_id = Some("sub_42".parse().unwrap());
        assert_eq!(pay(&one), None);
    }

    #[test]
    fn what_has_passed_is_expired_and_shows_when() {
        let mut one = subscription(Status::Active);
        one.ends_at = Some(day(10));
        assert_eq!(one.settled(day(9)), one);
        let settled = one.settled(day(12));
        assert_eq!(
            (settled.status, settled.updated_at),
            (Status::Expired, day(10))
        );
        // Written down or not, it looks the same.
        assert_eq!(settled.settled(day(15)), settled);
        assert_eq!(one.end(day(12)), None);
        assert_eq!(one.end(day(5)).unwrap().ends_at, Some(day(5)));
        assert_eq!(one.end(day(-5)).unwrap().ends_at, Some(day(0)));
    }
}
