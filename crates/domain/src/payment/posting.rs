//! What a payment posts to the ledger of a managed subscription.

use super::{Payment, PaymentStatus};
use crate::{Currency, EntryCause, FieldError, Money, PaymentPosting, Rule, ValidationError};

impl Payment {
    /// Returns what the change from `before` to this payment posts to the ledger of a managed
    /// subscription in `currency`. A payment enters the ledger when it completes. One that was
    /// created as refunded or disputed never does, so nothing is returned for it later.
    pub fn post(&mut self, before: Option<&Self>, currency: Currency) -> Option<PaymentPosting> {
        let was_settled = before.is_some_and(|before| before.status.is_settled());
        let is_new = !was_settled && self.amount.currency() == currency;
        if is_new && self.net_amount() > 0 {
            self.ledger_amount = Some(0);
        }
        let posted = self.ledger_amount?;
        let (net_before, net) = (before.map_or(0, Self::net_amount), self.net_amount());
        // The entries follow the payment in the direction of its change. While the ledger was frozen,
        // they may have fallen behind it.
        let difference = net.saturating_sub(posted);
        let amount = if net < net_before {
            difference.min(0)
        } else {
            difference.clamp(0, net - net_before)
        };
        self.ledger_amount = Some(posted.saturating_add(amount));
        let was_disputed = before.is_some_and(|before| before.status == PaymentStatus::Disputed);
        let cause = match self.status {
            _ if is_new => EntryCause::Payment,
            PaymentStatus::Disputed => EntryCause::Dispute,
            _ if was_disputed && amount > 0 => EntryCause::DisputeWon,
            _ => EntryCause::Refund,
        };
        (amount != 0).then_some(PaymentPosting {
            payment: self.id,
            cause,
            amount,
        })
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
