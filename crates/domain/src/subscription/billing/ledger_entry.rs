//! Ledger entries: every movement of money and every stretch of free time.

use jiff::Timestamp;

use crate::{PaymentId, PlanId, Quantity};

string_enum! {
    /// The type of a ledger entry. It determines the sign of the amount.
    pub enum EntryType: "a ledger entry type" {
        /// Money received (positive), also by a won dispute.
        Payment = "payment",
        /// Money returned to the payer (negative), also by a dispute.
        Refund = "refund",
        /// A period was charged (negative).
        Period = "period",
        /// A changed plan or quantity was charged (negative) or returned unused value (positive).
        Change = "change",
        /// Debt was forgiven (positive), or a waiver was taken back (negative).
        Waiver = "waiver",
        /// Free time (0): a trial, `free_until`, or the switch to managed billing.
        Extension = "extension",
    }
}

string_enum! {
    /// Why a ledger entry was posted.
    pub enum EntryCause: "a ledger entry cause" {
        /// A payment completed.
        Payment = "payment",
        /// A payment was refunded, in full or in part.
        Refund = "refund",
        /// A payment was disputed.
        Dispute = "dispute",
        /// A dispute was won.
        DisputeWon = "dispute_won",
        /// The first period started.
        Start = "start",
        /// The next period started.
        Renewal = "renewal",
        /// An open period was paid late.
        LatePayment = "late_payment",
        /// A paused subscription was resumed.
        Resume = "resume",
        /// An expired subscription was reopened.
        Reopen = "reopen",
        /// The plan, the quantity or the billing cycle changed.
        Change = "change",
        /// A refund took more than the credit, or free time forgave debt.
        Waiver = "waiver",
        /// A trial started.
        Trial = "trial",
        /// A client set `free_until`.
        FreeUntil = "free_until",
        /// The service began to manage the subscription.
        Managed = "managed",
    }
}

/// An entry of a subscription's ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerEntry {
    /// When it was posted; unique within the subscription.
    pub at: Timestamp,
    /// The type.
    pub entry_type: EntryType,
    /// The cause.
    pub cause: EntryCause,
    /// Minor units added to the credit; negative if taken from it.
    pub amount: i64,
    /// The credit after this entry, in minor units.
    pub credit_after: i64,
    /// The payment that it belongs to.
    pub payment: Option<PaymentId>,
    /// Start and end of the period that it covers or changes. A lifetime has no end.
    pub period: Option<(Timestamp, Option<Timestamp>)>,
    /// The plan at that time.
    pub plan: PlanId,
    /// The quantity at that time.
    pub quantity: Quantity,
}

/// The part of an entry that its caller decides.
pub(super) struct Posting {
    pub(super) entry_type: EntryType,
    pub(super) cause: EntryCause,
    pub(super) amount: i64,
    pub(super) payment: Option<PaymentId>,
    pub(super) period: Option<(Timestamp, Option<Timestamp>)>,
}

impl Posting {
    pub(super) fn new(entry_type: EntryType, cause: EntryCause, amount: i64) -> Self {
        Self {
            entry_type,
            cause,
            amount,
            payment: None,
            period: None,
        }
    }

    pub(super) fn with_period(self, start: Timestamp, end: Option<Timestamp>) -> Self {
        Self {
            period: Some((start, end)),
            ..self
        }
    }

    pub(super) fn with_payment(self, payment: PaymentId) -> Self {
        Self {
            payment: Some(payment),
            ..self
        }
    }
}
