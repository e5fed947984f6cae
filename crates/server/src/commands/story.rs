//! Where a subscription stands, why, and what would help: for somebody who is asked.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Lifecycle, Money, Payment, PaymentStatus, Status, Subscription};

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

/// Prints it: where it stands, why and what comes next, and what was paid.
pub fn print(one: &Subscription, payments: &[Payment], lifecycle: &Lifecycle, now: Timestamp) {
    let access = if one.has_access(now) { "yes" } else { "no" };
    println!("{}  {}, access: {access}", one.id, one.status_at(now));
    let price = one.price().map_or("price not known".to_owned(), money);
    println!("    {price}, {}; {}", one.billing_cycle, why(one, now));
    for line in next(one, lifecycle, now) {
        println!("    {line}");
    }
    let own: Vec<&Payment> = payments
        .iter()
        .filter(|paid| paid.subscription == one.id)
        .collect();
    let left_out = own.len().saturating_sub(PAYMENTS);
    if left_out > 0 {
        println!("    … {left_out} earlier payments");
    }
    for paid in own.into_iter().skip(left_out) {
        println!(
            "    {}  {} {}{}",
            date(paid.created_at),
            money(paid.amount),
            paid.status,
            counted(one, paid, lifecycle)
        );
    }
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
    let suspended = if one.suspended { "; suspended" } else { "" };
    format!("{said}{suspended}")
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
