//! Updating a subscription.
//!
//! Clients may send back everything that GET returned with one field changed. So a field equal to
//! its current value changes nothing: each field is compared with the subscription as shown at that
//! instant. Then everything that is due is applied, each transition at its own instant, and then the
//! differences.

use jiff::Timestamp;

use super::{
    DueTransition, FieldError, LedgerEntry, PaymentPosting, Subscription, SubscriptionChanges,
    SubscriptionStatus,
    billing::{Account, BillingChange, FreeTimeError, Shortage, TICK, Terms},
    create::future_end_error,
};
use crate::{MAX_MINOR_UNITS, Money, Rule, ValidationError, card_number::reject_card_number};

/// Why an update was rejected.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionUpdateError {
    /// Validation errors by field.
    InvalidFields(Vec<FieldError>),
    /// The status cannot change from `from` to `to`.
    TransitionNotAllowed {
        /// The current status.
        from: SubscriptionStatus,
        /// The requested status.
        to: SubscriptionStatus,
    },
    /// A lifetime subscription does not renew, so it cannot be canceled.
    LifetimeCancelled,
    /// The credit does not pay for the change.
    PaymentRequired {
        /// Minor units to pay first.
        amount_due: i64,
        /// Until when a payment of this amount suffices.
        valid_until: Option<Timestamp>,
    },
    /// Free time cannot be given.
    FreeTimeNotPossible(FreeTimeError),
}

impl From<Shortage> for SubscriptionUpdateError {
    fn from(shortage: Shortage) -> Self {
        Self::PaymentRequired {
            amount_due: shortage.missing,
            valid_until: None,
        }
    }
}

/// A change of a subscription, with the transitions that were due before it.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedChange {
    /// The transitions due before the change, in order.
    pub due: Vec<DueTransition>,
    /// The subscription after the change. Its `updated_at` is the time of the change.
    pub after: Subscription,
    /// The entries of the change itself.
    pub own_entries: Vec<LedgerEntry>,
}

impl AppliedChange {
    /// Returns all entries to append to the ledger, in order.
    pub fn entries(&self) -> impl Iterator<Item = &LedgerEntry> {
        let due = self.due.iter().flat_map(|step| &step.entries);
        due.chain(&self.own_entries)
    }

    /// Returns from where to where the change moved the end of the paid time, if it did. A lifetime
    /// has no end.
    pub fn paid_time(&self, original: &Subscription) -> Option<(Timestamp, Option<Timestamp>)> {
        let (before, after) = (self.before(original), &self.after);
        let stays_credit = matches!(
            after.status,
            SubscriptionStatus::Expired
                | SubscriptionStatus::Cancelled
                | SubscriptionStatus::Paused
        );
        if stays_credit && before.late_since.is_none() {
            return None;
        }
        let last_period = |sub: &Subscription| sub.free_time.or(sub.period);
        let period = last_period(after)?;
        let start = before.paid_until().unwrap_or(period.starts_at);
        if period.ends_at.is_none() {
            return (last_period(before) != Some(period)).then_some((start, None));
        }
        // After a late payment for a period that has ended, the next one may be open again.
        let is_open = after.late_since.is_some();
        let end = if is_open {
            period.ends_at
        } else {
            after.paid_until()
        };
        end.filter(|end| *end > start).map(|end| (start, Some(end)))
    }

    /// Returns the subscription before the change and after all due transitions.
    pub fn before<'a>(&'a self, original: &'a Subscription) -> &'a Subscription {
        self.due.last().map_or(original, |step| &step.after)
    }
}

impl Subscription {
    /// Applies `changes` at `now`. Returns `None` if nothing changes.
    pub fn update(
        &self,
        changes: &SubscriptionChanges,
        now: Timestamp,
    ) -> Result<Option<AppliedChange>, SubscriptionUpdateError> {
        match self.try_update(changes, changes.status.is_some(), now) {
            // The first shortage is not the whole one: paying it may start a period at the old price.
            Err(SubscriptionUpdateError::PaymentRequired { .. }) => {
                let preview = self.preview(changes, now)?;
                Err(SubscriptionUpdateError::PaymentRequired {
                    amount_due: preview.amount_due,
                    valid_until: preview.valid_until,
                })
            }
            result => result,
        }
    }

