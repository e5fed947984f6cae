//! The meaning of Lemon Squeezy's words and amounts.

use super::{
    provider_amount::{ambiguous_amount, money_from_units},
    provider_word::unknown_word,
};
use crate::{Currency, FieldError, Money, PaymentStatus, SubscriptionStatus, suggest::quoted};

/// Returns the status of a subscription. `pause_mode` is `pause.mode`: `void` gives no service, `free`
/// continues it without charge.
pub fn subscription_status(
    status: &str,
    pause_mode: Option<&str>,
) -> Result<SubscriptionStatus, FieldError> {
    Ok(match (status, pause_mode) {
        ("on_trial", _) => SubscriptionStatus::OnTrial,
        ("active", _) | ("paused", Some("free")) => SubscriptionStatus::Active,
        ("paused", Some("void") | None) => SubscriptionStatus::Paused,
        ("paused", Some(word)) => {
            let description = "a pause mode of Lemon Squeezy";
            return Err(unknown_word(
                "pause.mode",
                description,
                word,
                &["void", "free"],
            ));
        }
        ("past_due", _) => SubscriptionStatus::PastDue,
        ("unpaid", _) => SubscriptionStatus::Unpaid,
        ("cancelled", _) => SubscriptionStatus::Cancelled,
        ("expired", _) => SubscriptionStatus::Expired,
        (word, _) => {
            let known = [
                "on_trial",
                "active",
                "paused",
                "past_due",
                "unpaid",
                "cancelled",
                "expired",
            ];
            let description = "a status of a Lemon Squeezy subscription";
            return Err(unknown_word("status", description, word, &known));
        }
    })
}

/// Returns the status of a subscription invoice or an order. An order that is `fraudulent` has no
/// equivalent: whether its money is kept is for a person to decide.
pub fn payment_status(status: &str) -> Result<PaymentStatus, FieldError> {
    Ok(match status {
        "pending" => PaymentStatus::Pending,
        "failed" => PaymentStatus::Failed,
        "paid" => PaymentStatus::Completed,
        "partial_refund" => PaymentStatus::PartiallyRefunded,
        "refunded" => PaymentStatus::Refunded,
        "void" => PaymentStatus::Void,
        word => {
            let known = [
                "pending",
                "failed",
                "paid",
                "partial_refund",
                "refunded",
                "void",
            ];
            let description = "a status of a Lemon Squeezy payment";
            return Err(unknown_word("status", description, word, &known));
        }
    })
}

/// Converts an amount. Lemon Squeezy writes "cents" without saying what they are in currencies that do
/// not have two decimal places. So `units` is accepted only if `formatted`, such as `$9.99`, has the
/// same digits and the decimal places of ISO 4217.
pub fn money(
    field: &'static str,
    units: i64,
    formatted: &str,
    currency: &str,
) -> Result<Money, FieldError> {
    let currency: Currency = currency.parse().map_err(|error| ("currency", error))?;
    let scale = currency.scale();
    let digits: String = formatted.chars().filter(char::is_ascii_digit).collect();
    if digits.parse::<i64>() != Ok(units) || !has_decimal_places(formatted, scale) {
        let message = format!(
            "is ambiguous: {units} does not match {} with {scale} decimal places for {currency}",
            quoted(formatted)
        );
        return Err(ambiguous_amount(field, message));
    }
    money_from_units(field, units, scale, currency)
}

/// Returns whether an amount is written with `scale` decimal places. Digits in groups of three can be
/// whole units or three decimal places. The latter count only after a point.
fn has_decimal_places(formatted: &str, scale: u8) -> bool {
    // Without the currency's symbol or code before or after the number.
    let number = formatted.trim_matches(|c: char| !c.is_ascii_digit());
    let Some((_, last)) = number.rsplit_once(['.', ',']) else {
        return scale == 0;
    };
    let length = last.len();
    match scale {
        0 => length == 3,
        3 => {
            length == 3
                && number
                    .rsplit_once('.')
                    .is_some_and(|(_, places)| places == last)
        }
        _ => length == usize::from(scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    #[test]
    fn subscription_status_table() {
        let table = [
            ("on_trial", None, "on_trial"),
            ("active", None, "active"),
            ("paused", Some("free"), "active"),
            ("paused", Some("void"), "paused"),
            ("paused", None, "paused"),
            ("past_due", None, "past_due"),
            ("unpaid", None, "unpaid"),
            ("cancelled", None, "cancelled"),
            ("expired", None, "expired"),
        ];
        for (status, pause, expected) in table {
            let actual = subscription_status(status, pause).unwrap();
            assert_eq!(actual.as_str(), expected, "{status} {pause:?}");
        }
        assert_eq!(subscription_status("Active", None).unwrap_err().0, "status");
        let (field, error) = subscription_status("paused", Some("half")).unwrap_err();
        assert_eq!((field, error.rule), ("pause.mode", Rule::UnknownValue));
    }

    #[test]
    fn payment_status_table() {
        let table = [
            ("pending", "pending"),
            ("failed", "failed"),
            ("paid", "completed"),
            ("partial_refund", "partially_refunded"),
            ("refunded", "refunded"),
            ("void", "void"),
        ];
        for (word, expected) in table {
            assert_eq!(payment_status(word).unwrap().as_str(), expected);
        }
        assert_eq!(payment_status("fraudulent").unwrap_err().0, "status");
    }

    #[test]
    fn amount_agrees_with_its_formatted_text() {
        for (units, formatted, code, expected) in [
            (999, "$9.99", "USD", "9.99"),
            (50, "$0.50", "usd", "0.50"),
            (0, "$0.00", "USD", "0.00"),
            (123_456, "1.234,56 €", "EUR", "1234.56"),
            (1_234_500, "CHF 12’345.00", "CHF", "12345.00"),
            (1_500, "¥1,500", "JPY", "1500"),
            (900, "¥900", "JPY", "900"),
            (1_500_000, "¥1,500,000", "JPY", "1500000"),
            (1_500, "KWD 1.500", "KWD", "1.500"),
            (1_500, "1.500 kr", "ISK", "1500"),
            (1_500, "UGX 1,500", "UGX", "1500"),
            (150_000, "MGA 1,500.00", "MGA", "1500.00"),
        ] {
            let amount = money("total", units, formatted, code).unwrap();
            assert_eq!(amount.to_string(), expected, "{formatted}");
        }
    }

    #[test]
    fn ambiguous_amount_is_an_error_that_names_the_field() {
        for (units, formatted, code) in [
            (150_000, "¥1,500", "JPY"),
            (150_000, "¥1,500.00", "JPY"),
            (150, "KWD 1.50", "KWD"),
            (1_500, "KWD 1500", "KWD"),
            (1_500, "KWD 1,500", "KWD"),
            (1_500, "MGA 1,500", "MGA"),
            (150_000, "MGA 1,500", "MGA"),
            (150_000, "1.500 kr", "ISK"),
            (999, "$9.98", "USD"),
            (999, "$999", "USD"),
            (999, "", "USD"),
            (-999, "-$9.99", "USD"),
            (999, "٩٫٩٩", "USD"),
        ] {
            let (field, error) = money("total", units, formatted, code).unwrap_err();
            assert_eq!(field, "total", "{formatted}");
            assert_eq!(error.rule, Rule::AmountScaleInvalid, "{formatted}");
        }
        assert_eq!(money("total", 1, "$0.01", "US$").unwrap_err().0, "currency");
    }
}
