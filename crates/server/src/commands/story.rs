//! Where a subscription stands, why, and what would help: for somebody who is asked.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Lifecycle, Money, Payment, PaymentStatus, PlanId, Status, Subscription};
use serde::Serialize;
use serde_json::Value;

use super::{screen::say, so_many};

/// How many of the latest payments are told.
const PAYMENTS: usize = 5;

/// An instant, for people.
pub fn date(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M").to_string()
}

fn or_never(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "never".to_owned(), date)
}

fn money(amount: Money) -> String {
    format!("{amount} {}", amount.currency().code())
}

/// Something that is kept, and when it was deleted, if it was.
pub type Kept<T> = (T, Option<Timestamp>);

/// What a subscription's story is told from, beside itself.
pub struct Story<'a> {
    /// What plans are called, also those that are not offered any more.
    pub slugs: BTreeMap<PlanId, String>,
    /// What was paid, also for others.
    pub payments: &'a [Kept<Payment>],
    /// Who moves time.
    pub lifecycle: &'a Lifecycle,
    /// What time it is.
    pub now: Timestamp,
}

impl Story<'_> {
    /// Prints it: where it stands, why and what comes next, and what was paid.
    pub fn print(&self, (one, deleted): &Kept<Subscription>) {
        let Self { lifecycle, now, .. } = *self;
        let plan = self.slugs.get(&one.terms.plan);
        let plan = plan.map_or_else(|| one.terms.plan.to_string(), Clone::clone);
        let price = one.price().map_or("price not known".to_owned(), money);
        let (status, cycle) = (one.status_at(now), one.billing_cycle);
        if let Some(deleted) = deleted {
            println!("{}  deleted {}", one.id, date(*deleted));
            say(&format!(
                "    {plan}, {price}, {cycle}; was {status}, gives no access"
            ));
        } else {
            let access = if one.has_access(now) { "yes" } else { "no" };
            println!("{}  {status}, access: {access}", one.id);
            say(&format!("    {plan}, {price}, {cycle}; {}", why(one, now)));
            for line in next(one, lifecycle, now) {
                say(&format!("    {line}"));
            }
        }
        let own: Vec<&Kept<Payment>> = self
            .payments
            .iter()
            .filter(|(paid, _)| paid.subscription == one.id)
            .collect();
        let left_out = own.len().saturating_sub(PAYMENTS);
        if left_out > 0 {
            println!("    … {}", so_many(left_out, "earlier payment"));
        }
        for (paid, deleted) in own.into_iter().skip(left_out) {
            let what = match deleted {
                Some(deleted) => format!(", deleted {}", date(*deleted)),
                None => counted(one, paid, lifecycle),
            };
            let (at, amount) = (date(paid.created_at), money(paid.amount));
            say(&format!("    {at}  {amount} {}{what}", paid.status));
        }
    }
}

/// A record as the interface shows it, with when it was deleted. What is deleted gives no access, whatever it said before.
pub fn json(view: impl Serialize, deleted: Option<Timestamp>) -> serde_json::Result<Value> {
    let mut shown = serde_json::to_value(view)?;
    if let Some(fields) = shown.as_object_mut() {
        let instant = deleted.map(|instant| instant.to_string());
        fields.insert("deleted_at".to_owned(), instant.into());
        if deleted.is_some() && fields.contains_key("is_active") {
            fields.insert("is_active".to_owned(), false.into());
        }
    }
    Ok(shown)
}

/// Where it stands, in a sentence.
pub fn why(one: &Subscription, now: Timestamp) -> String {
    let said = match one.status_at(now) {
        Status::Pending => "waits for its first payment".to_owned(),
        Status::OnTrial => format!("a trial until {}", or_never(one.renews_at)),
        Status::Active if one.prepaid > 0 => {
            format!("renews {}, which is paid for", or_never(one.renews_at))
        }
        Status::Active => format!("renews {}", or_never(one.renews_at)),
        Status::Paused => "stopped for a while".to_owned(),
        Status::PastDue | Status::Unpaid => format!(
            "late since {}: nothing has paid for that period",
            or_never(one.late_since)
        ),
        Status::Cancelled => format!("will not renew; ends {}", or_never(one.ends_at)),
        Status::Expired => format!("over since {}", or_never(one.ends_at)),
    };
    let begins = if now < one.starts_at {
        format!("begins {}; ", date(one.starts_at))
    } else {
        String::new()
    };
    let suspended = if one.suspended { "; suspended" } else { "" };
    format!("{begins}{said}{suspended}")
}

/// What comes next, and what would help.
fn next(one: &Subscription, lifecycle: &Lifecycle, now: Timestamp) -> Vec<String> {
    let status = one.status_at(now);
    let late = matches!(status, Status::PastDue | Status::Unpaid);
    if !late {
        return Vec::new();
    }
    if let Some(external) = &one.external_id {
        return vec![format!(
            "run by a payment provider, as {external}: it waits for the provider's word"
        )];
    }
    let Lifecycle::Managed(rules) = lifecycle else {
        return vec!["a completed payment makes it active".to_owned()];
    };
    let after = |days: u16| {
        let days = SignedDuration::from_hours(24 * i64::from(days));
        or_never(
            one.late_since
                .and_then(|since| since.checked_add(days).ok()),
        )
    };
    let mut lines = Vec::new();
    if status == Status::PastDue {
        lines.push(format!("no access from {}", after(rules.unpaid_after)));
    }
    lines.push(format!("over on {}", after(rules.expired_after)));
    lines.push(match one.price() {
        Some(price) => format!(
            "a completed payment of {} or more makes it active",
            money(price)
        ),
        None => "a completed payment makes it active".to_owned(),
    });
    lines
}

/// What a payment has paid for, where that is counted.
fn counted(one: &Subscription, paid: &Payment, lifecycle: &Lifecycle) -> String {
    let managed = matches!(lifecycle, Lifecycle::Managed(_)) && one.external_id.is_none();
    match (paid.period, one.price()) {
        (Some(period), _) => format!(", for the period from {}", date(period)),
        (None, _) if !managed || paid.status != PaymentStatus::Completed => String::new(),
        (None, Some(price)) if price.currency() != paid.amount.currency() => {
            format!(": not in {}, and so for nothing", price.currency().code())
        }
        (None, Some(price)) if paid.amount.minor_units() < price.minor_units() => {
            format!(": less than {}, and so for nothing", money(price))
        }
        (None, _) => ", for nothing".to_owned(),
    }
}