    /// Applies `changes` at `now`. A shortage is what the change itself lacks.
    pub(super) fn try_update(
        &self,
        changes: &SubscriptionChanges,
        status_sent: bool,
        now: Timestamp,
    ) -> Result<Option<AppliedChange>, SubscriptionUpdateError> {
        let differing = changes.differing_from(&self.as_of(now), now);
        if differing == SubscriptionChanges::default() {
            return Ok(None);
        }
        let external_id = differing.external_id.iter().flatten().next();
        if let Some(error) = reject_card_number("external_subscription_id", external_id) {
            return Err(SubscriptionUpdateError::InvalidFields(vec![error]));
        }
        self.change(now, |current, now| {
            current.apply_changes(&differing, status_sent, now)
        })
    }

    /// Posts a payment, a refund or a dispute at `now`. While the service does not manage the subscription, that
    /// changes only the credit. Returns `None` if nothing changes.
    pub fn apply_posting(&self, posting: &PaymentPosting, now: Timestamp) -> Option<AppliedChange> {
        let applied = self.change(now, |current, now| {
            let dunning = current.dunning();
            let mut account = dunning.map_or_else(
                || Account::unmanaged(current.clone(), now),
                |dunning| Account::new(current.clone(), dunning, now),
            );
            account.post_money(posting);
            if dunning.is_some() {
                account.settle();
            }
            let change = account.finish();
            let differs =
                !change.entries.is_empty() || change.after.waived_debt != current.waived_debt;
            Ok::<_, std::convert::Infallible>(differs.then_some(change))
        });
        applied.unwrap_or_else(|never| match never {})
    }

    /// Expires the subscription at `now`, because its user's account is deleted. Returns `None` if it
    /// has already expired.
    pub fn expire(&self, now: Timestamp) -> Option<AppliedChange> {
        let applied = self.change(now, |current, now| {
            let expired = (current.status_at(now) != SubscriptionStatus::Expired).then(|| Self {
                status: SubscriptionStatus::Expired,
                ends_at: Some(now.max(current.starts_at)),
                late_since: None,
                updated_at: now,
                ..current.clone()
            });
            let change = expired.map(|after| BillingChange {
                after,
                entries: Vec::new(),
            });
            Ok::<_, std::convert::Infallible>(change)
        });
        applied.unwrap_or_else(|never| match never {})
    }

    /// Applies the due transitions by `now`, then `change`. Every change of a subscription takes this way.
    pub(super) fn change<E>(
        &self,
        now: Timestamp,
        change: impl FnOnce(&Self, Timestamp) -> Result<Option<BillingChange>, E>,
    ) -> Result<Option<AppliedChange>, E> {
        let (due, now) = self.due_before_change(now);
        let current = due.last().map_or(self, |step| &step.after);
        let Some(BillingChange { after, entries }) = change(current, now)? else {
            return Ok(None);
        };
        Ok(Some(AppliedChange {
            due,
            after,
            own_entries: entries,
        }))
    }

    /// Returns the due transitions before a change that is requested at `now`, and the time of the change. It
    /// comes after the transitions and, in a ledger, after every earlier change.
    fn due_before_change(&self, now: Timestamp) -> (Vec<DueTransition>, Timestamp) {
        let due = self.due_transitions(now);
        let current = due.last().map_or(self, |step| &step.after);
        let after_last = current.updated_at.saturating_add(TICK).unwrap_or(now);
        let is_ordered =
            !due.is_empty() || current.dunning().is_some() || current.managed_since.is_some();
        if is_ordered && after_last > now {
            // Something may be due at the later time.
            return self.due_before_change(after_last);
        }
        (due, now)
    }

