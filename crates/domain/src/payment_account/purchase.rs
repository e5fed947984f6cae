//! A plan that is paid once: an invoice or an order that is for no subscription of the payment provider.
//!
//! A lifetime subscription follows it. Both facts are a function of the same object, so records depend only on the latest
//! state of that object.

use jiff::Timestamp;

use super::{PaymentFact, PlanReference, SubscriptionFact};
use crate::{PaymentStatus, Quantity, SubscriptionStatus};

impl PaymentFact {
    /// Returns the lifetime subscription that a one-time payment at `paid_at` buys, with the identifier of the payment.
    /// Returns `None` before the payment.
    ///
    /// A partial refund and an open dispute change nothing. A full refund and a lost dispute end it.
    pub fn lifetime_subscription(
        &self,
        plan: PlanReference,
        quantity: Quantity,
        paid_at: Timestamp,
    ) -> Option<SubscriptionFact> {
        let status = match self.status {
            PaymentStatus::Pending | PaymentStatus::Failed | PaymentStatus::Void => return None,
            PaymentStatus::Completed
            | PaymentStatus::PartiallyRefunded
            | PaymentStatus::Disputed => SubscriptionStatus::Active,
            PaymentStatus::Refunded => SubscriptionStatus::Expired,
        };
        Some(SubscriptionFact {
            external_id: self.external_id.clone(),
            plan,
            quantity,
            // The price may contain taxes and discounts. The plan's applies.
            price: None,
            status,
            starts_at: paid_at,
            renews_at: None,
            ends_at: None,
            trial_ends_at: None,
            late_since: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Money;

    #[test]
    fn lifetime_subscription_lasts_until_the_money_is_returned() {
        let paid_at = Timestamp::from_second(1_000).unwrap();
        for (status, expected) in [
            (PaymentStatus::Pending, None),
            (PaymentStatus::Failed, None),
            (PaymentStatus::Void, None),
            (PaymentStatus::Completed, Some(SubscriptionStatus::Active)),
            (
                PaymentStatus::PartiallyRefunded,
                Some(SubscriptionStatus::Active),
            ),
            (PaymentStatus::Disputed, Some(SubscriptionStatus::Active)),
            (PaymentStatus::Refunded, Some(SubscriptionStatus::Expired)),
        ] {
            let payment = PaymentFact {
                external_id: "in_1".parse().unwrap(),
                subscription: "in_1".parse().unwrap(),
                status,
                amount: Money::from_minor_units(1_999, "USD".parse().unwrap()).unwrap(),
                refunded_minor: None,
                paid_at: Some(paid_at),
                failure_reason: None,
                period: None,
            };
            let plan = PlanReference {
                variant: "price_1".parse().unwrap(),
                product: None,
            };
            let fact = payment.lifetime_subscription(plan, Quantity::default(), paid_at);
            assert_eq!(fact.as_ref().map(|fact| fact.status), expected, "{status}");
            if let Some(fact) = fact {
                assert_eq!(fact.external_id, payment.subscription);
                assert_eq!((fact.starts_at, fact.renews_at), (paid_at, None));
            }
        }
    }
}
