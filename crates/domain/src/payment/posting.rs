//! What a payment posts to the ledger of a managed subscription.

use super::{Payment, PaymentStatus};
use crate::{
    AppliedChange, Currency, EntryCause, EntryType, FieldError, Money, PaymentPosting, Rule,
    Subscription, ValidationError,
};

impl Payment {
    /// Returns what the change from `before` to this payment posts to the ledger of a subscription in `currency`.
    /// A payment enters the ledger when it settles in managed billing, with what the payer has paid then; later
    /// changes post the difference.
    pub fn post(
        &mut self,
        before: Option<&Self>,
        currency: Currency,
        is_managed: bool,
    ) -> Option<PaymentPosting> {
        let was_settled = before.is_some_and(|before| before.status.is_settled());
        if self.amount.currency() != currency {
            return None;
        }
        let is_new = is_managed && !was_settled;
        if is_new && self.status.is_settled() {
            self.ledger_amount = Some(0);
        }
        let (posted, net) = (self.ledger_amount?, self.net_amount());
        let amount = net.saturating_sub(posted);
        self.ledger_amount = Some(net);
        let was_disputed = before.is_some_and(|before| before.status == PaymentStatus::Disputed);
        let cause = match self.status {
            _ if is_new => EntryCause::Payment,
            PaymentStatus::Disputed => EntryCause::Dispute,
            _ if was_disputed && amount > 0 => EntryCause::DisputeWon,
            _ => EntryCause::Refund,
        };
        let taken = std::mem::take(&mut self.disputed);
        let lost = match self.status {
            PaymentStatus::Disputed => {
                self.disputed = taken.saturating_sub(amount);
                0
            }
            PaymentStatus::Refunded => taken,
            _ => 0,
        };
        (amount != 0 || lost != 0).then_some(PaymentPosting {
            payment: self.id,
            cause,
            amount,
            waived: self.waived,
            lost,
        })
    }

    /// Keeps what a posting waived of this payment's refund, and the time that it paid for.
    pub fn record_posting(
        &mut self,
        posting: &PaymentPosting,
        applied: &AppliedChange,
        subscription: &Subscription,
    ) {
        if posting.cause == EntryCause::Refund {
            let waivers = applied.own_entries.iter();
            let waivers = waivers.filter(|entry| entry.entry_type == EntryType::Waiver);
            self.waived += waivers.map(|entry| entry.amount).sum::<i64>();
        }
        // Refunds and disputes do not rewrite what the payment paid for.
        if posting.amount > 0 && self.period.is_none() {
            self.period = applied.paid_time(subscription);
        }
    }

    /// Returns the minor units that the payer has paid and not got back: nothing before it completes
    /// and while it is disputed.
    fn net_amount(&self) -> i64 {
        let refunded = self.refunded.map_or(0, Money::minor_units);
        match self.status {
            PaymentStatus::Completed | PaymentStatus::PartiallyRefunded => {
                self.amount.minor_units().saturating_sub(refunded)
            }
            PaymentStatus::Pending
            | PaymentStatus::Failed
            | PaymentStatus::Refunded
            | PaymentStatus::Disputed
            | PaymentStatus::Void => 0,
        }
    }

    /// Returns an error if a part of unknown size was refunded, which a ledger cannot express.
    pub fn validate_refund_known(&self) -> Option<FieldError> {
        let is_unknown = self.status == PaymentStatus::PartiallyRefunded && self.refunded.is_none();
        is_unknown.then(|| {
            let message = "is required when status is partially_refunded, in managed billing";
            let error = ValidationError::new(Rule::Required, message);
            ("refunded_amount", error)
        })
    }
}
