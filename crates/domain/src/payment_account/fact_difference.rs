//! How a record differs from the latest fact of its payment provider, because a client or an operator has changed it since.

use std::fmt;

use jiff::Timestamp;

use super::{PaymentFact, SubscriptionFact};
use crate::{
    FollowedPayment, FollowedSubscription, Money, Payment, Rfc3339Timestamp, Subscription,
    SubscriptionStatus,
};

/// A field whose value differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactDifference {
    /// The field of the record.
    pub field: &'static str,
    /// The value that the payment provider reports; "none" if it has none.
    pub reported: String,
    /// The value of the record; "none" if it has none.
    pub recorded: String,
}

/// Compares fields by their texts.
#[derive(Default)]
struct Differences(Vec<FactDifference>);

impl Differences {
    fn compare(&mut self, field: &'static str, reported: String, recorded: String) {
        if reported != recorded {
            self.0.push(FactDifference {
                field,
                reported,
                recorded,
            });
        }
    }

    fn compare_times(
        &mut self,
        field: &'static str,
        reported: Option<Timestamp>,
        recorded: Option<Timestamp>,
    ) {
        let text = |time: Option<Timestamp>| text_or_none(time.map(Rfc3339Timestamp::from));
        self.compare(field, text(reported), text(recorded));
    }
}

fn text_or_none(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn money_text(amount: Option<Money>) -> String {
    text_or_none(amount.map(|amount| format!("{amount} {}", amount.currency())))
}

impl Subscription {
    /// Returns how the record differs from what it would be if `fact` were stated again. The payment
    /// provider does not know of a suspension, so that is a difference too. The plan is not compared.
    pub fn differences_from(&self, fact: &SubscriptionFact, now: Timestamp) -> Vec<FactDifference> {
        let followed = FollowedSubscription::Existing {
            record: self,
            last: None,
            offer: None,
        };
        let stated = Self::follow(&followed, fact, now);
        let stated = stated.map_or_else(|| self.clone(), |change| change.after);
        let mut differences = Differences::default();
        let (reported, recorded) = (stated.status_at(now), self.status_at(now));
        differences.compare("status", reported.to_string(), recorded.to_string());
        if self.suspended {
            differences.compare("suspended", false.to_string(), true.to_string());
        }
        let (reported, recorded) = (stated.quantity.get(), self.quantity.get());
        differences.compare("quantity", reported.to_string(), recorded.to_string());
        differences.compare(
            "price",
            money_text(stated.price()),
            money_text(self.price()),
        );
        differences.compare_times("renews_at", stated.renews_at, self.renews_at);
        // Without a reported end, that of a cancelled or expired subscription is ours.
        let ends = matches!(
            fact.status,
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
        );
        if fact.ends_at.is_some() || !ends {
            differences.compare_times("ends_at", stated.ends_at, self.ends_at);
        }
        differences.0
    }
}

impl Payment {
    /// Returns how the record differs from what it would be if `fact` were stated again.
    pub fn differences_from(&self, fact: &PaymentFact, now: Timestamp) -> Vec<FactDifference> {
        let followed = FollowedPayment::Existing {
            record: self,
            last: None,
        };
        let stated = Self::follow(followed, fact, self.subscription, now);
        let stated = stated.unwrap_or_else(|| self.clone());
        let mut differences = Differences::default();
        let (reported, recorded) = (stated.status, self.status);
        differences.compare("status", reported.to_string(), recorded.to_string());
        let (reported, recorded) = (Some(stated.amount), Some(self.amount));
        differences.compare("amount", money_text(reported), money_text(recorded));
        let (reported, recorded) = (stated.refunded, self.refunded);
        differences.compare(
            "refunded_amount",
            money_text(reported),
            money_text(recorded),
        );
        differences.0
    }
}
