//! What a payment provider reports about a payment.
//!
//! A payment is an invoice, however often the payment provider tries to collect it.

use jiff::Timestamp;

use super::fact_fields::{
    Fact, FactFields, FieldWriter, optional, optional_integer, optional_time, required,
    required_money,
};
use crate::{ExternalId, FailureReason, FieldError, Money, PaymentStatus};

/// A payment as the payment provider reports it. Timestamps have microseconds at most.
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentFact {
    /// The payment provider's identifier of the invoice.
    pub external_id: ExternalId,
    /// The payment provider's identifier of the subscription.
    pub subscription: ExternalId,
    /// The status in our words.
    pub status: PaymentStatus,
    /// The invoiced amount.
    pub amount: Money,
    /// The refunded part, in minor units of the amount's currency; `None` if it is unknown.
    pub refunded_minor: Option<i64>,
    /// When the payer paid. Default: when the service first learned of it.
    pub paid_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub failure_reason: Option<FailureReason>,
    /// Start and end of the time that it pays for. A lifetime has no end.
    pub period: Option<(Timestamp, Option<Timestamp>)>,
}

/// The state of a dispute (chargeback) of a payment. An inquiry or a warning is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisputeState {
    /// The bank has taken the money and decides later.
    Open,
    /// The money came back.
    Won,
    /// The payer keeps the money.
    Lost,
}

impl PaymentFact {
    /// Returns the status of an invoice that was paid, from what happened to the money since.
    pub fn paid_status(
        amount: Money,
        refunded_minor: i64,
        dispute: Option<DisputeState>,
    ) -> PaymentStatus {
        let is_lost = match dispute {
            Some(DisputeState::Open) => return PaymentStatus::Disputed,
            Some(DisputeState::Lost) => true,
            Some(DisputeState::Won) | None => false,
        };
        if is_lost || (refunded_minor > 0 && refunded_minor >= amount.minor_units()) {
            PaymentStatus::Refunded
        } else if refunded_minor > 0 {
            PaymentStatus::PartiallyRefunded
        } else {
            PaymentStatus::Completed
        }
    }

    /// Returns the refunded amount that the status allows; `None` if a part of unknown size was
    /// refunded.
    pub(crate) fn refunded(&self) -> Option<Money> {
        let amount = self.amount;
        let reported = self.refunded_minor;
        let minor_units = match self.status {
            PaymentStatus::Pending
            | PaymentStatus::Failed
            | PaymentStatus::Void
            | PaymentStatus::Completed => 0,
            PaymentStatus::PartiallyRefunded => {
                reported.filter(|minor| (1..amount.minor_units()).contains(minor))?
            }
            PaymentStatus::Disputed => reported.unwrap_or(0).clamp(0, amount.minor_units()),
            PaymentStatus::Refunded => amount.minor_units(),
        };
        Money::from_minor_units(minor_units, amount.currency())
    }
}

impl Fact for PaymentFact {
    fn status_rank(&self) -> u8 {
        match self.status {
            PaymentStatus::Pending => 0,
            PaymentStatus::Failed => 1,
            PaymentStatus::Void => 2,
            PaymentStatus::Completed => 3,
            PaymentStatus::PartiallyRefunded => 4,
            PaymentStatus::Disputed => 5,
            PaymentStatus::Refunded => 6,
        }
    }

    fn to_fields(&self) -> FactFields {
        FieldWriter::default()
            .set("external_id", &self.external_id)
            .set("subscription", &self.subscription)
            .set("status", &self.status)
            .set("amount", &self.amount)
            .set("currency", &self.amount.currency())
            .set_some("refunded_minor", self.refunded_minor)
            .set_time("paid_at", self.paid_at)
            .set_some("failure_reason", self.failure_reason.as_ref())
            .set_time("period_starts_at", self.period.map(|(start, _)| start))
            .set_time("period_ends_at", self.period.and_then(|(_, end)| end))
            .finish()
    }

    fn from_fields(fields: &FactFields) -> Result<Self, FieldError> {
        let period_end = optional_time(fields, "period_ends_at")?;
        Ok(Self {
            external_id: required(fields, "external_id")?,
            subscription: required(fields, "subscription")?,
            status: required(fields, "status")?,
            amount: required_money(fields, "amount")?,
            refunded_minor: optional_integer(fields, "refunded_minor")?,
            paid_at: optional_time(fields, "paid_at")?,
            failure_reason: optional(fields, "failure_reason")?,
            period: optional_time(fields, "period_starts_at")?.map(|start| (start, period_end)),
        })
    }
}
