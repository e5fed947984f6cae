//! Formats instants, money and counts for sentences.

use jiff::Timestamp;
use perennial_domain::{Currency, Money, SignedMoney};

/// Formats an instant to the minute, in UTC.
pub fn date(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M").to_string()
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
pub fn number(minor_units: i64, currency: Currency) -> String {
    let amount = SignedMoney {
        minor_units,
        currency,
    };
    amount.to_string()
}

/// Formats minor units with their currency: `-19.90 USD`.
pub fn sum(minor_units: i64, currency: Currency) -> String {
    format!("{} {}", number(minor_units, currency), currency.code())
}

/// Formats a count with its noun: `1 plan`, `2 plans`.
pub fn pluralize(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let suffix = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{suffix}")
}
