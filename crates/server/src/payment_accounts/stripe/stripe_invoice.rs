//! An invoice of Stripe as a fact, with what happened to its money.

use jiff::Timestamp;
use perennial_domain::{
    DisputeState, FailureReason, PaymentFact, PaymentStatus, ReportedFact, stripe_words,
};
use serde_json::Value;

use super::stripe_purchase::{bought_line, purchase};
use crate::payment_accounts::fetched_object::{FetchedObject, ObjectReader, UnknownShape};

const PAYMENT_INTENT: &str = "payment_intent";

/// The charges, refunds and disputes of an invoice.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InvoiceMoney {
    /// In Stripe's minor units.
    refunded_units: i64,
    /// Whether a charge has or had a dispute.
    pub is_disputed: bool,
    dispute: Option<DisputeState>,
    /// The latest charge: its time, and why it failed, if it did.
    latest: Option<(i64, Option<String>)>,
}

impl InvoiceMoney {
    /// Adds a list of charges.
    pub(super) fn add_charges(&mut self, list: &Value) -> Result<(), UnknownShape> {
        for charge in ObjectReader::new("charge", list).items("/data")? {
            self.refunded_units += charge.optional_integer("/amount_refunded")?.unwrap_or(0);
            self.is_disputed |= charge.flag("/disputed")?;
            let created = charge.integer("/created")?;
            let failure = match charge.text("/status")? {
                "failed" => {
                    let message = charge.optional_text("/failure_message")?;
                    let code = charge.optional_text("/failure_code")?;
                    Some(message.or(code).unwrap_or("failed").to_owned())
                }
                _ => None,
            };
            // Lists are newest first, so the first charge of a second is the latest.
            if self.latest.as_ref().is_none_or(|(time, _)| *time < created) {
                self.latest = Some((created, failure));
            }
        }
        Ok(())
    }

    /// Adds a refund, unless it has failed.
    pub(super) fn add_refund(&mut self, refund: &ObjectReader<'_>) -> Result<(), UnknownShape> {
        if !["failed", "canceled"].contains(&refund.text("/status")?) {
            self.refunded_units += refund.integer("/amount")?;
        }
        Ok(())
    }

    /// Adds what happened to another payment of the same invoice.
    pub(super) fn add_payment(&mut self, other: &Self) {
        self.refunded_units += other.refunded_units;
        self.dispute = prevailing(self.dispute, other.dispute);
    }

    /// Adds a list of disputes. One that is open counts, then one that was lost.
    pub(super) fn add_disputes(&mut self, list: &Value) -> Result<(), UnknownShape> {
        for dispute in ObjectReader::new("dispute", list).items("/data")? {
            let state = stripe_words::dispute_state(dispute.text("/status")?);
            let state = state.map_err(|error| dispute.field_error(error))?;
            self.dispute = prevailing(self.dispute, state);
        }
        Ok(())
    }
}

/// Returns which of two disputes counts: one that is open, then one that was lost.
fn prevailing(present: Option<DisputeState>, added: Option<DisputeState>) -> Option<DisputeState> {
    match (present, added) {
        (Some(DisputeState::Open), _) | (_, Some(DisputeState::Open)) => Some(DisputeState::Open),
        (Some(DisputeState::Lost), _) | (_, Some(DisputeState::Lost)) => Some(DisputeState::Lost),
        (present, added) => present.or(added),
    }
}

/// Returns whether the charges of an invoice change its fact: after an attempt to collect it.
pub(super) fn needs_charges(value: &Value) -> Result<bool, UnknownShape> {
    let invoice = ObjectReader::new("invoice", value);
    let is_attempted = invoice.flag("/attempted")?;
    Ok(match invoice.text("/status")? {
        "paid" => true,
        "open" | "uncollectible" => is_attempted,
        _ => false,
    })
}

/// Returns the payments of an invoice whose `payments` are expanded.
pub(super) fn invoice_payment_intents(value: &Value) -> Result<Vec<String>, UnknownShape> {
    let invoice = ObjectReader::new("invoice", value);
    // Before basil, there was one.
    if let Some(intent) = invoice.optional_id("/payment_intent")? {
        return Ok(vec![intent]);
    }
    if invoice.get("/payments").is_none() {
        return Ok(Vec::new());
    }
    let mut intents = Vec::new();
    for payment in invoice.items("/payments/data")? {
        if payment.text("/payment/type")? == PAYMENT_INTENT {
            intents.push(payment.id("/payment/payment_intent")?.as_str().to_owned());
        }
    }
    Ok(intents)
}

