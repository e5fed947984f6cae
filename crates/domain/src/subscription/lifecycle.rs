//! Transitions that become due over time.
//!
//! A tenant's [`Lifecycle`] setting decides which transitions happen. *Recorded*: the client or a
//! payment provider reports changes, and a subscription only expires at `ends_at`. *Managed*: the
//! service charges the periods of subscriptions without a payment provider (see `billing`).
//!
//! A [`DueTransition`] takes effect **at the instant it was due**, however late it is stored. So
//! processing a year in one run gives the same result as processing it day by day.

use jiff::Timestamp;

use super::{
    Subscription, SubscriptionStatus,
    billing::{BillingChange, LedgerEntry, TICK},
};
use crate::EventKind;

/// How a tenant's subscriptions change over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Clients report every change.
    Recorded,
    /// The service charges periods of subscriptions without an external id.
    Managed(Dunning),
}

/// Deadlines for unpaid periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dunning {
    /// When managed mode started; earlier due dates count from here.
    pub since: Timestamp,
    /// Days from the due date until the status becomes unpaid and access stops.
    pub unpaid_after: u16,
    /// Days from the due date until the subscription expires.
    pub expired_after: u16,
}

string_enum! {
    /// What changes a subscription over time.
    pub enum LifecycleKind: "a lifecycle" {
        /// Clients report every change.
        Recorded = "recorded",
        /// The service charges its periods.
        Managed = "managed",
        /// A payment provider charges its periods.
        Provider = "provider",
    }
}

/// The kinds of transitions that become due over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// The service starts to manage the subscription.
    Managed,
    /// A pending subscription with enough credit reached its `starts_at`.
    Started,
    /// The next period started; it is paid or free.
    Renewed,
    /// The next period started without a payment.
    PastDue,
    /// No payment within `unpaid_after` days, or before the open period ended.
    Unpaid,
    /// `ends_at` has passed, or no payment within `expired_after` days.
    Expired,
}

impl Transition {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Managed,
        Self::Started,
        Self::Renewed,
        Self::PastDue,
        Self::Unpaid,
        Self::Expired,
    ];

    /// Returns the kind of event to record.
    pub const fn event_kind(self) -> EventKind {
        match self {
            Self::Managed | Self::Started => EventKind::SubscriptionUpdated,
            Self::Renewed => EventKind::SubscriptionRenewed,
            Self::PastDue => EventKind::SubscriptionPastDue,
            Self::Unpaid => EventKind::SubscriptionUnpaid,
            Self::Expired => EventKind::SubscriptionExpired,
        }
    }
}

/// A transition that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct DueTransition {
    /// The kind of transition.
    pub transition: Transition,
    /// When it takes effect.
    pub at: Timestamp,
    /// The subscription afterwards.
    pub after: Subscription,
    /// The entries to append to the ledger.
    pub entries: Vec<LedgerEntry>,
}

impl Subscription {
    /// Returns what changes this subscription over time.
    pub fn lifecycle_kind(&self) -> LifecycleKind {
        match self.lifecycle {
            _ if self.external_id.is_some() => LifecycleKind::Provider,
            // Without a price, no period can be charged.
            Lifecycle::Managed(_) if self.price().is_some() => LifecycleKind::Managed,
            Lifecycle::Managed(_) | Lifecycle::Recorded => LifecycleKind::Recorded,
        }
    }

    /// Returns the deadlines if the service manages this subscription.
    pub(super) fn dunning(&self) -> Option<Dunning> {
        match (self.lifecycle_kind(), self.lifecycle) {
            (LifecycleKind::Managed, Lifecycle::Managed(dunning)) => Some(dunning),
            _ => None,
        }
    }

    /// Returns the next transition if it was due by `now`.
    pub fn next_transition(&self, now: Timestamp) -> Option<DueTransition> {
        let end = self
            .ends_at
            .filter(|_| self.status != SubscriptionStatus::Expired)
            .map(|end| (end, Transition::Expired));
        let managed = self.dunning().and_then(|dunning| {
            let (due, transition) = self.next_managed_transition(&dunning)?;
            Some((due, transition, dunning))
        });
        // A subscription that ends at its renewal date does not renew.
        let ends_first = match (end, &managed) {
            (Some((end, _)), Some((due, ..))) => end <= *due,
            (end, _) => end.is_some(),
        };
        if ends_first {
            let (_, transition) = end.filter(|(end, _)| *end <= now)?;
            let after = self.as_of(now);
            return Some(DueTransition {
                transition,
                at: after.updated_at,
                after,
                entries: Vec::new(),
            });
        }
        let (due, transition, dunning) = managed.filter(|(due, ..)| *due <= now)?;
        // Each change has its own timestamp, so events have a strict order.
        let after_last = self.updated_at.saturating_add(TICK).unwrap_or(due);
        let at = due.max(after_last);
        let BillingChange { after, entries } =
            self.after_managed_transition(&dunning, transition, due, at);
        Some(DueTransition {
            transition,
            at,
            after,
            entries,
        })
    }

    /// Returns all transitions due by `now`, in order.
    pub fn due_transitions(&self, now: Timestamp) -> Vec<DueTransition> {
        let mut steps: Vec<DueTransition> = Vec::new();
        while let Some(step) = steps
            .last()
            .map_or(self, |step| &step.after)
            .next_transition(now)
        {
            steps.push(step);
        }
        steps
    }

    /// Returns the subscription as active if it was waiting for a payment. For recorded
    /// subscriptions, whose payments have no ledger.
    pub fn reactivate(&self, now: Timestamp) -> Option<Self> {
        if self.lifecycle_kind() != LifecycleKind::Recorded {
            return None;
        }
        match self.status_at(now) {
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => Some(Self {
                status: SubscriptionStatus::Active,
                late_since: None,
                updated_at: now,
                ..self.clone()
            }),
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => None,
        }
    }

    /// Sets `late_since` when a recorded status becomes past due or unpaid, and clears it otherwise.
    pub(super) fn sync_late_since(&mut self, now: Timestamp) {
        self.late_since = match self.status {
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                Some(self.late_since.unwrap_or(now))
            }
            // In managed billing, lateness goes on while it is paused.
            SubscriptionStatus::Paused if self.managed_since.is_some() => self.late_since,
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => None,
        };
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
