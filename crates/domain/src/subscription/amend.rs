//! Changing a subscription as somebody says.
//!
//! A caller may send back all that it was shown, with one thing changed. So what equals what is shown is no instruction:
//! each field is held against the subscription as it is shown at that instant, and only what differs counts.

use jiff::Timestamp;

use super::{ExternalId, Offer, Status, Subscription, Wrong, start::not_over};
use crate::{BillingCycle, Invalid, Rule};

/// What was sent. `None` was left out; an inner `None` is null.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Another plan, if it is another.
    pub offer: Option<Offer>,
    /// What the payment provider calls it.
    pub external_id: Option<Option<ExternalId>>,
    /// How often it is paid for.
    pub billing_cycle: Option<BillingCycle>,
    /// Where it stands.
    pub status: Option<Status>,
    /// Whether it gives access.
    pub is_active: Option<bool>,
    /// When it begins.
    pub starts_at: Option<Timestamp>,
    /// When it is paid for next.
    pub renews_at: Option<Option<Timestamp>>,
    /// When it ends.
    pub ends_at: Option<Option<Timestamp>>,
}

/// Why a change was refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// Fields are not right.
    Fields(Vec<Wrong>),
    /// It cannot become that.
    Transition {
        /// Where it stands.
        from: Status,
        /// Where it should have gone.
        to: Status,
    },
}

impl Subscription {
    /// It with these changes from `now` on; `None` if they change nothing.
    pub fn amend(&self, sent: &Changes, now: Timestamp) -> Result<Option<Self>, Refused> {
        let before = self.settled(now);
        let mut next = before.clone();
        let mut wrong = Vec::new();

        if let Some(external_id) = &sent.external_id {
            next.external_id.clone_from(external_id);
        }
        // Its cycles are counted from where they were: what is paid until then is paid until then.
        next.starts_at = sent.starts_at.unwrap_or(before.starts_at);
        next.take(&before, sent, &mut wrong);
        next.renew(&before, sent, now);
        if let Some(to) = sent.status.filter(|to| *to != before.status) {
            next.go(&before, to, sent, now, &mut wrong)?;
        } else if let Some(end) = sent.ends_at.filter(|end| *end != before.ends_at) {
            wrong.extend(before.status.refuses_end(end, now));
            next.ends_at = end;
        }
        next.status = next.status_at(now);
        next.note_lateness(now);
        wrong.extend(next.wrong_dates());
        match sent
            .is_active
            .filter(|sent| *sent != before.has_access(now))
        {
            Some(false) => next.suspended |= next.has_access(now),
            Some(true) => {
                next.suspended = false;
                if !next.has_access(now) {
                    wrong.push(next.gives_none(now));
                }
            }
            None => {}
        }

        if !wrong.is_empty() {
            return Err(Refused::Fields(wrong));
        }
        let changed = next != before;
        next.updated_at = now;
        Ok(changed.then_some(next))
    }

    /// Another plan: its price, and its cycle unless another is sent.
    fn take(&mut self, before: &Self, sent: &Changes, wrong: &mut Vec<Wrong>) {
        let other = sent.offer.filter(|offer| offer.plan != before.terms.plan);
        if let Some(offer) = &other {
            wrong.extend(offer.refusal());
            self.terms = offer.into();
            self.billing_cycle = offer.billing_cycle;
        }
        let cycle = sent
            .billing_cycle
            .filter(|cycle| *cycle != before.billing_cycle);
        self.billing_cycle = cycle.unwrap_or(self.billing_cycle);
    }

    /// When it is paid for next: as sent, else as it was. What is paid once has no such instant, and what was paid once
    /// and is not any more gets one.
    fn renew(&mut self, before: &Self, sent: &Changes, now: Timestamp) {
        let lifetime = |cycle| cycle == BillingCycle::Lifetime;
        if let Some(renewal) = sent
            .renews_at
            .filter(|renewal| *renewal != before.renews_at)
        {
            self.renews_at = renewal;
            self.anchor = renewal.unwrap_or(self.anchor);
        } else if lifetime(self.billing_cycle) {
            self.renews_at = None;
        } else if lifetime(before.billing_cycle) {
            self.renews_at = self.next_renewal(now);
        }
    }

    /// The first renewal that is still to come, once it has begun.
    pub(super) fn next_renewal(&self, now: Timestamp) -> Option<Timestamp> {
        let begun = now.max(self.starts_at);
        self.billing_cycle.first_after(self.anchor, begun)
    }

    /// To another status, and what goes with it.
    fn go(
        &mut self,
        before: &Self,
        to: Status,
        sent: &Changes,
        now: Timestamp,
        wrong: &mut Vec<Wrong>,
    ) -> Result<(), Refused> {
        let from = before.status;
        let ahead = |date: Option<Option<Timestamp>>| date.flatten().is_some_and(|date| date > now);
        let reopens_in_time =
            from != Status::Expired || ahead(sent.renews_at) || ahead(sent.ends_at);
        if !from.may_become().contains(&to) || !reopens_in_time {
            return Err(Refused::Transition { from, to });
        }
        self.status = to;
        let end = sent.ends_at.filter(|end| *end != before.ends_at);
        let over = now.max(self.starts_at);
        self.ends_at = match to {
            Status::Cancelled if !before.has_access(now) => {
                // Cancelling must not give what was not there.
                if end.flatten().is_some_and(|end| end > over) {
                    let message =
                        "it gives no access now, and cancelling gives none; leave ends_at out";
                    let invalid = Invalid::new(Rule::InconsistentStatus, message);
                    wrong.push(("ends_at", invalid));
                }
                Some(end.flatten().unwrap_or(over))
            }
            Status::Cancelled => {
                // Periods that are paid ahead are given.
                let paid_until = self.renewal_after(self.prepaid);
                let paid_until = paid_until.filter(|renewal| *renewal > now);
                let kept = before.ends_at.filter(|_| end.is_none());
                Some(end.flatten().or(kept).or(paid_until).unwrap_or(now))
            }
            Status::Expired => {
                if end.flatten().is_some_and(|end| end > now) {
                    wrong.push(not_over());
                }
                Some(end.flatten().unwrap_or(over))
            }
            Status::Active | Status::OnTrial
                if matches!(from, Status::Cancelled | Status::Expired) =>
            {
                // It goes on: its old end is not its end any more, nor an old renewal its next one.
                let same = sent.renews_at.is_none_or(|sent| sent == before.renews_at);
                let passed = self.renews_at.is_some_and(|renewal| renewal <= now);
                if from == Status::Expired && same && passed {
                    self.renews_at = self.next_renewal(now);
                }
                end.flatten()
            }
            Status::Pending
            | Status::OnTrial
            | Status::Active
            | Status::Paused
            | Status::PastDue
            | Status::Unpaid => end.unwrap_or(before.ends_at),
        };
        Ok(())
    }
}

impl Status {
    /// What is wrong with another end, while it stays where it is.
    fn refuses_end(self, end: Option<Timestamp>, now: Timestamp) -> Option<Wrong> {
        let needed = || {
            let message = format!("what is {self} has an end");
            ("ends_at", Invalid::new(Rule::InconsistentStatus, message))
        };
        match (self, end) {
            (Self::Cancelled | Self::Expired, None) => Some(needed()),
            (Self::Expired, Some(end)) if end > now => Some(not_over()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
