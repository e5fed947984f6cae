//! The meaning of Stripe's words and amounts.

use super::{
    DisputeState, PaymentFact, provider_amount::money_from_units, provider_word::unknown_word,
};
use crate::{BillingCycle, Currency, FieldError, Money, PaymentStatus, SubscriptionStatus};

/// Returns the status of a subscription. `pause_behavior` is `pause_collection.behavior`; `cancels` is
/// whether `cancel_at` or `cancel_at_period_end` is set.
pub fn subscription_status(
    status: &str,
    pause_behavior: Option<&str>,
    cancels: bool,
) -> Result<SubscriptionStatus, FieldError> {
    // Collection is paused while the status stays active. Only `void` means that no service is given.
    let no_service = match pause_behavior {
        Some("void") => true,
        Some("keep_as_draft" | "mark_uncollectible") | None => false,
        Some(word) => {
            let known = ["keep_as_draft", "mark_uncollectible", "void"];
            let description = "a behavior of a paused Stripe collection";
            return Err(unknown_word(
                "pause_collection.behavior",
                description,
                word,
                &known,
            ));
        }
    };
    Ok(match status {
        "incomplete" => SubscriptionStatus::Pending,
        "trialing" | "active" | "past_due" if no_service => SubscriptionStatus::Paused,
        "trialing" | "active" if cancels => SubscriptionStatus::Cancelled,
        "trialing" => SubscriptionStatus::OnTrial,
        "active" => SubscriptionStatus::Active,
        "past_due" => SubscriptionStatus::PastDue,
        "unpaid" => SubscriptionStatus::Unpaid,
        "paused" => SubscriptionStatus::Paused,
        "canceled" | "incomplete_expired" => SubscriptionStatus::Expired,
        word => {
            let known = [
                "incomplete",
                "trialing",
                "active",
                "past_due",
                "unpaid",
                "paused",
                "canceled",
                "incomplete_expired",
            ];
            let description = "a status of a Stripe subscription";
            return Err(unknown_word("status", description, word, &known));
        }
    })
}

/// Returns the status of an invoice. `failed_attempt` is whether the last attempt to collect it has
/// failed; an attempt that is still processing has not. `refunded_minor` is in minor units of `amount`.
pub fn invoice_status(
    status: &str,
    failed_attempt: bool,
    (amount, refunded_minor): (Money, i64),
    dispute: Option<DisputeState>,
) -> Result<PaymentStatus, FieldError> {
    Ok(match status {
        "open" if failed_attempt => PaymentStatus::Failed,
        "draft" | "open" => PaymentStatus::Pending,
        "uncollectible" => PaymentStatus::Failed,
        "paid" => PaymentFact::paid_status(amount, refunded_minor, dispute),
        "void" => PaymentStatus::Void,
        word => {
            let known = ["draft", "open", "uncollectible", "paid", "void"];
            return Err(unknown_word(
                "status",
                "a status of a Stripe invoice",
                word,
                &known,
            ));
        }
    })
}

/// Returns the state of a dispute. Warnings and prevented disputes move no money. A dispute that ended
/// because the charge was refunded shows as a refund.
pub fn dispute_state(status: &str) -> Result<Option<DisputeState>, FieldError> {
    Ok(match status {
        "needs_response" | "under_review" => Some(DisputeState::Open),
        "won" => Some(DisputeState::Won),
        "lost" => Some(DisputeState::Lost),
        "warning_needs_response"
        | "warning_under_review"
        | "warning_closed"
        | "prevented"
        | "charge_refunded" => None,
        word => {
            let known = [
                "needs_response",
                "under_review",
                "won",
                "lost",
                "warning_needs_response",
                "warning_under_review",
                "warning_closed",
                "prevented",
            ];
            return Err(unknown_word(
                "status",
                "a status of a Stripe dispute",
                word,
                &known,
            ));
        }
    })
}

/// Returns the billing cycle of a recurring price, or `None` if it is none of ours, such as every two
/// weeks.
pub fn billing_cycle(
    interval: &str,
    interval_count: i64,
) -> Result<Option<BillingCycle>, FieldError> {
    Ok(match (interval, interval_count) {
        ("day", 1) => Some(BillingCycle::Daily),
        ("week", 1) | ("day", 7) => Some(BillingCycle::Weekly),
        ("month", 1) => Some(BillingCycle::Monthly),
        ("month", 3) => Some(BillingCycle::Quarterly),
        ("month", 6) => Some(BillingCycle::Semiannual),
        ("month", 12) | ("year", 1) => Some(BillingCycle::Yearly),
        ("day" | "week" | "month" | "year", _) => None,
        (word, _) => {
            let known = ["day", "week", "month", "year"];
            return Err(unknown_word(
                "recurring.interval",
                "an interval of a Stripe price",
                word,
                &known,
            ));
        }
    })
}

