//! Prints the billing of a managed subscription: its period, its credit and what is due.

use perennial_domain::{BillingSummary, SubscriptionStatus};

use super::{date, sum};
use crate::timeline::Situation;

/// Describes the billing of a managed subscription, one fact per line.
pub(super) fn describe(situation: &Situation<'_>) -> Vec<String> {
    let Some(summary) = situation.billing() else {
        return Vec::new();
    };
    let currency = situation.currency();
    let [credit, due] = [summary.credit, summary.amount_due].map(|units| sum(units, currency));
    let paid_until = summary.paid_until.map(date);
    let paid_until = paid_until.map_or(String::new(), |date| format!(", paid until: {date}"));
    let mut lines = Vec::from_iter(describe_period(situation, &summary));
    lines.push(format!("credit: {credit}, amount due: {due}{paid_until}"));
    // Past due and unpaid already say it.
    let is_paused = situation.status() == SubscriptionStatus::Paused;
    if let Some(since) = situation.current.late_since.filter(|_| is_paused) {
        lines.push(format!("late since: {}", date(since)));
    }
    lines
}

fn describe_period(situation: &Situation<'_>, summary: &BillingSummary) -> Option<String> {
    let current = &situation.current;
    let start = summary.period_starts_at?;
    let charged = current.period.filter(|period| period.starts_at == start);
    let kind = match charged {
        None if current.renews_at == Some(start) => "not paid",
        // Only a dispute makes the credit negative.
        _ if summary.credit < 0 => "disputed",
        Some(period) if period.amount() > 0 => "paid",
        _ => "free",
    };
    let end = summary
        .period_ends_at
        .map_or_else(|| "never".to_owned(), date);
    Some(format!("current period: {} to {end}, {kind}", date(start)))
}
