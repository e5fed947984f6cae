//! What a payment adds to the sums of a day.

use jiff::civil::Date;

use super::contribution::day_of;
use crate::{Currency, Payment, PaymentStatus};

string_enum! {
    /// What happened to money.
    pub enum PaymentTotalKind: "a kind of payment" {
        /// It was received, also if it was returned later.
        Collected = "collected",
        /// It was returned.
        Refunded = "refunded",
        /// The payer's bank demands it back.
        Disputed = "disputed",
        /// It could not be collected.
        Failed = "failed",
        /// It is not decided yet.
        Pending = "pending",
        /// A part of unknown size was returned.
        UnknownRefund = "unknown_refund",
    }
}

/// A payment's part of the sums of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayPayments {
    /// The day, in UTC: of `paid_at`, or of the creation if no money was received.
    pub day: Date,
    /// The currency.
    pub currency: Currency,
    /// What happened.
    pub kind: PaymentTotalKind,
    /// How many payments; negative to take one back.
    pub payments: i64,
    /// The amount in minor units; negative to take it back.
    pub amount: i64,
}

impl Payment {
    /// Returns what the payment adds to the sums of its day.
    pub fn totals(&self) -> Vec<DayPayments> {
        let amount = self.amount.minor_units();
        // Clients can also send `paid_at` with a payment that has not settled.
        let paid_at = self.paid_at.filter(|_| self.status.is_settled());
        let day = day_of(paid_at.unwrap_or(self.created_at));
        let total = |kind, amount| DayPayments {
            day,
            currency: self.amount.currency(),
            kind,
            payments: 1,
            amount,
        };
        let refunded = || match self.refunded {
            None => Some(total(PaymentTotalKind::UnknownRefund, 0)),
            Some(refunded) if refunded.minor_units() > 0 => {
                Some(total(PaymentTotalKind::Refunded, refunded.minor_units()))
            }
            Some(_) => None,
        };
        let collected = total(PaymentTotalKind::Collected, amount);
        match self.status {
            PaymentStatus::Void => Vec::new(),
            PaymentStatus::Pending => vec![total(PaymentTotalKind::Pending, amount)],
            PaymentStatus::Failed => vec![total(PaymentTotalKind::Failed, amount)],
            PaymentStatus::Completed
            | PaymentStatus::PartiallyRefunded
            | PaymentStatus::Refunded => std::iter::once(collected).chain(refunded()).collect(),
            PaymentStatus::Disputed => {
                // What was refunded before is not demanded again.
                let refunds = refunded();
                let returned = refunds.map_or(0, |refund| refund.amount);
                let disputed = total(PaymentTotalKind::Disputed, amount - returned);
                let totals = std::iter::once(collected).chain(refunds);
                totals.chain([disputed]).collect()
            }
        }
    }

    /// Returns how the sums change when this payment replaces `before`.
    pub fn changed_totals(&self, before: Option<&Self>) -> Vec<DayPayments> {
        let [old, new] = [before.map(Self::totals).unwrap_or_default(), self.totals()];
        if old == new {
            return Vec::new();
        }
        let mut changes = take_back(old);
        changes.extend(new);
        changes
    }

    /// Returns how the sums change when this payment is deleted.
    pub fn deleted_totals(&self) -> Vec<DayPayments> {
        take_back(self.totals())
    }
}

fn take_back(totals: Vec<DayPayments>) -> Vec<DayPayments> {
    let negative = |total: DayPayments| DayPayments {
        payments: -total.payments,
        amount: -total.amount,
        ..total
    };
    totals.into_iter().map(negative).collect()
}
