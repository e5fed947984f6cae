//! Explains the billing of a managed subscription: its credit and period, and what happens next.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    BillingSummary, DueTransition, EntryType, Subscription, SubscriptionStatus, Transition,
};

use super::{date, date_or_never, number};

/// The precision of stored timestamps.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// Explains the billing of a managed subscription at `now`, one fact per line.
pub(super) fn explain(subscription: &Subscription, now: Timestamp) -> Vec<String> {
    let due = subscription.due_transitions(now);
    let current = due.last().map_or(subscription, |due| &due.after);
    let mut lines = Vec::new();
    // The switch to managed billing is stored with the first change that clients can see.
    let late = due.iter().find(|due| due.transition != Transition::Managed);
    if let Some(late) = late {
        let kind = late.transition.event_kind();
        let at = date(late.at);
        lines.push(format!("not applied yet: {kind}, due since {at}"));
    }
    let Some(summary) = current.billing_summary(now) else {
        return lines;
    };
    lines.extend(explain_period(current, &summary));
    let currency = current.plan.price.currency();
    let [credit, due] = [summary.credit, summary.amount_due].map(|units| number(units, currency));
    let paid_until = summary.paid_until.map(date);
    let paid_until = paid_until.map_or(String::new(), |date| format!(", paid until: {date}"));
    lines.push(format!(
        "credit: {credit} {currency}, amount due: {due} {currency}{paid_until}"
    ));
    // Past due and unpaid already say it.
    let is_paused = current.status == SubscriptionStatus::Paused;
    if let Some(since) = current.late_since.filter(|_| is_paused) {
        lines.push(format!("late since: {}", date(since)));
    }
    lines.extend(forecast(current));
    lines
}

fn explain_period(current: &Subscription, summary: &BillingSummary) -> Option<String> {
    let start = summary.period_starts_at?;
    let charged = current.period.filter(|period| period.starts_at == start);
    let kind = match charged {
        None if current.renews_at == Some(start) => "not paid",
        // Only a dispute makes the credit negative.
        Some(_) if summary.credit < 0 => "disputed",
        Some(period) if period.cost > 0 => "paid",
        _ => "free",
    };
    let end = date_or_never(summary.period_ends_at);
    Some(format!("current period: {} to {end}, {kind}", date(start)))
}

/// Explains the next transition. For a late subscription, also those that follow without a payment.
fn forecast(current: &Subscription) -> Vec<String> {
    let mut lines = Vec::new();
    let mut state = current.clone();
    while let Some(next) = state.next_transition(Timestamp::MAX) {
        let Some(text) = explain_transition(&state, &next) else {
            break;
        };
        let label = if lines.is_empty() { "next" } else { "then" };
        lines.push(format!("{label}: {text}"));
        if next.transition != Transition::Unpaid {
            break;
        }
        state = next.after;
    }
    lines
}

/// Explains a transition from `before`; `None` if the status already says it.
fn explain_transition(before: &Subscription, next: &DueTransition) -> Option<String> {
    let currency = before.plan.price.currency();
    let at = date(next.at);
    let period = match before.status {
        SubscriptionStatus::OnTrial => "the trial ends and the first period",
        SubscriptionStatus::Pending => "the first period",
        _ => "the next period",
    };
    let amount = number(before.amount()?, currency);
    // The amount that prevents the transition, and the amount due afterwards.
    let just_before = next.at.saturating_sub(TICK).unwrap_or(next.at);
    let missing_before = before.billing_summary(just_before)?.amount_due;
    let missing_after = next.after.billing_summary(next.at)?.amount_due;
    let unless_paid = |missing| {
        let missing = number(missing, currency);
        format!("unless {missing} {currency} is paid")
    };
    Some(match next.transition {
        Transition::Managed => format!("on {at} the service starts to manage it"),
        Transition::Renewed | Transition::Started => {
            let entries = next.entries.iter();
            let charges = entries.filter(|entry| entry.entry_type == EntryType::Period);
            let total: i64 = charges.map(|entry| -entry.amount).sum();
            if total == 0 {
                format!("on {at} {period} starts, free of charge")
            } else {
                let [total, credit] = [total, before.credit].map(|units| number(units, currency));
                format!("on {at} {period} is charged: {total} {currency} from a credit of {credit}")
            }
        }
        Transition::PastDue => {
            let unless = unless_paid(missing_after);
            format!("on {at} {period} is due: {amount} {currency}; past_due from then {unless}")
        }
        Transition::Unpaid => {
            let unless = unless_paid(missing_before);
            format!("access ends on {at} {unless}")
        }
        Transition::Expired if before.ends_at.is_some() => {
            let is_known = before.status == SubscriptionStatus::Cancelled;
            return (!is_known).then(|| format!("ends on {at}"));
        }
        Transition::Expired => {
            let unless = unless_paid(missing_before);
            format!("expires on {at} {unless}")
        }
    })
}

