//! Payments, refunds and disputes.

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
}

impl Account {
    /// Posts the money of a payment, a refund or a dispute, then pays what is open.
    pub(in crate::subscription) fn post_payment(&mut self, posting: &PaymentPosting) {
        let entry_type = if posting.amount < 0 {
            EntryType::Refund
        } else {
            EntryType::Payment
        };
        let credit_before = self.sub.credit;
        let entry = ledger_entry::Posting::new(entry_type, posting.cause, posting.amount);
        self.post(&entry.with_payment(posting.payment));
        if posting.cause == EntryCause::Refund {
            // What the credit lacks is forgiven: a period that has started stays.
            self.waive_to(credit_before.min(0));
        }
        self.settle();
    }
}