/// Converts an amount in Stripe's minor units. They are those of ISO 4217, except that ISK and UGX
/// have two decimal places and MGA has none.
pub fn money(field: &'static str, units: i64, currency: &str) -> Result<Money, FieldError> {
    let currency: Currency = currency.parse().map_err(|error| ("currency", error))?;
    let scale = match currency.code() {
        "ISK" | "UGX" => 2,
        "MGA" => 0,
        _ => currency.scale(),
    };
    money_from_units(field, units, scale, currency)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    #[test]
    fn subscription_status_table() {
        let table = [
            ("incomplete", None, false, "pending"),
            ("trialing", None, false, "on_trial"),
            ("trialing", None, true, "cancelled"),
            ("active", None, false, "active"),
            ("active", Some("keep_as_draft"), false, "active"),
            ("active", Some("mark_uncollectible"), false, "active"),
            ("active", Some("void"), false, "paused"),
            ("active", Some("void"), true, "paused"),
            ("active", None, true, "cancelled"),
            ("past_due", None, false, "past_due"),
            ("past_due", None, true, "past_due"),
            ("unpaid", None, false, "unpaid"),
            ("unpaid", Some("void"), false, "unpaid"),
            ("paused", None, false, "paused"),
            ("canceled", None, true, "expired"),
            ("incomplete_expired", None, false, "expired"),
        ];
        for (status, pause, cancels, expected) in table {
            let actual = subscription_status(status, pause, cancels).unwrap();
            assert_eq!(actual.as_str(), expected, "{status} {pause:?} {cancels}");
        }
    }

    #[test]
    fn unknown_word_is_an_error_that_names_the_field() {
        let (field, error) = subscription_status("activ", None, false).unwrap_err();
        assert_eq!((field, error.rule), ("status", Rule::UnknownValue));
        assert!(error.message.contains("did you mean \"active\"?"));
        let (field, _) = subscription_status("active", Some("later"), false).unwrap_err();
        assert_eq!(field, "pause_collection.behavior");
        let zero = money("total", 0, "usd").unwrap();
        let (field, _) = invoice_status("deleted", false, (zero, 0), None).unwrap_err();
        assert_eq!(field, "status");
        assert_eq!(dispute_state("").unwrap_err().0, "status");
        assert_eq!(
            billing_cycle("decade", 1).unwrap_err().0,
            "recurring.interval"
        );
        assert_eq!(money("total", 1, "doge").unwrap_err().0, "currency");
    }

    #[test]
    fn invoice_status_table() {
        let amount = money("total", 1_000, "usd").unwrap();
        let status = |word, failed, refunded, dispute| {
            let status = invoice_status(word, failed, (amount, refunded), dispute).unwrap();
            status.as_str()
        };
        assert_eq!(status("draft", false, 0, None), "pending");
        assert_eq!(status("open", false, 0, None), "pending");
        assert_eq!(status("open", true, 0, None), "failed");
        assert_eq!(status("uncollectible", true, 0, None), "failed");
        assert_eq!(status("void", true, 0, None), "void");
        assert_eq!(status("paid", false, 0, None), "completed");
        assert_eq!(status("paid", false, 999, None), "partially_refunded");
        assert_eq!(status("paid", false, 1_000, None), "refunded");
        let dispute = |word| dispute_state(word).unwrap();
        for (word, expected) in [
            ("needs_response", "disputed"),
            ("under_review", "disputed"),
            ("won", "completed"),
            ("lost", "refunded"),
            ("warning_needs_response", "completed"),
            ("warning_under_review", "completed"),
            ("warning_closed", "completed"),
            ("prevented", "completed"),
            ("charge_refunded", "completed"),
        ] {
            assert_eq!(status("paid", false, 0, dispute(word)), expected, "{word}");
        }
        assert_eq!(
            status("paid", false, 400, dispute("won")),
            "partially_refunded"
        );
    }

    #[test]
    fn billing_cycle_without_equivalent_is_none() {
        assert_eq!(billing_cycle("month", 3), Ok(Some(BillingCycle::Quarterly)));
        assert_eq!(billing_cycle("month", 12), Ok(Some(BillingCycle::Yearly)));
        assert_eq!(billing_cycle("week", 2), Ok(None));
        assert_eq!(billing_cycle("year", 2), Ok(None));
    }

    #[test]
    fn amount_is_exact_in_every_currency() {
        for (units, code, expected) in [
            (1_999, "usd", "19.99"),
            (1_999, "jpy", "1999"),
            (1_990, "kwd", "1.990"),
            (150_000, "isk", "1500"),
            (150_000, "ugx", "1500"),
            (1_500, "mga", "1500.00"),
            (0, "usd", "0.00"),
        ] {
            let amount = money("total", units, code).unwrap();
            assert_eq!(amount.to_string(), expected, "{code}");
        }
        for (units, code, rule) in [
            (150_050, "isk", Rule::AmountScaleInvalid),
            (1, "ugx", Rule::AmountScaleInvalid),
            (-1, "usd", Rule::OutOfRange),
            (i64::MAX, "mga", Rule::OutOfRange),
        ] {
            let (field, error) = money("total", units, code).unwrap_err();
            assert_eq!((field, error.rule), ("total", rule), "{units} {code}");
        }
    }
}