#[cfg(test)]
mod tests {
    use perennial_domain::{
        BillingCycle, CreateContext, Dunning, EntryCause, Id, Lifecycle, Money, NewSubscription,
        Offer, PaymentId, PaymentPosting, PlanId, SubscriptionId, UserId,
    };
    use uuid::Uuid;

    use super::*;

    fn noon(day: &str) -> Timestamp {
        format!("{day}T12:00:00Z").parse().unwrap()
    }

    /// A monthly subscription of 19.99 USD, created on 2026-11-15.
    fn subscription() -> Subscription {
        let offer = Offer {
            plan: PlanId::new(Uuid::nil()),
            slug: "pro".parse().unwrap(),
            price: Money::from_minor_units(1_999, "USD".parse().unwrap()).unwrap(),
            billing_cycle: BillingCycle::Monthly,
            trial_days: 0,
            is_active: true,
        };
        let context = CreateContext {
            offer: &offer,
            lifecycle: Lifecycle::Managed(Dunning {
                since: Timestamp::UNIX_EPOCH,
                unpaid_after: 7,
                expired_after: 30,
            }),
            had_trial: false,
            id: SubscriptionId::new(Uuid::nil()),
            now: noon("2026-11-15"),
        };
        let new = NewSubscription::new(UserId::new(Uuid::nil()));
        Subscription::create(&new, &context).unwrap().after
    }

    fn pay(subscription: &Subscription, amount: i64) -> Subscription {
        let posting = PaymentPosting {
            payment: PaymentId::new(Uuid::nil()),
            cause: EntryCause::Payment,
            amount,
        };
        let paid = subscription.apply_posting(&posting, noon("2026-11-15"));
        paid.unwrap().after
    }

    #[test]
    fn pending_subscription_names_the_missing_amount_and_the_expiry() {
        assert_eq!(
            explain(&subscription(), noon("2026-11-15")),
            [
                "credit: 0.00 USD, amount due: 19.99 USD",
                "next: expires on 2026-12-15 12:00 unless 19.99 USD is paid",
            ]
        );
    }

    #[test]
    fn paid_subscription_names_the_next_charge() {
        let paid = pay(&subscription(), 3_999);
        assert_eq!(
            explain(&paid, noon("2026-11-20")),
            [
                "current period: 2026-11-15 12:00 to 2026-12-15 12:00, paid",
                "credit: 20.00 USD, amount due: 0.00 USD, paid until: 2027-01-15 12:00",
                "next: on 2026-12-15 12:00 the next period is charged: 19.99 USD from a credit of 20.00",
            ]
        );
    }

    #[test]
    fn partly_paid_renewal_names_what_is_missing() {
        let paid = pay(&subscription(), 2_500);
        let lines = explain(&paid, noon("2026-11-20"));
        assert_eq!(
            lines.last().unwrap(),
            "next: on 2026-12-15 12:00 the next period is due: 19.99 USD; past_due from then unless 14.98 USD is paid"
        );
    }

    #[test]
    fn late_subscription_names_the_end_of_access_even_if_no_worker_has_run() {
        let paid = pay(&subscription(), 1_999);
        assert_eq!(
            explain(&paid, noon("2026-12-16")),
            [
                "not applied yet: subscription.past_due, due since 2026-12-15 12:00",
                "current period: 2026-12-15 12:00 to 2027-01-15 12:00, not paid",
                "credit: 0.00 USD, amount due: 19.99 USD, paid until: 2026-12-15 12:00",
                "next: access ends on 2026-12-22 12:00 unless 19.99 USD is paid",
                "then: expires on 2027-01-14 12:00 unless 19.99 USD is paid",
            ]
        );
    }
}
