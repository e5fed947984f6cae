//! Draws reports in the terminal.

use jiff::civil::Date;
use perennial_domain::MovementKind;

use super::chart::{self, Bar};
use crate::{
    commands::{pluralize, terminal::print_wrapped},
    reports::{ChurnReport, PaymentsReport, RevenueReport, TrialsReport},
};

/// Names an interval: by its month if it is a whole one, otherwise by its first day.
fn label(from: Date, to: Date) -> String {
    if from == from.first_of_month()
        && to.month() == from.month()
        && to.year() == from.year()
        && to > from
    {
        return from.strftime("%Y-%m").to_string();
    }
    from.to_string()
}

/// Reads the length of a bar from a formatted amount: its digits.
fn size(amount: &str) -> i128 {
    let digits: String = amount.chars().filter(char::is_ascii_digit).collect();
    let size = digits.parse().unwrap_or(0);
    if amount.starts_with('-') { -size } else { size }
}

/// Adds a sign to an amount that increases.
fn signed(amount: &str) -> String {
    if size(amount) > 0 {
        format!("+{amount}")
    } else {
        amount.to_owned()
    }
}

fn rate(rate: Option<&String>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| percent(rate))
}

/// Formats a rate with four decimals as percent: `0.0312` becomes `3.12%`.
fn percent(rate: &str) -> String {
    let hundredths = size(rate);
    let sign = if hundredths < 0 { "-" } else { "" };
    let magnitude = hundredths.unsigned_abs();
    format!("{sign}{}.{:02}%", magnitude / 100, magnitude % 100)
}

pub(super) fn revenue(report: &RevenueReport) {
    if report.currencies.is_empty() {
        println!("no subscription has recurring revenue yet");
    }
    for currency in &report.currencies {
        let closing = &currency.closing;
        let users = pluralize(closing.users, "paying user");
        print_wrapped(&format!(
            "MRR in {}: {}, committed {}, {}",
            currency.currency, closing.amount.mrr, closing.committed_mrr, users
        ));
        let bars: Vec<Bar> = { currency.intervals.iter() }
            .map(|interval| {
                let net = size(&interval.closing.amount.mrr) - size(&interval.opening.amount.mrr);
                Bar {
                    label: label(interval.from, interval.to),
                    size: size(&interval.closing.amount.mrr),
                    figures: vec![
                        interval.closing.amount.mrr.clone(),
                        with_decimals(net, &interval.closing.amount.mrr),
                        interval.closing.users.to_string(),
                    ],
                }
            })
            .collect();
        chart::print(&["MRR", "net", "users"], &bars);
        if let Some(last) = currency.intervals.last() {
            println!("movements since {}:", last.from);
            for kind in MovementKind::ALL {
                let Some(figures) = last.movements.get(kind.as_str()) else {
                    continue;
                };
                if size(&figures.amount.arr) != 0 {
                    println!("  {:12} {:>14}", kind.as_str(), signed(&figures.amount.mrr));
                }
            }
        }
        let not_counted: Vec<String> = { currency.not_counted.iter() }
            .map(|(reason, figures)| format!("{} {reason}", figures.subscriptions))
            .collect();
        if !not_counted.is_empty() {
            print_wrapped(&format!("not counted: {}", not_counted.join(", ")));
        }
        println!();
    }
}

/// Formats minor units with as many decimals as an amount of the same currency has, and with a sign.
fn with_decimals(minor_units: i128, like: &str) -> String {
    let scale = like
        .rsplit_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    let digits = format!("{:0>width$}", minor_units.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = match minor_units {
        0 => "",
        units if units < 0 => "-",
        _ => "+",
    };
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

pub(super) fn churn(report: &ChurnReport) {
    if report.currencies.is_empty() {
        println!("no subscription has recurring revenue yet");
    }
    for currency in &report.currencies {
        println!("churn in {}", currency.currency);
        let bars: Vec<Bar> = { currency.intervals.iter() }
            .map(|interval| Bar {
                label: label(interval.from, interval.to),
                size: interval.gross_revenue_churn_rate.as_deref().map_or(0, size),
                figures: vec![
                    rate(interval.gross_revenue_churn_rate.as_ref()),
                    rate(interval.net_revenue_churn_rate.as_ref()),
                    rate(interval.user_churn_rate.as_ref()),
                    interval.churned_users.to_string(),
                ],
            })
            .collect();
        chart::print(&["gross", "net", "users", "lost"], &bars);
        println!();
    }
}

pub(super) fn trials(report: &TrialsReport) {
    let bars: Vec<Bar> = { report.intervals.iter() }
        .map(|interval| {
            let outcomes = &interval.outcomes;
            Bar {
                label: label(interval.from, interval.to),
                size: i128::from(outcomes.started),
                figures: vec![
                    outcomes.started.to_string(),
                    outcomes.converted.to_string(),
                    outcomes.lost.to_string(),
                    rate(outcomes.conversion_rate.as_ref()),
                ],
            }
        })
        .collect();
    chart::print(&["started", "converted", "lost", "rate"], &bars);
}

pub(super) fn payments(report: &PaymentsReport) {
    if report.currencies.is_empty() {
        println!("there are no payments in this period");
    }
    for currency in &report.currencies {
        println!("payments in {}", currency.currency);
        let bars: Vec<Bar> = { currency.intervals.iter() }
            .map(|interval| Bar {
                label: label(interval.from, interval.to),
                size: size(&interval.net),
                figures: vec![
                    interval.net.clone(),
                    interval.refunded.amount.clone(),
                    interval.failed.amount.clone(),
                    interval.late.recovered.subscriptions.to_string(),
                ],
            })
            .collect();
        chart::print(&["net", "refunded", "failed", "recovered"], &bars);
        println!();
    }
}
