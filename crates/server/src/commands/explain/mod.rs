//! Prints a subscription in plain text: its status, what happens next, what fixes it, its billing and its payments.
//!
//! The sentences are those of `timeline/`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{Id, LifecycleKind, Metadata, Payment, PaymentStatus, PlanId, Subscription};
use uuid::Uuid;

use super::{pluralize, terminal::print_wrapped};
use crate::{
    timeline::{Situation, StatusHistory, deleted_sentence},
    user_export::{ProviderReport, WithDeletedAt},
};

mod billing;
mod ledger;

pub use ledger::print_ledger;

pub use crate::timeline::plain_text::{date, day, money};
use crate::timeline::plain_text::{number, sum};

/// How many of the latest payments are printed.
const MAX_PAYMENTS: usize = 5;

/// Prints the pairs of a record's metadata, one per line.
pub fn print_metadata(indent: &str, metadata: &Metadata) {
    for (key, value) in metadata.pairs() {
        print_wrapped(&format!("{indent}{key}: {}", value.escape_debug()));
    }
}

/// The data that explains a subscription, besides the subscription itself.
pub struct SubscriptionReport<'a> {
    /// The slugs of all plans, including inactive and deleted ones.
    pub slugs: BTreeMap<PlanId, String>,
    /// By subscription.
    pub histories: BTreeMap<Uuid, StatusHistory>,
    /// May include payments of other subscriptions.
    pub payments: &'a [WithDeletedAt<Payment>],
    pub provider: &'a ProviderReport,
    /// Billing time.
    pub now: Timestamp,
}

impl SubscriptionReport<'_> {
    pub fn print(&self, (subscription, deleted_at): &WithDeletedAt<Subscription>) {
        let now = self.now;
        let status = subscription.status_at(now);
        let terms = self.terms(subscription);
        if let Some(deleted_at) = deleted_at {
            println!("{}  deleted {}", subscription.id, date(*deleted_at));
            print_wrapped(&format!("    {terms}"));
            print_wrapped(&format!(
                "    {}",
                deleted_sentence(subscription, *deleted_at)
            ));
            if subscription.credit != 0 {
                let credit = sum(subscription.credit, subscription.plan.price.currency());
                println!("    credit: {credit}");
            }
        } else {
            let access = if subscription.has_access(now) {
                "yes"
            } else {
                "no"
            };
            println!("{}  {status}, access: {access}", subscription.id);
            print_wrapped(&format!("    {terms}"));
            let no_history = StatusHistory::default();
            let history = self.histories.get(&subscription.id.uuid());
            let situation = Situation::new(subscription, history.unwrap_or(&no_history), now);
            print_wrapped(&format!("    {}", situation.sentence()));
            for line in details(&situation) {
                print_wrapped(&format!("    {line}"));
            }
            for step in situation.next_steps() {
                print_wrapped(&format!("    next: {}", step.sentence));
            }
            for fix in situation.fixes() {
                print_wrapped(&format!("    fix: {}", fix.sentence));
            }
        }
        print_metadata("    ", &subscription.metadata);
        self.print_payments(subscription);
        if deleted_at.is_none() {
            self.provider.print(subscription, self.payments);
        }
    }

    /// Describes what the subscription is billed for: `pro, 3 × 19.99 USD, monthly`.
    fn terms(&self, subscription: &Subscription) -> String {
        let plan = subscription.plan.id;
        let plan = self.slugs.get(&plan).cloned();
        let plan = plan.unwrap_or_else(|| subscription.plan.id.to_string());
        let price = subscription.price();
        let price = price.map_or("price unknown".to_owned(), money);
        let quantity = match subscription.quantity.get() {
            1 => String::new(),
            quantity => format!("{quantity} × "),
        };
        format!("{plan}, {quantity}{price}, {}", subscription.billing_cycle)
    }

    fn print_payments(&self, subscription: &Subscription) {
        let payments: Vec<&WithDeletedAt<Payment>> = self
            .payments
            .iter()
            .filter(|(payment, _)| payment.subscription == subscription.id)
            .collect();
        if !payments.is_empty() {
            println!("    payments:");
        }
        let omitted = payments.len().saturating_sub(MAX_PAYMENTS);
        if omitted > 0 {
            println!("      … {}", pluralize(omitted, "earlier payment"));
        }
        for (payment, deleted_at) in payments.into_iter().skip(omitted) {
            let effect = match deleted_at {
                Some(deleted_at) => format!(", deleted {}", date(*deleted_at)),
                None => payment_effect(subscription, payment),
            };
            let (at, amount) = (date(payment.created_at), money(payment.amount));
            let status = payment.status;
            print_wrapped(&format!("      {at}  {amount} {status}{effect}"));
        }
    }
}

/// Returns the sentence about the status, without what only events tell.
pub fn sentence(subscription: &Subscription, now: Timestamp) -> String {
    Situation::new(subscription, &StatusHistory::default(), now).sentence()
}

/// Describes what changes the subscription over time, and its billing.
fn details(situation: &Situation<'_>) -> Vec<String> {
    let kind = situation.kind();
    match (&situation.current.external_id, kind) {
        (_, LifecycleKind::Managed) => {
            let mut lines = vec![format!("lifecycle: {kind}")];
            lines.extend(billing::describe(situation));
            lines
        }
        (Some(external_id), _) => vec![format!("lifecycle: {kind}, as {external_id}")],
        (None, _) => vec![format!("lifecycle: {kind}")],
    }
}

/// Explains what a payment did: refunds, the time that it paid for, or the credit that it became.
fn payment_effect(subscription: &Subscription, payment: &Payment) -> String {
    let refunded = payment.refunded.filter(|refunded| {
        payment.status == PaymentStatus::PartiallyRefunded && refunded.minor_units() > 0
    });
    let refunded = refunded.map_or(String::new(), |refunded| format!(" ({refunded} refunded)"));
    let failure = payment.failure_reason.as_ref();
    let failure = failure.map_or(String::new(), |reason| format!(": {}", reason.as_str()));
    let is_managed = subscription.lifecycle_kind() == LifecycleKind::Managed;
    let effect = match (payment.period, payment.ledger_amount) {
        (Some((start, Some(end))), _) => format!(", paid {} to {}", day(start), day(end)),
        (Some((start, None)), _) => format!(", paid from {}, without end", day(start)),
        (None, Some(_)) => ", became credit".to_owned(),
        (None, None) if is_managed && payment.status.is_settled() => {
            ", not in the ledger".to_owned()
        }
        (None, None) => String::new(),
    };
    format!("{refunded}{failure}{effect}")
}
