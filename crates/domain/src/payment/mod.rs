//! Payments for subscriptions.
//!
//! A payment records money that moved elsewhere, at a bank or a payment provider. Until it settles,
//! every field can be corrected. Afterwards the amount, the currency and the subscription are frozen,
//! and the status changes only by refunds and disputes.

use jiff::Timestamp;

use crate::{
    Currency, Decimal, ExternalId, FieldError, Metadata, Money, PaymentId, Rule, SingleLine,
    SubscriptionId, ValidationError, card_number::reject_card_number,
};

mod follow_payment;
mod payment_status;
mod posting;

pub use follow_payment::FollowedPayment;
pub use payment_status::PaymentStatus;

/// The fields of a payment to create; `None` selects the default.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPayment {
    /// The subscription it pays for.
    pub subscription: SubscriptionId,
    /// The amount paid.
    pub amount: Money,
    /// The payment provider's identifier.
    pub external_id: Option<ExternalId>,
    /// Default: pending.
    pub status: Option<PaymentStatus>,
    /// The refunded part. Default: as the status implies.
    pub refunded: Option<Money>,
    /// When the payer paid. Default: when the payment settled.
    pub paid_at: Option<Timestamp>,
    /// Why it failed.
    pub failure_reason: Option<FailureReason>,
    /// Pairs to attach.
    pub metadata: Metadata,
}

/// Why a payment failed, as the payment provider or the client says.
pub type FailureReason = SingleLine<255>;

impl NewPayment {
    /// Creates a payment of `amount` with defaults for all other fields.
    pub fn new(subscription: SubscriptionId, amount: Money) -> Self {
        Self {
            subscription,
            amount,
            external_id: None,
            status: None,
            refunded: None,
            paid_at: None,
            failure_reason: None,
            metadata: Metadata::default(),
        }
    }
}

/// A payment as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Payment {
    /// The identifier.
    pub id: PaymentId,
    /// The subscription it pays for.
    pub subscription: SubscriptionId,
    /// The amount paid.
    pub amount: Money,
    /// The payment provider's identifier.
    pub external_id: Option<ExternalId>,
    /// The status.
    pub status: PaymentStatus,
    /// The refunded amount; `None` if a part of unknown size was refunded.
    pub refunded: Option<Money>,
    /// When the payer paid; `None` until it settles.
    pub paid_at: Option<Timestamp>,
    /// Why it failed.
    pub failure_reason: Option<FailureReason>,
    /// From where to where it moved the end of the paid time when it completed. A lifetime has no
    /// end. `None` if it stayed credit or has no ledger entry. Kept after refunds.
    pub period: Option<(Timestamp, Option<Timestamp>)>,
    /// The sum of its ledger entries, in minor units; `None` if it has none.
    pub ledger_amount: Option<i64>,
    /// The minor units that its open dispute took from the credit.
    pub disputed: i64,
    /// The minor units of its refunds that the credit lacked, and that were waived.
    pub waived: i64,
    /// Pairs that the client attached.
    pub metadata: Metadata,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Requested changes: `None` keeps a field, an inner `None` clears it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PaymentChanges {
    /// The subscription it pays for.
    pub subscription: Option<SubscriptionId>,
    /// The amount, in the payment's currency after the update.
    pub amount: Option<Decimal>,
    /// The currency.
    pub currency: Option<Currency>,
    /// The payment provider's identifier.
    pub external_id: Option<Option<ExternalId>>,
    /// The status.
    pub status: Option<PaymentStatus>,
    /// The refunded amount.
    pub refunded: Option<Option<Decimal>>,
    /// When the payer paid.
    pub paid_at: Option<Option<Timestamp>>,
    /// Why it failed.
    pub failure_reason: Option<Option<FailureReason>>,
    /// All pairs after the change.
    pub metadata: Option<Metadata>,
}

/// Why an update was rejected.
#[derive(Debug, Clone, PartialEq)]
pub enum PaymentUpdateError {
    /// Validation errors by field.
    InvalidFields(Vec<FieldError>),
    /// The status cannot change from `from` to `to`.
    TransitionNotAllowed {
        /// The current status.
        from: PaymentStatus,
        /// The requested status.
        to: PaymentStatus,
    },
    /// The payment is settled, so these fields cannot change.
    AlreadySettled(Vec<&'static str>),
}

impl Payment {
    /// Creates a payment at `now`, or returns all validation errors.
    pub fn create(new: NewPayment, id: PaymentId, now: Timestamp) -> Result<Self, Vec<FieldError>> {
        let status = new.status.unwrap_or(PaymentStatus::Pending);
        let refunded = refunded_amount(status, new.amount, new.refunded, None);
        let mut errors: Vec<FieldError> = refunded.as_ref().err().cloned().into_iter().collect();
        errors.extend(validate_paid_at(new.paid_at, now));
        errors.extend(reject_card_number(
            "external_payment_id",
            new.external_id.as_ref(),
        ));
        let (Ok(refunded), []) = (refunded, errors.as_slice()) else {
            return Err(errors);
        };
        Ok(Self {
            id,
            subscription: new.subscription,
            amount: new.amount,
            external_id: new.external_id,
            status,
            refunded,
            paid_at: new.paid_at.or_else(|| status.is_settled().then_some(now)),
            failure_reason: new.failure_reason,
            period: None,
            ledger_amount: None,
            disputed: 0,
            waived: 0,
            metadata: new.metadata,
            created_at: now,
            updated_at: now,
        })
    }

