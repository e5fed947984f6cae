//! Making a subscription.

use jiff::Timestamp;

use super::{ExternalId, Offer, Status, Subscription, Wrong};
use crate::{BillingCycle, Invalid, Rule, SubscriptionId, UserId};

/// What somebody says of a subscription when making one; what is left out has a default.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSubscription {
    /// Who has it.
    pub user: UserId,
    /// What the payment provider calls it.
    pub external_id: Option<ExternalId>,
    /// How often it is paid for. Default: as the plan is.
    pub billing_cycle: Option<BillingCycle>,
    /// Where it stands. Default: active.
    pub status: Option<Status>,
    /// Whether it gives access.
    pub is_active: Option<bool>,
    /// When it begins. Default: now, or when it ends or renews if that is earlier.
    pub starts_at: Option<Timestamp>,
    /// When it is paid for next. Default: one cycle after its begin.
    pub renews_at: Option<Timestamp>,
    /// When it ends.
    pub ends_at: Option<Timestamp>,
}

impl Subscription {
    /// A new subscription to what is offered, made at `now`, or everything that is wrong with it.
    pub fn start(
        new: NewSubscription,
        offer: &Offer,
        id: SubscriptionId,
        now: Timestamp,
    ) -> Result<Self, Vec<Wrong>> {
        let mut wrong = offer.refusal();
        let billing_cycle = new.billing_cycle.unwrap_or(offer.billing_cycle);
        let dates = [new.ends_at, new.renews_at];
        let earliest = dates.into_iter().flatten().fold(now, Timestamp::min);
        let starts_at = new.starts_at.unwrap_or(earliest);
        let status = new.status.unwrap_or(Status::Active);
        let ends_at = match status {
            Status::Expired if new.ends_at.is_some_and(|end| end > now) => {
                wrong.push(not_over());
                new.ends_at
            }
            // Nothing was there that could go on until it ends.
            Status::Cancelled | Status::Expired => Some(new.ends_at.unwrap_or(now.max(starts_at))),
            Status::Pending
            | Status::OnTrial
            | Status::Active
            | Status::Paused
            | Status::PastDue
            | Status::Unpaid => new.ends_at,
        };
        let mut started = Self {
            id,
            user: new.user,
            terms: offer.into(),
            external_id: new.external_id,
            billing_cycle,
            status,
            suspended: false,
            starts_at,
            renews_at: new.renews_at.or_else(|| billing_cycle.after(starts_at, 1)),
            ends_at,
            anchor: new.renews_at.unwrap_or(starts_at),
            prepaid: 0,
            late_since: None,
            created_at: now,
            updated_at: now,
        };
        wrong.extend(started.wrong_dates());
        match new.is_active {
            Some(true) if !started.has_access(now) => wrong.push(started.gives_none(now)),
            Some(false) => started.suspended = started.has_access(now),
            _ => {}
        }
        started.status = started.status_at(now);
        started.note_lateness(now);
        if wrong.is_empty() {
            Ok(started)
        } else {
            Err(wrong)
        }
    }

    /// What is wrong with its dates.
    pub(super) fn wrong_dates(&self) -> Vec<Wrong> {
        let invalid = |message: String| Invalid::new(Rule::InconsistentDates, message);
        let mut wrong = Vec::new();
        let start = self.starts_at;
        if self.renews_at.is_some() && self.billing_cycle == BillingCycle::Lifetime {
            let message = "a lifetime subscription is paid once and does not renew".to_owned();
            wrong.push(("renews_at", invalid(message)));
        } else if self.renews_at.is_some_and(|renewal| renewal < start) {
            let message = format!("must not be before starts_at, {start}");
            wrong.push(("renews_at", invalid(message)));
        }
        if self.ends_at.is_some_and(|end| end < start) {
            let message = format!("must not be before starts_at, {start}");
            wrong.push(("ends_at", invalid(message)));
        }
        wrong
    }

    /// It is said to give access, and does not.
    pub(super) fn gives_none(&self, now: Timestamp) -> Wrong {
        let status = self.status_at(now);
        let message = if status.gives_access() && self.starts_at > now {
            format!(
                "it begins at {}; until then it gives no access",
                self.starts_at
            )
        } else {
            format!("{status} gives no access; change status, or leave is_active out")
        };
        ("is_active", Invalid::new(Rule::InconsistentStatus, message))
    }
}

/// It is said to be over, and to end in the future.
pub(super) fn not_over() -> Wrong {
    let message = "what is expired has ended; an end in the future goes with status active";
    ("ends_at", Invalid::new(Rule::InconsistentStatus, message))
}

impl Offer {
    /// Why it cannot be taken, if so.
    pub(super) fn refusal(&self) -> Vec<Wrong> {
        if self.is_active {
            return Vec::new();
        }
        let message = "this plan is not offered any more; those who have it keep it";
        vec![(
            "subscription_plan_id",
            Invalid::new(Rule::PlanInactive, message),
        )]
    }
}
