//! Explains a subscription in plain text: the reason for its status, its billing, what happens next,
//! and its payments.
//!
//! The domain computes everything that is printed here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{
    Currency, Lifecycle, LifecycleKind, Metadata, Money, Payment, PaymentStatus, PlanId,
    SignedMoney, Subscription, SubscriptionStatus,
};

use super::{pluralize, provider_report::ProviderReport, terminal::print_wrapped};

mod billing;
mod ledger;

pub use ledger::print_ledger;

/// How many of the latest payments are printed.
const MAX_PAYMENTS: usize = 5;

/// Formats an instant to the minute, in UTC.
pub fn date(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M").to_string()
}

fn date_or_never(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "never".to_owned(), date)
}

/// Formats a day, in UTC.
pub fn day(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d").to_string()
}

/// Formats an amount with the currency's decimals: `19.90 USD`.
pub fn money(amount: Money) -> String {
    format!("{amount} {}", amount.currency().code())
}

/// Formats minor units with the currency's decimals: `-19.90`.
fn number(minor_units: i64, currency: Currency) -> String {
    let amount = SignedMoney {
        minor_units,
        currency,
    };
    amount.to_string()
}

/// Prints the pairs of a record's metadata, one per line.
pub fn print_metadata(indent: &str, metadata: &Metadata) {
    for (key, value) in metadata.pairs() {
        print_wrapped(&format!("{indent}{key}: {}", value.escape_debug()));
    }
}

/// A record, and when it was soft-deleted, if it was.
pub type WithDeletedAt<T> = (T, Option<Timestamp>);

/// The data that explains a subscription, besides the subscription itself.
pub struct SubscriptionReport<'a> {
    /// The slugs of all plans, including inactive and deleted ones.
    pub slugs: BTreeMap<PlanId, String>,
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
            print_wrapped(&format!("    {terms}; was {status}, gives no access"));
            if subscription.credit != 0 {
                let currency = subscription.plan.price.currency();
                let credit = number(subscription.credit, currency);
                println!("    credit: {credit} {currency}");
            }
        } else {
            let access = if subscription.has_access(now) {
                "yes"
            } else {
                "no"
            };
            println!("{}  {status}, access: {access}", subscription.id);
            let reason = status_reason(subscription, now);
            print_wrapped(&format!("    {terms}; {reason}"));
            for line in details(subscription, now) {
                print_wrapped(&format!("    {line}"));
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

/// Explains the status in a few words.
pub fn status_reason(subscription: &Subscription, now: Timestamp) -> String {
    let renewal = date_or_never(subscription.renews_at);
    let end = date_or_never(subscription.ends_at);
    let reason = match subscription.status_at(now) {
        SubscriptionStatus::Pending => pending_reason(subscription, now),
        SubscriptionStatus::OnTrial => format!("trial until {renewal}"),
        SubscriptionStatus::Active => format!("renews {renewal}"),
        SubscriptionStatus::Paused => "on hold until it is resumed".to_owned(),
        SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
            format!("late since {}", date_or_never(subscription.late_since))
        }
        SubscriptionStatus::Cancelled => format!("will not renew; ends {end}"),
        SubscriptionStatus::Expired => format!("ended {end}"),
    };
    let start = if now < subscription.starts_at {
        format!("starts {}; ", date(subscription.starts_at))
    } else {
        String::new()
    };
    let suspended = if subscription.suspended {
        "; suspended"
    } else {
        ""
    };
    format!("{start}{reason}{suspended}")
}

fn pending_reason(subscription: &Subscription, now: Timestamp) -> String {
    let currency = subscription.plan.price.currency();
    match subscription.billing_summary(now) {
        None => "waiting for the first payment".to_owned(),
        Some(summary) if summary.amount_due == 0 => "paid".to_owned(),
        Some(summary) => {
            let missing = number(summary.amount_due, currency);
            format!("waiting for a payment of {missing} {currency}")
        }
    }
}

/// Explains what changes the subscription over time, its billing and what happens next.
fn details(subscription: &Subscription, now: Timestamp) -> Vec<String> {
    let kind = subscription.lifecycle_kind();
    let is_late = subscription.late_since.is_some();
    let mut lines = Vec::new();
    match (&subscription.external_id, kind) {
        (_, LifecycleKind::Managed) => {
            lines.push(format!("lifecycle: {kind}"));
            lines.extend(billing::explain(subscription, now));
        }
        (Some(external_id), _) => {
            lines.push(format!("lifecycle: {kind}, as {external_id}"));
            if is_late {
                lines.push("next: the payment provider's update".to_owned());
            }
        }
        (None, _) => {
            let unknown_price = subscription.lifecycle != Lifecycle::Recorded;
            let reason = if unknown_price {
                "; the service manages it once it has a price"
            } else {
                ""
            };
            lines.push(format!("lifecycle: {kind}{reason}"));
            if subscription.reactivate(now).is_some() {
                lines.push("next: a completed payment makes it active".to_owned());
            }
        }
    }
    lines
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
