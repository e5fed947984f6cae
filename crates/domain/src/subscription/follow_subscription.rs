//! Following a payment provider: stating what it reports about a subscription.
//!
//! The payment provider has already decided, so the transitions that requests are bound by do not
//! apply. Creating a record and changing it are one rule, so a record does not depend on which fact
//! was the first. A suspension, metadata, credit and the ledger are not the
//! payment provider's, and stay.

use jiff::Timestamp;

use super::{
    AppliedChange, CreateContext, ExternalId, Lifecycle, NewSubscription, Offer, Subscription,
    SubscriptionStatus, Trial, billing::BillingChange,
};
use crate::{BillingCycle, Money, ReportedPrice, SubscriptionFact, SubscriptionId, UserId};

/// The record that follows a payment provider.
#[derive(Debug, Clone)]
pub enum FollowedSubscription<'a> {
    /// No record yet: it is created.
    New {
        /// The identifier of the new record.
        id: SubscriptionId,
        /// The subscriber.
        user: UserId,
        /// The subscriber's identifier in the client's system.
        external_user_id: Option<ExternalId>,
        /// The plan that the fact selects. It may be inactive.
        offer: &'a Offer,
        /// The tenant's setting.
        lifecycle: Lifecycle,
    },
    /// A record, which may have been created by a client.
    Existing {
        /// The record.
        record: &'a Subscription,
        /// The fact that the record follows; `None` if it has followed none.
        last: Option<&'a SubscriptionFact>,
        /// The plan, if the fact [selects](SubscriptionFact::selects_plan) one. `None` keeps the plan.
        offer: Option<&'a Offer>,
    },
}

impl Subscription {
    /// States `fact` at `now`. Returns `None` if nothing changes. A fact equal to the last one changes
    /// nothing, so an operator's change stands until the payment provider reports something new.
    pub fn follow(
        followed: &FollowedSubscription<'_>,
        fact: &SubscriptionFact,
        now: Timestamp,
    ) -> Option<AppliedChange> {
        match followed {
            FollowedSubscription::New {
                id,
                user,
                external_user_id,
                offer,
                lifecycle,
            } => {
                let context = CreateContext {
                    offer,
                    lifecycle: *lifecycle,
                    had_trial: false,
                    id: *id,
                    now,
                };
                let mut after = NewSubscription {
                    external_user_id: external_user_id.clone(),
                    ..NewSubscription::new(*user)
                }
                .to_subscription(&context);
                after.state_fact(fact, None, now);
                Some(AppliedChange {
                    due: Vec::new(),
                    after,
                    own_entries: Vec::new(),
                })
            }
            FollowedSubscription::Existing { last, .. } if *last == Some(fact) => None,
            FollowedSubscription::Existing {
                record,
                last,
                offer,
            } => {
                // A client may have agreed on other terms of the same plan before the first fact.
                let offer = offer.filter(|offer| match last {
                    Some(_) => fact.selects_plan(*last),
                    None => offer.plan != record.plan.id,
                });
                let applied = record.change(now, |current, now| {
                    let mut after = current.clone();
                    after.state_fact(fact, offer, now);
                    let differs = after != *current;
                    after.updated_at = now;
                    Ok::<_, std::convert::Infallible>(differs.then_some(BillingChange {
                        after,
                        entries: Vec::new(),
                    }))
                });
                applied.unwrap_or_else(|never| match never {})
            }
        }
    }

    /// Sets every field that the payment provider decides about.
    fn state_fact(&mut self, fact: &SubscriptionFact, offer: Option<&Offer>, now: Timestamp) {
        self.external_id = Some(fact.external_id.clone());
        // The payment provider charges it, not the service.
        self.managed_since = None;
        self.state_terms(fact, offer);
        self.starts_at = fact.starts_at;
        let not_before_start = |date: Timestamp| date.max(fact.starts_at);
        self.renews_at = fact
            .renews_at
            .map(not_before_start)
            .filter(|_| self.billing_cycle != BillingCycle::Lifetime);
        self.anchor = self.renews_at.unwrap_or(self.starts_at);
        self.state_trial(fact);
        let end = match fact.status {
            // An expired subscription has an end, and not in the future.
            SubscriptionStatus::Expired => Some(
                fact.ends_at
                    .or(self.ends_at)
                    .map_or(now, |end| end.min(now)),
            ),
            SubscriptionStatus::Cancelled => {
                let end = fact.ends_at.or(self.renews_at).or(self.ends_at);
                Some(end.unwrap_or(now))
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid => fact.ends_at,
        };
        self.ends_at = end.map(not_before_start);
        self.status = fact.status;
        self.status = self.status_at(now);
        self.late_since = fact.late_since.or(self.late_since);
        self.sync_late_since(now);
    }

    /// Sets plan, price, billing cycle and quantity. A reported price replaces the plan's, because the
    /// subscriber may pay in another currency than the plan's.
    fn state_terms(&mut self, fact: &SubscriptionFact, offer: Option<&Offer>) {
        self.quantity = fact.quantity;
        // Credit and charged periods are in the currency of the plan, so it cannot change with them.
        let has_ledger = self.credit != 0 || self.was_covered();
        let ledger_currency = has_ledger.then(|| self.plan.price.currency());
        let allows = |price: Money| ledger_currency.is_none_or(|kept| kept == price.currency());
        if let Some(offer) = offer {
            self.plan.id = offer.plan;
            self.plan.slug = offer.slug;
            if allows(offer.price) {
                self.plan = offer.into();
                self.billing_cycle = offer.billing_cycle;
                self.custom_price = None;
            }
        }
        if let Some(ReportedPrice {
            amount,
            billing_cycle,
        }) = fact.price
            && allows(amount)
        {
            self.plan.price = amount;
            self.plan.billing_cycle = billing_cycle;
            self.billing_cycle = billing_cycle;
            self.custom_price = None;
        }
    }

    /// Sets the trial. It stays after its end, and with the plan that it was for.
    fn state_trial(&mut self, fact: &SubscriptionFact) {
        let running_until = fact
            .renews_at
            .filter(|_| fact.status == SubscriptionStatus::OnTrial);
        if let Some(ends_at) = fact.trial_ends_at.or(running_until) {
            let plan = self.trial.map_or(self.plan.id, |trial| trial.plan);
            self.trial = Some(Trial { plan, ends_at });
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
