//! Explains a subscription in plain text: the reason for its status, what happens next, and its
//! payments.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    Lifecycle, Money, Payment, PaymentStatus, PlanId, Subscription, SubscriptionStatus,
};

use super::{pluralize, terminal::print_wrapped};

/// How many of the latest payments are printed.
const MAX_PAYMENTS: usize = 5;

/// Formats an instant to the minute, in UTC.
pub fn date(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M").to_string()
}

fn date_or_never(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "never".to_owned(), date)
}

/// Formats an amount with the currency's decimals: `19.90 USD`.
fn money(amount: Money) -> String {
    format!("{amount} {}", amount.currency().code())
}

/// A record, and when it was soft-deleted, if it was.
pub type WithDeletedAt<T> = (T, Option<Timestamp>);

/// The data that explains a subscription, besides the subscription itself.
pub struct SubscriptionReport<'a> {
    /// The slugs of all plans, including inactive and deleted ones.
    pub slugs: BTreeMap<PlanId, String>,
    /// May include payments of other subscriptions.
    pub payments: &'a [WithDeletedAt<Payment>],
    pub lifecycle: &'a Lifecycle,
    /// Billing time.
    pub now: Timestamp,
}

impl SubscriptionReport<'_> {
    pub fn print(&self, (subscription, deleted_at): &WithDeletedAt<Subscription>) {
        let Self { lifecycle, now, .. } = *self;
        let plan = subscription.plan.id;
        let plan = self.slugs.get(&plan).cloned();
        let plan = plan.unwrap_or_else(|| subscription.plan.id.to_string());
        let price = subscription
            .price()
            .map_or("price unknown".to_owned(), money);
        let (status, cycle) = (subscription.status_at(now), subscription.billing_cycle);
        if let Some(deleted_at) = deleted_at {
            println!("{}  deleted {}", subscription.id, date(*deleted_at));
            print_wrapped(&format!(
                "    {plan}, {price}, {cycle}; was {status}, gives no access"
            ));
        } else {
            let access = if subscription.has_access(now) {
                "yes"
            } else {
                "no"
            };
            println!("{}  {status}, access: {access}", subscription.id);
            let reason = status_reason(subscription, now);
            print_wrapped(&format!("    {plan}, {price}, {cycle}; {reason}"));
            for line in next_steps(subscription, lifecycle, now) {
                print_wrapped(&format!("    {line}"));
            }
        }
        self.print_payments(subscription);
    }

    fn print_payments(&self, subscription: &Subscription) {
        let payments: Vec<&WithDeletedAt<Payment>> = self
            .payments
            .iter()
            .filter(|(payment, _)| payment.subscription == subscription.id)
            .collect();
        let omitted = payments.len().saturating_sub(MAX_PAYMENTS);
        if omitted > 0 {
            println!("    … {}", pluralize(omitted, "earlier payment"));
        }
        for (payment, deleted_at) in payments.into_iter().skip(omitted) {
            let effect = match deleted_at {
                Some(deleted_at) => format!(", deleted {}", date(*deleted_at)),
                None => payment_effect(subscription, payment, self.lifecycle),
            };
            let (at, amount) = (date(payment.created_at), money(payment.amount));
            print_wrapped(&format!("    {at}  {amount} {}{effect}", payment.status));
        }
    }
}

/// Explains the status in a few words.
pub fn status_reason(subscription: &Subscription, now: Timestamp) -> String {
    let renewal = date_or_never(subscription.renews_at);
    let end = date_or_never(subscription.ends_at);
    let reason = match subscription.status_at(now) {
        SubscriptionStatus::Pending => "waiting for the first payment".to_owned(),
        SubscriptionStatus::OnTrial => format!("trial until {renewal}"),
        SubscriptionStatus::Active if subscription.prepaid > 0 => {
            format!("renews {renewal}, already paid")
        }
        SubscriptionStatus::Active => format!("renews {renewal}"),
        SubscriptionStatus::Paused => "on hold".to_owned(),
        SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => format!(
            "due since {}, no payment for that period",
            date_or_never(subscription.past_due_since)
        ),
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

/// Explains what happens to a subscription whose renewal is not paid, and what makes it active.
fn next_steps(subscription: &Subscription, lifecycle: &Lifecycle, now: Timestamp) -> Vec<String> {
    let status = subscription.status_at(now);
    if !matches!(
        status,
        SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid
    ) {
        return Vec::new();
    }
    if let Some(external_id) = &subscription.external_id {
        return vec![format!(
            "run by a payment provider as {external_id}: waiting for the provider's update"
        )];
    }
    let Lifecycle::Managed(rules) = lifecycle else {
        return vec!["a completed payment makes it active".to_owned()];
    };
    let days_after_due = |days: u16| {
        let days = SignedDuration::from_hours(24 * i64::from(days));
        let due = subscription.past_due_since;
        date_or_never(due.and_then(|due| due.checked_add(days).ok()))
    };
    let mut lines = Vec::new();
    if status == SubscriptionStatus::PastDue {
        let unpaid = days_after_due(rules.unpaid_after);
        lines.push(format!("no access from {unpaid}"));
    }
    let expired = days_after_due(rules.expired_after);
    lines.push(format!("expires {expired}"));
    lines.push(match subscription.price() {
        Some(price) => {
            let price = money(price);
            format!("a completed payment of {price} or more makes it active")
        }
        None => "a completed payment makes it active".to_owned(),
    });
    lines
}

/// Explains which period a payment paid for, if the service counts payments for the subscription.
fn payment_effect(subscription: &Subscription, payment: &Payment, lifecycle: &Lifecycle) -> String {
    let is_managed =
        matches!(lifecycle, Lifecycle::Managed(_)) && subscription.external_id.is_none();
    match (payment.period, subscription.price()) {
        (Some(period), _) => format!(", for the period from {}", date(period)),
        (None, _) if !is_managed || payment.status != PaymentStatus::Completed => String::new(),
        (None, Some(price)) if price.currency() != payment.amount.currency() => {
            format!(", not counted: not in {}", price.currency().code())
        }
        (None, Some(price)) if payment.amount.minor_units() < price.minor_units() => {
            format!(", not counted: less than {}", money(price))
        }
        (None, _) => ", not counted".to_owned(),
    }
}
