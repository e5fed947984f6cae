//! Changes that users can make to their own subscriptions: cancel, and undo a cancellation.
//!
//! A user's request must not give access, charge credit, start a period or end a pause. Cancelling
//! follows the rules for servers. Undoing restores the status and the end from before the
//! cancellation, so that cancelling and undoing together change nothing.

use jiff::Timestamp;

use super::{
    AppliedChange, LifecycleKind, Subscription, SubscriptionChanges, SubscriptionStatus,
    SubscriptionUpdateError, billing::BillingChange,
};

/// What a cancellation replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancellation {
    /// The status before.
    pub status: SubscriptionStatus,
    /// `ends_at` before.
    pub ends_at: Option<Timestamp>,
    /// `ends_at` that the cancellation set. If it has changed since, the cancellation cannot be undone.
    pub cancelled_until: Timestamp,
}

impl Cancellation {
    /// Returns what the change from `before` to `after` replaced, if it is a cancellation whose end
    /// follows from the paid time. An end that a server has set is not for users to remove.
    pub fn from_change(
        before: &Subscription,
        after: &Subscription,
        changes: &SubscriptionChanges,
    ) -> Option<Self> {
        let end_stays = changes.ends_at.is_none_or(|end| end == before.ends_at);
        let is_cancellation = before.status != SubscriptionStatus::Cancelled
            && after.status == SubscriptionStatus::Cancelled;
        Some(Self {
            status: before.status,
            ends_at: before.ends_at,
            cancelled_until: after.ends_at.filter(|_| is_cancellation && end_stays)?,
        })
    }

    /// Returns whether undoing it restores a status that gives access as the cancellation did.
    fn can_be_undone(&self) -> bool {
        match self.status {
            SubscriptionStatus::Active | SubscriptionStatus::OnTrial => true,
            SubscriptionStatus::Pending
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => false,
        }
    }
}

/// Why a user's request was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelfServiceError {
    /// Users cannot change the status this way.
    NotAllowed {
        /// The current status.
        from: SubscriptionStatus,
        /// The requested status.
        to: SubscriptionStatus,
    },
    /// A lifetime subscription does not renew, so it cannot be canceled.
    LifetimeCancelled,
    /// A payment provider charges the subscription and does not receive the change.
    ProviderManaged,
    /// It is unknown or not safe to restore what the cancellation replaced.
    CannotUndo,
}

impl SubscriptionChanges {
    /// Returns the names of the fields that differ from the subscription as shown at `now` and that
    /// users cannot change: all but a status of canceled or active.
    pub fn refused_to_users(&self, current: &Subscription, now: Timestamp) -> Vec<&'static str> {
        let Self {
            offer,
            external_id,
            billing_cycle,
            price,
            quantity,
            status,
            is_active,
            starts_at,
            renews_at,
            ends_at,
            free_until,
            had_trial: _,
            metadata,
        } = self.differing_from(&current.as_of(now), now);
        let other_status = status.filter(|status| {
            !matches!(
                status,
                SubscriptionStatus::Cancelled | SubscriptionStatus::Active
            )
        });
        // A date that is sent again differs only in a request that reopens an expired subscription.
        let renews_at = renews_at.filter(|renewal| *renewal != current.renews_at);
        let fields = [
            ("subscription_plan_id", offer.is_some()),
            ("external_subscription_id", external_id.is_some()),
            ("billing_cycle", billing_cycle.is_some()),
            ("price", price.is_some()),
            ("quantity", quantity.is_some()),
            ("status", other_status.is_some()),
            ("is_active", is_active.is_some()),
            ("starts_at", starts_at.is_some()),
            ("renews_at", renews_at.is_some()),
            ("ends_at", ends_at.is_some()),
            ("free_until", free_until.is_some()),
            ("metadata", metadata.is_some()),
        ];
        let refused = fields.into_iter().filter(|(_, differs)| *differs);
        refused.map(|(name, _)| name).collect()
    }
}

impl Subscription {
    /// Changes the status at `now` as a user may. `last` is the last cancellation, and
    /// `provider_follows` is whether the payment provider that charges the subscription receives the
    /// change. Returns `None` if nothing changes.
    pub fn update_by_user(
        &self,
        to: Option<SubscriptionStatus>,
        last: Option<&Cancellation>,
        provider_follows: bool,
        now: Timestamp,
    ) -> Result<Option<AppliedChange>, SelfServiceError> {
        let Some(to) = to.filter(|to| *to != self.status_at(now)) else {
            return Ok(None);
        };
        self.change(now, |current, now| match to {
            _ if current.lifecycle_kind() == LifecycleKind::Provider && !provider_follows => {
                Err(SelfServiceError::ProviderManaged)
            }
            SubscriptionStatus::Cancelled => current.cancel_by_user(now),
            SubscriptionStatus::Active => current.undo_cancellation(last, now),
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Expired => {
                let from = current.status;
                Err(SelfServiceError::NotAllowed { from, to })
            }
        })
    }

    /// Cancels. A paused subscription stays paused: canceling it would give access to the rest of the
    /// paid time.
    fn cancel_by_user(&self, now: Timestamp) -> Result<Option<BillingChange>, SelfServiceError> {
        let (from, to) = (self.status_at(now), SubscriptionStatus::Cancelled);
        if from == SubscriptionStatus::Paused {
            return Err(SelfServiceError::NotAllowed { from, to });
        }
        self.set_status_for_user(to, now)
    }

    /// Undoes the last cancellation.
    fn undo_cancellation(
        &self,
        last: Option<&Cancellation>,
        now: Timestamp,
    ) -> Result<Option<BillingChange>, SelfServiceError> {
        let (from, to) = (self.status_at(now), SubscriptionStatus::Active);
        if from != SubscriptionStatus::Cancelled {
            return Err(SelfServiceError::NotAllowed { from, to });
        }
        let is_last = |last: &&Cancellation| Some(last.cancelled_until) == self.ends_at;
        let last = last.filter(is_last).filter(|last| last.can_be_undone());
        let last = last.ok_or(SelfServiceError::CannotUndo)?;
        // In managed billing, the dates decide whether the trial continues.
        let to = self.dunning().map_or(last.status, |_| to);
        let mut change = self.set_status_for_user(to, now)?;
        if let Some(change) = &mut change {
            change.after.ends_at = last.ends_at;
        }
        Ok(change)
    }

    fn set_status_for_user(
        &self,
        to: SubscriptionStatus,
        now: Timestamp,
    ) -> Result<Option<BillingChange>, SelfServiceError> {
        let changes = SubscriptionChanges {
            status: Some(to),
            ..SubscriptionChanges::default()
        };
        self.apply_changes(&changes, true, now)
            .map_err(|error| match error {
                SubscriptionUpdateError::LifetimeCancelled => SelfServiceError::LifetimeCancelled,
                SubscriptionUpdateError::InvalidFields(_)
                | SubscriptionUpdateError::TransitionNotAllowed { .. }
                | SubscriptionUpdateError::PaymentRequired { .. }
                | SubscriptionUpdateError::FreeTimeNotPossible(_) => {
                    let from = self.status_at(now);
                    SelfServiceError::NotAllowed { from, to }
                }
            })
    }
}

impl SubscriptionStatus {
    /// Returns the statuses that a user can change this one to.
    pub const fn allowed_to_users(self) -> &'static [Self] {
        match self {
            Self::Pending | Self::OnTrial | Self::Active | Self::PastDue | Self::Unpaid => {
                &[Self::Cancelled]
            }
            Self::Cancelled => &[Self::Active],
            Self::Paused | Self::Expired => &[],
        }
    }
}

#[cfg(test)]
mod tests;
