//! Payments, refunds and disputes, and the waivers of what they take.

use super::{Account, EntryCause, EntryType, ledger_entry};
use crate::PaymentId;

/// A change of the credit because of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentPosting {
    /// The payment.
    pub payment: PaymentId,
    /// Why the credit changes.
    pub cause: EntryCause,
    /// Minor units to add; negative for refunds and disputes.
    pub amount: i64,
    /// What was waived of the payment's refunds before.
    pub waived: i64,
    /// What the dispute of the payment had taken, if it was lost now.
    pub lost: i64,
}

impl Account {
    /// Posts the money of a payment, a refund or a dispute.
    pub(in crate::subscription) fn post_money(&mut self, posting: &PaymentPosting) {
        // Debt of a lost dispute is never paid.
        self.sub.waived_debt -= self.sub.waived_debt.min(posting.lost);
        if posting.amount == 0 {
            return;
        }
        let entry_type = if posting.amount < 0 {
            EntryType::Refund
        } else {
            EntryType::Payment
        };
        let floor = self.sub.credit.min(0);
        let entry = ledger_entry::Posting::new(entry_type, posting.cause, posting.amount);
        self.post(&entry.with_payment(posting.payment));
        match posting.cause {
            // What the credit lacks is forgiven: a period that has started stays.
            EntryCause::Refund if posting.amount < 0 => {
                self.post_waiver((floor - self.sub.credit).max(0), EntryCause::Waiver);
            }
            EntryCause::Refund => {
                self.post_waiver(-posting.amount.min(posting.waived), EntryCause::Refund);
            }
            EntryCause::DisputeWon => {
                let taken_back = posting.amount.min(self.sub.waived_debt);
                self.sub.waived_debt -= taken_back;
                self.post_waiver(-taken_back, EntryCause::DisputeWon);
            }
            _ => {}
        }
    }

    /// Forgives negative credit.
    pub(super) fn waive_debt(&mut self) {
        let debt = (-self.sub.credit).max(0);
        self.sub.waived_debt = self.sub.waived_debt.saturating_add(debt);
        self.post_waiver(debt, EntryCause::Waiver);
    }

    /// Posts a waiver, or takes one back (negative). No later change returns what was waived.
    fn post_waiver(&mut self, amount: i64, cause: EntryCause) {
        if amount == 0 {
            return;
        }
        let (now, start) = (self.now, self.rest_starts_at());
        let period = self.sub.period.as_mut();
        let period = period.map(|period| (period.left(start), period));
        let free_time = self.sub.free_time.as_mut();
        let free_time = free_time.map(|free_time| (free_time.free_left(start), free_time));
        let mut rest = amount;
        for (left, part) in [period, free_time].into_iter().flatten() {
            if part.is_in_force(now) {
                rest = part.waive(rest, left);
            }
        }
        self.post(&ledger_entry::Posting::new(
            EntryType::Waiver,
            cause,
            amount,
        ));
    }
}