    /// Applies `changes` at `now`. Returns `None` if nothing changes; a field equal to its current
    /// value changes nothing.
    pub fn update(
        &self,
        changes: &PaymentChanges,
        now: Timestamp,
    ) -> Result<Option<Self>, PaymentUpdateError> {
        let mut next = self.clone();
        let invalid = |error| PaymentUpdateError::InvalidFields(vec![error]);
        if let Some(external_id) = &changes.external_id {
            if *external_id != self.external_id
                && let Some(error) = reject_card_number("external_payment_id", external_id.as_ref())
            {
                return Err(invalid(error));
            }
            next.external_id.clone_from(external_id);
        }
        if let Some(reason) = &changes.failure_reason {
            next.failure_reason.clone_from(reason);
        }
        if let Some(metadata) = &changes.metadata {
            next.metadata.clone_from(metadata);
        }
        next.subscription = changes.subscription.unwrap_or(self.subscription);
        let currency = changes.currency.unwrap_or(self.amount.currency());
        let money = |decimal: &Decimal, field| {
            Money::from_decimal(decimal, currency).map_err(|error| invalid((field, error)))
        };
        next.amount = match &changes.amount {
            Some(amount) => money(amount, "amount")?,
            // A new currency keeps the decimal number, not the minor units.
            None => money(&self.amount.to_decimal(), "amount")?,
        };
        let frozen = self.changed_frozen_fields(&next);
        if self.status.is_settled() && !frozen.is_empty() {
            return Err(PaymentUpdateError::AlreadySettled(frozen));
        }
        if let Some(to) = changes.status.filter(|to| *to != self.status) {
            let from = self.status;
            if !from.allowed_transitions().contains(&to) {
                return Err(PaymentUpdateError::TransitionNotAllowed { from, to });
            }
            next.status = to;
        }
        if let Some(paid_at) = changes.paid_at.filter(|paid_at| *paid_at != self.paid_at) {
            if let Some(error) = validate_paid_at(paid_at, now) {
                return Err(invalid(error));
            }
            next.paid_at = paid_at;
        }
        if next.status.is_settled() && !self.status.is_settled() {
            next.paid_at = next.paid_at.or(Some(now));
        }
        let requested = match &changes.refunded {
            Some(Some(decimal)) => Some(money(decimal, "refunded_amount")?),
            Some(None) | None => None,
        };
        let requested = requested.filter(|amount| self.refunded != Some(*amount));
        let cleared = changes.refunded == Some(None) && self.refunded.is_some();
        let before = RefundState {
            status: self.status,
            refunded: self.refunded.filter(|_| !cleared),
        };
        if cleared && next.status != PaymentStatus::PartiallyRefunded {
            return Err(invalid(refund_follows_status(next.status)));
        }
        next.refunded =
            refunded_amount(next.status, next.amount, requested, Some(&before)).map_err(invalid)?;
        let differs = next != *self;
        next.updated_at = now;
        Ok(differs.then_some(next))
    }

    /// Returns the fields frozen by settlement in which `other` differs.
    fn changed_frozen_fields(&self, other: &Self) -> Vec<&'static str> {
        let differs = [
            (
                "amount",
                self.amount.minor_units() != other.amount.minor_units(),
            ),
            (
                "currency",
                self.amount.currency() != other.amount.currency(),
            ),
            ("subscription_id", self.subscription != other.subscription),
        ];
        let differing = differs.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(field, _)| field).collect()
    }
}

fn validate_paid_at(paid_at: Option<Timestamp>, now: Timestamp) -> Option<FieldError> {
    paid_at.filter(|paid_at| *paid_at > now)?;
    let message = format!("must not be in the future; it is {now} now");
    let error = ValidationError::new(Rule::InconsistentDates, message);
    Some(("paid_at", error))
}

/// A payment's status and refunded amount before an update.
struct RefundState {
    status: PaymentStatus,
    refunded: Option<Money>,
}

/// Returns the refunded amount that the status implies, or for a partial refund the requested or
/// previous one.
fn refunded_amount(
    status: PaymentStatus,
    amount: Money,
    requested: Option<Money>,
    before: Option<&RefundState>,
) -> Result<Option<Money>, FieldError> {
    let is_partial = |money: &Money| (1..amount.minor_units()).contains(&money.minor_units());
    let zero = Money::from_minor_units(0, amount.currency());
    let implied = match status {
        PaymentStatus::PartiallyRefunded => {
            let previous = before.and_then(|before| before.refunded).filter(is_partial);
            return match requested {
                Some(requested) if !is_partial(&requested) => {
                    let message = format!(
                        "must be more than 0 and less than the amount, {amount}; if the refund was rejected, \
                         send the status completed instead"
                    );
                    let error = ValidationError::new(Rule::OutOfRange, message);
                    Err(("refunded_amount", error))
                }
                requested => Ok(requested.or(previous)),
            };
        }
        PaymentStatus::Refunded => Some(amount),
        PaymentStatus::Completed | PaymentStatus::Disputed => match before {
            Some(before)
                if status == PaymentStatus::Completed
                    && before.status == PaymentStatus::PartiallyRefunded =>
            {
                zero
            }
            // A refund before or during a dispute is not undone by its outcome.
            Some(before) if before.status.may_be_partially_refunded() => before.refunded,
            _ => zero,
        },
        PaymentStatus::Pending | PaymentStatus::Failed | PaymentStatus::Void => zero,
    };
    match requested {
        Some(requested) if implied != Some(requested) => Err(refund_follows_status(status)),
        _ => Ok(implied),
    }
}

/// Returns the error for a refunded amount that the status determines.
fn refund_follows_status(status: PaymentStatus) -> FieldError {
    let message = format!("cannot be set: it follows from the status {status}; leave it out");
    let error = ValidationError::new(Rule::InconsistentStatus, message);
    ("refunded_amount", error)
}

#[cfg(test)]
mod tests;