/// Converts an invoice.
pub(super) fn invoice_fact(
    value: &Value,
    money: &InvoiceMoney,
) -> Result<FetchedObject, UnknownShape> {
    let invoice = ObjectReader::new("invoice", value);
    // Under `parent` since basil.
    let pointer = ["/parent/subscription_details/subscription", "/subscription"]
        .into_iter()
        .find(|pointer| invoice.get(pointer).is_some());
    let bought = match pointer {
        Some(_) => None,
        None => bought_line(&invoice)?,
    };
    if pointer.is_none() && bought.is_none() {
        let reason = "the invoice is not for a subscription, and not the payment of one price";
        return Ok(FetchedObject::Unrelated(reason));
    }
    let currency = invoice.text("/currency")?;
    let total = invoice.integer("/total")?;
    if total < 0 {
        return Ok(FetchedObject::Unrelated(
            "the invoice is a credit to the customer's balance",
        ));
    }
    let to_money = |field, units| {
        let money = stripe_words::money(field, units, currency);
        money.map_err(|error| invoice.field_error(error))
    };
    let word = invoice.text("/status")?;
    // Without what the customer's balance has paid. Nothing was paid yet on other invoices.
    let amount = if word == "paid" {
        to_money("amount_paid", invoice.integer("/amount_paid")?)?
    } else {
        to_money("amount_due", invoice.integer("/amount_due")?)?
    };
    let refunded_minor = to_money("amount_refunded", money.refunded_units)?.minor_units();
    let failure = money
        .latest
        .as_ref()
        .and_then(|(_, failure)| failure.as_ref());
    let refunded = (amount, refunded_minor);
    let status = stripe_words::invoice_status(word, failure.is_some(), refunded, money.dispute)
        .map_err(|error| invoice.field_error(error))?;
    // A reason that cannot be stored is left out: it is for people.
    let failure_reason = failure
        .filter(|_| status == PaymentStatus::Failed)
        .and_then(|reason| reason.parse::<FailureReason>().ok());
    let fact = PaymentFact {
        external_id: invoice.id("/id")?,
        // A one-time purchase is its own subscription.
        subscription: invoice.id(pointer.unwrap_or("/id"))?,
        status,
        amount,
        refunded_minor: Some(refunded_minor),
        paid_at: invoice.optional_seconds("/status_transitions/paid_at")?,
        failure_reason,
        period: paid_period(&invoice)?,
    };
    match bought {
        Some(line) => purchase(&invoice, &line, fact),
        // Stripe's objects have no version.
        None => Ok(FetchedObject::Payment(ReportedFact {
            fact,
            version: None,
        })),
    }
}

