//! Calls that create or change a payment.

use perennial_auditor as audit;

use super::{super::fixtures::usd, record::Recorder, scenario::Amount};
use crate::{Id, Money, NewPayment, PaymentStatus};

impl Recorder {
    pub(super) fn pay(&mut self, amount: Amount) {
        if let Some(amount) = self.minor_units(amount) {
            let index = self.book.pay(amount, self.now);
            let payment = self.book.payments[index].id.uuid().as_u128();
            self.accept(audit::Verb::Pay { payment, amount });
        }
    }

    pub(super) fn pay_disputed(&mut self, amount: Amount) {
        if let Some(amount) = self.minor_units(amount) {
            let money = Money::from_minor_units(amount, usd()).unwrap();
            let new = NewPayment {
                status: Some(PaymentStatus::Disputed),
                ..NewPayment::new(self.book.sub.id, money)
            };
            let index = self.book.add_payment(new, self.now);
            let payment = self.book.payments[index].id.uuid().as_u128();
            self.accept(audit::Verb::PayDisputed { payment, amount });
        }
    }

    fn minor_units(&self, amount: Amount) -> Option<i64> {
        let amount = match amount {
            Amount::Due => {
                let mut book = self.book.clone();
                book.run(self.now).billing_summary(self.now)?.amount_due
            }
            Amount::Periods(periods, rest) => self.book.sub.amount().unwrap() * periods + rest,
        };
        (1..=crate::MAX_MINOR_UNITS)
            .contains(&amount)
            .then_some(amount)
    }

    pub(super) fn refund(&mut self, index: usize, tenths: i64) {
        let Some(index) = index.checked_rem(self.book.payments.len()) else {
            return;
        };
        let payment = &self.book.payments[index];
        let id = payment.id.uuid().as_u128();
        let refunded_total = payment.amount.minor_units() * tenths / 10;
        // The service requires the size of a refund.
        if payment.status != PaymentStatus::Disputed
            && self.book.refund(index, refunded_total, self.now)
        {
            self.accept(audit::Verb::Refund {
                payment: id,
                refunded_total,
            });
        }
    }

    /// Opens or decides a dispute.
    pub(super) fn payment_status(&mut self, index: usize, to: PaymentStatus) {
        let Some(index) = index.checked_rem(self.book.payments.len()) else {
            return;
        };
        let payment = &self.book.payments[index];
        let (id, from) = (payment.id.uuid().as_u128(), payment.status);
        let is_disputed = from == PaymentStatus::Disputed;
        let opens = to == PaymentStatus::Disputed;
        if is_disputed == opens || !from.allowed_transitions().contains(&to) {
            return;
        }
        self.book.payment_status(index, to, self.now);
        self.accept(match to {
            PaymentStatus::Disputed => audit::Verb::Dispute { payment: id },
            PaymentStatus::Completed => audit::Verb::WinDispute { payment: id },
            _ => audit::Verb::LoseDispute { payment: id },
        });
    }
}