    /// Applies changes that differ from what was shown, after everything due.
    pub(super) fn apply_changes(
        &self,
        changes: &SubscriptionChanges,
        status_sent: bool,
        now: Timestamp,
    ) -> Result<Option<BillingChange>, SubscriptionUpdateError> {
        let mut current = self.clone();
        changes.copy_plain_fields(&mut current);
        let gets_provider = matches!(changes.external_id, Some(Some(_)));
        let change = match self.dunning() {
            Some(dunning) if !gets_provider => {
                let account = Account::new(current, dunning, now);
                account.update(changes, status_sent)?
            }
            _ => {
                let after = current.update_recorded(changes, status_sent, now)?;
                match after.dunning() {
                    // Without its provider, or with a price, the service manages it.
                    Some(dunning) if self.dunning().is_none() => {
                        let mut account = Account::new(after, dunning, now);
                        account.start_managing();
                        account.finish()
                    }
                    _ => BillingChange {
                        after,
                        entries: Vec::new(),
                    },
                }
            }
        };
        let unchanged = Self {
            updated_at: self.updated_at,
            ..change.after.clone()
        };
        Ok((unchanged != *self || !change.entries.is_empty()).then_some(change))
    }

    /// Returns the terms after `changes`, or all errors.
    pub(super) fn changed_terms(
        &self,
        changes: &SubscriptionChanges,
    ) -> Result<Terms, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut terms = self.terms();
        if let Some(offer) = changes.offer.filter(|offer| offer.plan != self.plan.id) {
            errors.extend(offer.validate());
            terms.plan = (&offer).into();
            terms.billing_cycle = offer.billing_cycle;
            terms.custom_price = None;
        }
        if let Some(cycle) = changes.billing_cycle {
            terms.billing_cycle = cycle;
            // A price is for one cycle, so it does not apply to another one.
            terms.custom_price = None;
        }
        match (&changes.price, changes.offer) {
            (Some(Some(price)), _) => match Money::from_decimal(price, terms.plan.price.currency())
            {
                Ok(price) => terms.custom_price = Some(price),
                Err(error) => errors.push(("price", error)),
            },
            (Some(None), Some(offer)) => {
                terms.plan = (&offer).into();
                terms.custom_price = None;
            }
            _ => {}
        }
        terms.quantity = changes.quantity.unwrap_or(terms.quantity);
        errors.extend(terms.validate_amount());
        if errors.is_empty() {
            Ok(terms)
        } else {
            Err(errors)
        }
    }

    /// Suspends or lifts the suspension. A status in the same request decides about access; otherwise
    /// `true` requires a status that gives access.
    pub(super) fn change_suspension(
        &mut self,
        (is_active, status_sent): (Option<bool>, bool),
        now: Timestamp,
    ) -> Option<FieldError> {
        match is_active {
            Some(false) => self.suspended |= self.has_access(now),
            Some(true) => {
                self.suspended = false;
                if !status_sent && !self.status_at(now).gives_access() {
                    return Some(self.no_access_error(now));
                }
            }
            None => {}
        }
        None
    }
}

impl Terms {
    /// Checks that price × quantity is not above the maximum amount.
    pub(super) fn validate_amount(&self) -> Option<FieldError> {
        let price = self.price()?;
        let amount = price
            .minor_units()
            .checked_mul(i64::from(self.quantity.get()));
        if amount.is_some_and(|amount| amount <= MAX_MINOR_UNITS) {
            return None;
        }
        let max = MAX_MINOR_UNITS / price.minor_units().max(1);
        let message = format!("must be at most {max}: price × quantity is limited");
        Some(("quantity", ValidationError::new(Rule::OutOfRange, message)))
    }
}

impl SubscriptionStatus {
    /// Checks a new `ends_at` when the status stays the same.
    pub(super) fn validate_end(self, end: Option<Timestamp>, now: Timestamp) -> Option<FieldError> {
        let required = || {
            let message = format!("cannot be null while status is {self}");
            (
                "ends_at",
                ValidationError::new(Rule::InconsistentStatus, message),
            )
        };
        match (self, end) {
            (Self::Cancelled | Self::Expired, None) => Some(required()),
            (Self::Expired, Some(end)) if end > now => Some(future_end_error()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
