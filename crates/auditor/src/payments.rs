//! Entries of payments, and the waivers that refunds and disputes cause.

use crate::money::{self, PaymentRecord};
use crate::replay::{Replay, fail};
use crate::{Call, EntryKind, Verb, Violation};

impl Replay<'_> {
    /// Applies the entries of a call on a payment. The money law judges their amounts.
    pub(crate) fn move_money(&mut self, call: &Call) -> Result<(), Violation> {
        let at = call.at;
        match call.verb {
            Verb::Refund { payment, .. } => self.refund(payment, call)?,
            Verb::Dispute { payment } => {
                let moved = self.take_money(payment, call);
                self.state.taken.insert(payment, -moved);
            }
            Verb::WinDispute { payment } => {
                let returned = self.take_money(payment, call);
                self.state.taken.remove(&payment);
                let waiver = returned.min(self.state.waived_debt);
                self.state.waived_debt -= waiver;
                self.take_waiver_back(waiver, at)?;
            }
            Verb::LoseDispute { payment } => {
                self.take_money(payment, call);
                let taken = self.state.taken.remove(&payment).unwrap_or(0);
                self.state.waived_debt -= taken.min(self.state.waived_debt);
            }
            Verb::Pay { payment, .. } | Verb::PayDisputed { payment, .. } => {
                self.take_money(payment, call);
            }
            _ => {}
        }
        Ok(())
    }

    /// Consumes the entry of a call that changes what a payment contributes. Returns its amount.
    fn take_money(&mut self, payment: u128, call: &Call) -> i64 {
        let before = self.contribution(payment);
        money::apply(&mut self.payments, call);
        if self.contribution(payment) == before {
            return 0;
        }
        let next = self.peek().filter(|entry| entry.payment == Some(payment));
        let taken = next.and_then(|entry| self.take(entry.kind, call.at));
        taken.map_or(0, |entry| entry.amount)
    }

    /// Returns what a payment contributes to credit.
    fn contribution(&self, payment: u128) -> i64 {
        let record = self.payments.get(&payment);
        record.map_or(0, PaymentRecord::value)
    }

    /// Waives what a refund takes below the credit; a refund that becomes smaller returns waivers.
    fn refund(&mut self, payment: u128, call: &Call) -> Result<(), Violation> {
        let (at, floor) = (call.at, self.state.credit.min(0));
        let moved = self.take_money(payment, call);
        if moved > 0 {
            let waivers = self.state.waivers.entry(payment).or_default();
            let returned = moved.min(*waivers);
            *waivers -= returned;
            return self.take_waiver_back(returned, at);
        }
        let waiver = floor - self.state.credit;
        if waiver <= 0 {
            return Ok(());
        }
        let now = self.state.last_change;
        if self.take(EntryKind::Waiver, at).is_none() || self.state.credit != floor {
            let what = format!("a refund leaves {}, not {floor}", self.state.credit);
            return Err(fail(at, what));
        }
        self.state.waive(waiver, now);
        *self.state.waivers.entry(payment).or_default() += waiver;
        Ok(())
    }

    /// Takes back an amount that was waived; its entry must exist.
    fn take_waiver_back(&mut self, waiver: i64, at: i64) -> Result<(), Violation> {
        if waiver == 0 {
            return Ok(());
        }
        // The money that came back was posted first.
        let now = self.state.last_change;
        match self.take(EntryKind::Waiver, at) {
            Some(entry) if entry.amount == -waiver => {
                self.state.waive(-waiver, now);
                Ok(())
            }
            _ => Err(fail(at, format!("a waiver of {waiver} is not taken back"))),
        }
    }
}
