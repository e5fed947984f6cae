//! What happens to a subscription by itself, and what a payment does to it.
//!
//! Whether time moves it is a setting of its tenant. *Recorded*: somebody else, such as a payment provider, says what
//! happened; by itself a subscription only ends. *Managed*: what no provider runs renews when its next period is paid for
//! or costs nothing, and else is past due, then unpaid, then over.
//!
//! A [`Step`] happens **at the instant that it was due**, however late somebody comes to write it down; so it makes no
//! difference whether a year is caught up with at once or day by day. A payment is counted after everything that was due
//! before it.

use jiff::{SignedDuration, Timestamp};

use super::{Status, Subscription};
use crate::{EventKind, Money};

/// Who moves time for a tenant's subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Callers say what happened.
    Recorded,
    /// The service moves what no payment provider runs.
    Managed(Dunning),
}

/// What becomes of a subscription whose period nobody has paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dunning {
    /// Since when time is moved like this: what was due before is due then.
    pub since: Timestamp,
    /// How many days after it was due it is unpaid, and gives no access any more.
    pub unpaid_after: u16,
    /// How many days after it was due it is over.
    pub expired_after: u16,
}

/// What can happen by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// Its next period, paid for or free, has begun.
    Renewed,
    /// Its next period has begun, and nobody has paid for it.
    PastDue,
    /// Nobody has paid for so long that access stops.
    Unpaid,
    /// It is over.
    Expired,
}

impl Turn {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Renewed, Self::PastDue, Self::Unpaid, Self::Expired];

    /// What is recorded of it.
    pub const fn event(self) -> EventKind {
        match self {
            Self::Renewed => EventKind::SubscriptionRenewed,
            Self::PastDue => EventKind::SubscriptionPastDue,
            Self::Unpaid => EventKind::SubscriptionUnpaid,
            Self::Expired => EventKind::SubscriptionExpired,
        }
    }
}

/// Something that happened by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What.
    pub turn: Turn,
    /// When.
    pub at: Timestamp,
    /// The subscription from then on.
    pub after: Subscription,
}

/// What a payment did.
#[derive(Debug, Clone, PartialEq)]
pub struct Paid {
    /// The subscription from then on.
    pub after: Subscription,
    /// The beginning of the period that it has paid for, where periods are counted.
    pub period: Option<Timestamp>,
}

impl Subscription {
    /// The next thing that happens to it by itself, if that was due by `now`.
    pub fn step(&self, lifecycle: &Lifecycle, now: Timestamp) -> Option<Step> {
        let ends = self
            .ends_at
            .filter(|_| self.status != Status::Expired)
            .map(|end| (end, Turn::Expired));
        let turns = self.managed(lifecycle).and_then(|rules| self.turn(&rules));
        // What ends at the instant of its renewal does not renew.
        let ends_first = match (ends, turns) {
            (Some((end, _)), Some((due, _))) => end <= due,
            (ends, _) => ends.is_some(),
        };
        let (due, turn) = if ends_first { ends } else { turns }.filter(|(due, _)| *due <= now)?;
        if ends_first {
            let after = self.settled(now);
            let at = after.updated_at;
            return Some(Step { turn, at, after });
        }
        // No two changes share an instant.
        let tick = SignedDuration::from_micros(1);
        let after_last = self.updated_at.saturating_add(tick).unwrap_or(due);
        let at = due.max(after_last);
        let after = self.turned(turn, due, at);
        Some(Step { turn, at, after })
    }

    /// The rules by which time moves it, if it does.
    fn managed(&self, lifecycle: &Lifecycle) -> Option<Dunning> {
        match lifecycle {
            Lifecycle::Managed(rules) if self.external_id.is_none() => Some(*rules),
            Lifecycle::Managed(_) | Lifecycle::Recorded => None,
        }
    }

    /// What comes next and when, where time moves it and unless it ends before.
    fn turn(&self, rules: &Dunning) -> Option<(Timestamp, Turn)> {
        let late_by = |days: u16| {
            let days = SignedDuration::from_hours(24 * i64::from(days));
            self.late_since?.checked_add(days).ok()
        };
        let (due, turn) = match self.status {
            Status::OnTrial | Status::Active => {
                let covered = self.prepaid > 0 || self.is_free();
                let turn = if covered {
                    Turn::Renewed
                } else {
                    Turn::PastDue
                };
                (self.renews_at?, turn)
            }
            Status::PastDue if rules.unpaid_after < rules.expired_after => {
                (late_by(rules.unpaid_after)?, Turn::Unpaid)
            }
            Status::PastDue | Status::Unpaid => (late_by(rules.expired_after)?, Turn::Expired),
            Status::Pending | Status::Paused | Status::Cancelled | Status::Expired => return None,
        };
        Some((due.max(rules.since), turn))
    }

    fn is_free(&self) -> bool {
        self.price().is_some_and(|price| price.minor_units() == 0)
    }

