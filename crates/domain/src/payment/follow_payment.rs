//! Following a payment provider: stating what it reports about a payment.
//!
//! The transitions that requests are bound by do not apply, and neither does the freeze of a settled
//! payment. Metadata and the ledger are not the payment provider's, and stay.

use jiff::Timestamp;

use super::Payment;
use crate::{Metadata, PaymentFact, PaymentId, SubscriptionId};

/// The payment that follows a payment provider.
#[derive(Debug, Clone, Copy)]
pub enum FollowedPayment<'a> {
    /// No record yet: it is created with this identifier.
    New(PaymentId),
    /// A record, which may have been created by a client.
    Existing {
        /// The record.
        record: &'a Payment,
        /// The fact that the record follows; `None` if it has followed none.
        last: Option<&'a PaymentFact>,
    },
}

impl Payment {
    /// States `fact` about a payment for `subscription` at `now`. Returns `None` if nothing changes. A
    /// fact equal to the last one changes nothing. An invoice of 0, as for a trial, gets no record.
    pub fn follow(
        followed: FollowedPayment<'_>,
        fact: &PaymentFact,
        subscription: SubscriptionId,
        now: Timestamp,
    ) -> Option<Self> {
        let before = match followed {
            FollowedPayment::Existing { last, .. } if last == Some(fact) => return None,
            FollowedPayment::New(_) if fact.amount.minor_units() == 0 => return None,
            FollowedPayment::Existing { record, .. } => record.clone(),
            FollowedPayment::New(id) => Self {
                id,
                subscription,
                amount: fact.amount,
                external_id: None,
                status: fact.status,
                refunded: None,
                paid_at: None,
                failure_reason: None,
                period: None,
                ledger_amount: None,
                disputed: 0,
                waived: 0,
                metadata: Metadata::default(),
                created_at: now,
                updated_at: now,
            },
        };
        let is_settled = fact.status.is_settled();
        let paid_at = fact.paid_at.or(before.paid_at).unwrap_or(now);
        // A payment in the ledger of managed billing keeps the period that it paid for there.
        let period = match before.ledger_amount {
            Some(_) => before.period,
            None => fact.period.filter(|_| is_settled),
        };
        let after = Self {
            subscription,
            amount: fact.amount,
            external_id: Some(fact.external_id.clone()),
            status: fact.status,
            refunded: fact.refunded(),
            paid_at: is_settled.then_some(paid_at),
            failure_reason: fact.failure_reason.clone(),
            period,
            ..before.clone()
        };
        (after != before).then_some(Self {
            updated_at: now,
            ..after
        })
    }
}

#[cfg(test)]
mod tests;