/// Returns the period that an invoice is for: the latest of its lines, without prorations if there are others. The period
/// of the invoice itself is the one before.
fn paid_period(
    invoice: &ObjectReader<'_>,
) -> Result<Option<(Timestamp, Option<Timestamp>)>, UnknownShape> {
    let mut latest: Option<(bool, Timestamp, Timestamp)> = None;
    for line in invoice.items("/lines/data")? {
        let is_proration = line.flag("/proration")?
            || line.flag("/parent/subscription_item_details/proration")?
            || line.flag("/parent/invoice_item_details/proration")?;
        let end = line.seconds("/period/end")?;
        let candidate = (!is_proration, end, line.seconds("/period/start")?);
        latest = latest.max(Some(candidate));
    }
    Ok(latest.map(|(_, end, start)| (start, Some(end))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn invoice() -> Value {
        json!({
            "id": "in_1", "object": "invoice", "status": "paid", "attempted": true, "currency": "usd",
            "total": 1_999, "amount_due": 1_999, "amount_paid": 1_999,
            "parent": {"type": "subscription_details", "subscription_details": {"subscription": "sub_1"}},
            "status_transitions": {"paid_at": 1_000},
            "payments": {"data": [{"payment": {"type": "payment_intent", "payment_intent": "pi_1"}}]},
            "lines": {"data": [
                {"period": {"start": 500, "end": 900},
                    "parent": {"subscription_item_details": {"proration": true}}},
                {"period": {"start": 100, "end": 400},
                    "parent": {"subscription_item_details": {"proration": false}}},
            ]},
        })
    }

    fn fact(value: &Value, money: &InvoiceMoney) -> PaymentFact {
        match invoice_fact(value, money).unwrap() {
            FetchedObject::Payment(reported) => reported.fact,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_generations_of_shapes_give_the_same_fact() {
        let new = invoice();
        let mut old = new.clone();
        old["parent"].take();
        old["payments"].take();
        old["subscription"] = json!("sub_1");
        old["payment_intent"] = json!("pi_1");
        for line in old["lines"]["data"].as_array_mut().unwrap() {
            let proration = line["parent"]["subscription_item_details"]["proration"].take();
            line["proration"] = proration;
            line["parent"].take();
        }
        let money = InvoiceMoney::default();
        assert_eq!(fact(&new, &money), fact(&old, &money));
        let fact = fact(&new, &money);
        assert_eq!(fact.status, PaymentStatus::Completed);
        let period = fact
            .period
            .map(|(start, end)| (start.as_second(), end.unwrap().as_second()));
        assert_eq!(period, Some((100, 400)), "a proration is not the period");
        for value in [new, old] {
            assert_eq!(invoice_payment_intents(&value), Ok(vec!["pi_1".to_owned()]));
        }
    }

    #[test]
    fn charges_and_disputes_decide_about_the_status() {
        let charges = |refunded: i64, disputed: bool| {
            let charge = json!({"created": 5, "status": "succeeded", "amount_refunded": refunded, "disputed": disputed});
            json!({ "data": [charge] })
        };
        for (refunded, dispute, expected) in [
            (0, None, "completed"),
            (500, None, "partially_refunded"),
            (1_999, None, "refunded"),
            (0, Some("needs_response"), "disputed"),
            (0, Some("won"), "completed"),
            (0, Some("lost"), "refunded"),
            (0, Some("warning_closed"), "completed"),
        ] {
            let mut money = InvoiceMoney::default();
            money
                .add_charges(&charges(refunded, dispute.is_some()))
                .unwrap();
            if let Some(status) = dispute {
                assert!(money.is_disputed);
                money
                    .add_disputes(&json!({"data": [{ "status": status }]}))
                    .unwrap();
            }
            assert_eq!(fact(&invoice(), &money).status.as_str(), expected);
        }
    }

    #[test]
    fn latest_attempt_decides_whether_an_open_invoice_has_failed() {
        let mut open = invoice();
        open["status"] = json!("open");
        let failed =
            json!({"created": 5, "status": "failed", "failure_message": "Your card was declined."});
        let pending = json!({"created": 6, "status": "pending"});
        for (data, expected, reason) in [
            (json!([]), "pending", None),
            (json!([failed]), "failed", Some("Your card was declined.")),
            (json!([pending, failed]), "pending", None),
        ] {
            let mut money = InvoiceMoney::default();
            money.add_charges(&json!({ "data": data })).unwrap();
            let fact = fact(&open, &money);
            assert_eq!(fact.status.as_str(), expected);
            assert_eq!(
                fact.failure_reason.as_ref().map(FailureReason::as_str),
                reason
            );
        }
        assert_eq!(needs_charges(&open), Ok(true));
        open["attempted"] = json!(false);
        assert_eq!(needs_charges(&open), Ok(false));
    }

    #[test]
    fn invoice_without_subscription_or_with_credit_has_no_payment() {
        let mut one_time = invoice();
        one_time["parent"].take();
        let mut credit = invoice();
        credit["total"] = json!(-500);
        for value in [one_time, credit] {
            let fetched = invoice_fact(&value, &InvoiceMoney::default()).unwrap();
            assert!(
                matches!(fetched, FetchedObject::Unrelated(_)),
                "{fetched:?}"
            );
        }
    }

    #[test]
    fn amount_is_what_was_paid_or_is_due() {
        for (status, paid, due, expected) in [
            ("paid", 1_499, 1_499, 1_499),
            ("paid", 0, 0, 0),
            ("open", 0, 1_499, 1_499),
            ("void", 0, 1_499, 1_499),
            ("draft", 0, 1_999, 1_999),
        ] {
            let mut value = invoice();
            value["status"] = json!(status);
            value["amount_paid"] = json!(paid);
            value["amount_due"] = json!(due);
            let fact = fact(&value, &InvoiceMoney::default());
            assert_eq!(fact.amount.minor_units(), expected, "{status}");
        }
    }

    #[test]
    fn missing_or_unknown_field_is_named() {
        for (pointer, changed, expected) in [
            ("/status", json!("frozen"), "invoice status: "),
            ("/total", json!(null), "invoice total: is missing"),
            (
                "/amount_paid",
                json!(null),
                "invoice amount_paid: is missing",
            ),
            ("/currency", json!("xxx1"), "invoice currency: "),
            ("/lines", json!(null), "invoice lines.data: is missing"),
        ] {
            let mut value = invoice();
            *value.pointer_mut(pointer).unwrap() = changed;
            let error = invoice_fact(&value, &InvoiceMoney::default()).unwrap_err();
            assert!(
                error.to_string().starts_with(expected),
                "{pointer}: {error}"
            );
        }
        let fraction =
            json!({"data": [{"created": 1, "status": "succeeded", "amount_refunded": 50}]});
        let mut money = InvoiceMoney::default();
        money.add_charges(&fraction).unwrap();
        let mut isk = invoice();
        isk["currency"] = json!("isk");
        isk["amount_paid"] = json!(150_000);
        let error = invoice_fact(&isk, &money).unwrap_err().to_string();
        assert!(error.starts_with("invoice amount_refunded: "), "{error}");
    }
}