    /// It after a turn.
    fn turned(&self, turn: Turn, due: Timestamp, at: Timestamp) -> Self {
        let mut next = self.clone();
        next.updated_at = at;
        match turn {
            Turn::Renewed => {
                next.status = Status::Active;
                // What was paid for is used up period by period; what is free need not be caught up with.
                let passed = if self.is_free() { at } else { due };
                next.renews_at = self.billing_cycle.first_after(self.anchor, passed);
                if !self.is_free() {
                    next.prepaid = self.prepaid.saturating_sub(1);
                }
            }
            Turn::PastDue => next.status = Status::PastDue,
            Turn::Unpaid => next.status = Status::Unpaid,
            Turn::Expired => {
                next.status = Status::Expired;
                next.ends_at = Some(at.max(self.starts_at));
            }
        }
        next.note_lateness(at);
        next
    }

    /// Keeps since when it is late, as long as it is.
    pub(super) fn note_lateness(&mut self, now: Timestamp) {
        self.late_since = match self.status {
            Status::PastDue | Status::Unpaid => Some(self.late_since.unwrap_or(now)),
            Status::Pending
            | Status::OnTrial
            | Status::Active
            | Status::Paused
            | Status::Cancelled
            | Status::Expired => None,
        };
    }

    /// What a payment of so much, completed at `now`, does to it, if anything. Everything that was due before has
    /// happened. What a provider runs waits for the provider's word.
    pub fn pay(&self, amount: Money, lifecycle: &Lifecycle, now: Timestamp) -> Option<Paid> {
        if self.external_id.is_some() {
            return None;
        }
        match lifecycle {
            Lifecycle::Recorded => self.revived(now).map(|after| Paid {
                after,
                period: None,
            }),
            Lifecycle::Managed(_) => self.pay_period(amount, now),
        }
    }

    /// It goes on, if it waited for a payment.
    fn revived(&self, now: Timestamp) -> Option<Self> {
        match self.status_at(now) {
            Status::PastDue | Status::Unpaid => Some(Self {
                status: Status::Active,
                late_since: None,
                updated_at: now,
                ..self.clone()
            }),
            Status::Pending
            | Status::OnTrial
            | Status::Active
            | Status::Paused
            | Status::Cancelled
            | Status::Expired => None,
        }
    }

    /// Pays the earliest period that is not paid for, each one once; too little pays for nothing.
    fn pay_period(&self, amount: Money, now: Timestamp) -> Option<Paid> {
        let enough = amount.currency() == self.terms.price.currency()
            && self
                .price()
                .is_none_or(|price| amount.minor_units() >= price.minor_units());
        if !enough {
            return None;
        }
        let mut after = self.clone();
        let status = self.status_at(now);
        // What is tried and then bought once has no next period to pay for.
        let bought = status == Status::OnTrial && self.renews_at.is_none();
        let period = match status {
            // The period that has begun and is not paid for.
            Status::Pending | Status::PastDue | Status::Unpaid | Status::OnTrial
                if bought || status != Status::OnTrial =>
            {
                after.status = Status::Active;
                after.renews_at = self.next_renewal(now);
                after.note_lateness(now);
                after.updated_at = now;
                // Who says by hand that a payment is late does not say for which period.
                let begun = self.renews_at.filter(|renewal| *renewal <= now);
                match status {
                    Status::Pending | Status::OnTrial => self.starts_at,
                    _ => begun.or(self.late_since).unwrap_or(self.starts_at),
                }
            }
            // One that is still to come: nothing of it shows until then.
            Status::OnTrial | Status::Active | Status::Paused if !self.is_free() => {
                after.prepaid = self.prepaid.checked_add(1)?;
                self.renewal_after(self.prepaid)?
            }
            Status::Pending
            | Status::PastDue
            | Status::Unpaid
            | Status::OnTrial
            | Status::Active
            | Status::Paused
            | Status::Cancelled
            | Status::Expired => return None,
        };
        Some(Paid {
            after,
            period: Some(period),
        })
    }

    /// The renewal that follows so many others.
    pub(super) fn renewal_after(&self, others: u32) -> Option<Timestamp> {
        (0..others).try_fold(self.renews_at?, |renewal, _| {
            self.billing_cycle.first_after(self.anchor, renewal)
        })
    }

    /// It as somebody has just changed it, where time moves it: who makes it go on says that the period which has begun
    /// is granted, and it renews when that is over.
    #[must_use]
    pub fn granted(mut self, before: &Self, lifecycle: &Lifecycle) -> Self {
        let now = self.updated_at;
        let goes_on = match self.status {
            Status::Active | Status::OnTrial => before.status != self.status,
            Status::Pending
            | Status::Paused
            | Status::PastDue
            | Status::Unpaid
            | Status::Cancelled
            | Status::Expired => false,
        };
        let passed = self.renews_at.is_some_and(|renewal| renewal <= now);
        // Whoever is late and is given what costs nothing owes nothing any more.
        let still_late = self.late_since.is_some() && before.late_since.is_some();
        let owes_nothing = still_late && self.is_free() && !before.is_free();
        if self.managed(lifecycle).is_some() && (goes_on && passed || owes_nothing) {
            if owes_nothing {
                self.status = Status::Active;
                self.late_since = None;
            }
            self.renews_at = self.next_renewal(now);
        }
        self
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
