//! What an import or a reconcile has counted.

use std::collections::BTreeMap;

use perennial_domain::{BillingCycle, PaymentFact, SubscriptionFact};
use serde::{Deserialize, Serialize};

use super::{
    fetched_object::FetchedObject,
    list_page::{ListStep, ListedObject},
    listed_apply::ListedOutcome,
};

/// The failures that are kept as text.
const MAX_FAILURES: usize = 20;

/// Objects by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCounts {
    pub created: u64,
    /// Differ from the record, and are fetched by the service's worker.
    pub changed: u64,
    pub unchanged: u64,
    /// Wait for a plan, a user or a subscription.
    pub waiting: u64,
    /// Invoices of 0, and invoices and orders without a plan of ours.
    pub ignored: u64,
    /// Cannot be read, or need a decision.
    pub failed: u64,
}

impl ListCounts {
    /// Returns the number of objects with a fact that no record followed.
    pub fn news(&self) -> u64 {
        self.created + self.changed
    }

    /// Returns the number of objects that were listed.
    pub fn total(&self) -> u64 {
        self.created + self.changed + self.unchanged + self.waiting + self.ignored + self.failed
    }
}

/// The number of payments, and the sums of their amounts in minor units.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentTotal {
    pub count: u64,
    pub amount_minor: i64,
    pub refunded_minor: i64,
}

/// What was listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReport {
    pub subscriptions: ListCounts,
    pub invoices: ListCounts,
    /// Orders of Lemon Squeezy. Those of subscriptions are ignored.
    pub orders: ListCounts,
    /// The number of subscriptions by status.
    pub subscription_totals: BTreeMap<String, u64>,
    /// By currency, then by status. Invoices of 0 are not in it, because they get no payment.
    pub payment_totals: BTreeMap<String, BTreeMap<String, PaymentTotal>>,
    /// The first failures and reasons to wait.
    pub problems: Vec<String>,
    /// The number of invoices that the age of the subscriptions suggests. APIs do not tell how long a list is.
    pub estimated_invoices: u64,
}

impl ListReport {
    /// Returns the number of objects that were listed.
    pub fn total(&self) -> u64 {
        self.subscriptions.total() + self.invoices.total() + self.orders.total()
    }

    pub(super) fn counts_mut(&mut self, step: ListStep) -> &mut ListCounts {
        match step {
            ListStep::Subscriptions => &mut self.subscriptions,
            ListStep::Invoices => &mut self.invoices,
            ListStep::Orders => &mut self.orders,
        }
    }

    /// Counts an object.
    pub(super) fn add(&mut self, step: ListStep, listed: &ListedObject, outcome: ListedOutcome) {
        let is_ignored = outcome == ListedOutcome::Ignored;
        let counts = self.counts_mut(step);
        let problem = match outcome {
            ListedOutcome::Created => {
                counts.created += 1;
                None
            }
            ListedOutcome::Changed => {
                counts.changed += 1;
                None
            }
            ListedOutcome::Unchanged => {
                counts.unchanged += 1;
                None
            }
            ListedOutcome::Ignored => {
                counts.ignored += 1;
                None
            }
            ListedOutcome::Waiting(reason) => {
                counts.waiting += 1;
                Some(format!("{} waits: {reason}", listed.object.id))
            }
            ListedOutcome::Failed(reason) => {
                counts.failed += 1;
                Some(format!("{} failed: {reason}", listed.object.id))
            }
        };
        self.problems
            .extend(problem.filter(|_| self.problems.len() < MAX_FAILURES));
        match &listed.fetched {
            Ok(FetchedObject::Subscription { reported, .. }) => {
                let status = reported.fact.status.to_string();
                *self.subscription_totals.entry(status).or_default() += 1;
                self.estimated_invoices += estimate_invoices(&reported.fact);
            }
            Ok(FetchedObject::Payment(reported)) => self.add_payment(&reported.fact),
            Ok(FetchedObject::Purchase(purchase)) if !is_ignored => {
                self.add_payment(&purchase.payment.fact);
                let status = purchase.subscription.fact.status.to_string();
                *self.subscription_totals.entry(status).or_default() += 1;
            }
            Ok(
                FetchedObject::Purchase(_)
                | FetchedObject::LeadsTo(_)
                | FetchedObject::Unrelated(_),
            )
            | Err(_) => {}
        }
    }

    fn add_payment(&mut self, fact: &PaymentFact) {
        let amount = fact.amount;
        if amount.minor_units() == 0 {
            return;
        }
        let by_status = self
            .payment_totals
            .entry(amount.currency().code().to_owned())
            .or_default();
        let total = by_status.entry(fact.status.to_string()).or_default();
        total.count += 1;
        total.amount_minor = total.amount_minor.saturating_add(amount.minor_units());
        let refunded = fact.refunded_minor.unwrap_or(0);
        total.refunded_minor = total.refunded_minor.saturating_add(refunded);
    }
}

/// Returns how many invoices a subscription may have: one for each started period.
fn estimate_invoices(fact: &SubscriptionFact) -> u64 {
    let cycle = fact.price.map(|price| price.billing_cycle);
    let days = match cycle.unwrap_or(BillingCycle::Monthly) {
        BillingCycle::Daily => 1,
        BillingCycle::Weekly => 7,
        BillingCycle::Monthly => 30,
        BillingCycle::Quarterly => 91,
        BillingCycle::Semiannual => 182,
        BillingCycle::Yearly => 365,
        BillingCycle::Lifetime => return 1,
    };
    let Some(end) = fact.ends_at.or(fact.renews_at) else {
        return 1;
    };
    let seconds = end.as_second().saturating_sub(fact.starts_at.as_second());
    u64::try_from(seconds / (days * 86_400)).unwrap_or(0).max(1)
}
