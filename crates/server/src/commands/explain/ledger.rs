//! Prints the latest entries of a subscription's ledger as a table.

use perennial_domain::{Currency, Subscription};
use serde_json::Value;

use super::{super::text_table::Listing, day, number};
use crate::subscriptions::ledger::table::StoredEntry;

/// How many of the latest entries are printed.
pub const MAX_ENTRIES: usize = 10;

/// Times are left out: they would make the table wider than 80 columns.
const HEADER: [&str; 6] = ["AT", "TYPE", "AMOUNT", "CREDIT", "PERIOD", "CAUSE"];

/// Prints the latest entries, oldest first. `entries` is in that order.
pub fn print_ledger(subscription: &Subscription, entries: &[StoredEntry]) {
    if entries.is_empty() {
        return;
    }
    let currency = subscription.plan.price.currency();
    let omitted = entries.len().saturating_sub(MAX_ENTRIES);
    if omitted > 0 {
        println!("ledger ({currency}, UTC; {omitted} earlier with --json):");
    } else {
        println!("ledger ({currency}, UTC):");
    }
    let shown: Vec<&StoredEntry> = entries.iter().skip(omitted).collect();
    let amounts = right_aligned(shown.iter().map(|row| row.entry.amount), currency);
    let credits = right_aligned(shown.iter().map(|row| row.entry.credit_after), currency);
    let mut list = Listing::new(HEADER, false);
    for ((row, amount), credit) in shown.into_iter().zip(amounts).zip(credits) {
        let entry = &row.entry;
        let period = entry.period.map_or(String::new(), |(start, end)| {
            let end = end.map_or("no end".to_owned(), day);
            format!("{}/{end}", day(start))
        });
        let (at, entry_type, cause) = (day(entry.at), entry.entry_type, entry.cause);
        let row = [
            at,
            entry_type.as_str().to_owned(),
            amount,
            credit,
            period,
            cause.as_str().to_owned(),
        ];
        list.add(row, &Value::Null);
    }
    list.print();
}

fn right_aligned(minor_units: impl Iterator<Item = i64>, currency: Currency) -> Vec<String> {
    let numbers: Vec<String> = minor_units.map(|units| number(units, currency)).collect();
    let width = numbers.iter().map(String::len).max().unwrap_or(0);
    let numbers = numbers.into_iter();
    numbers.map(|number| format!("{number:>width$}")).collect()
}
