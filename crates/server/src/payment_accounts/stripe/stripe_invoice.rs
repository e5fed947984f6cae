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
mod tests;
