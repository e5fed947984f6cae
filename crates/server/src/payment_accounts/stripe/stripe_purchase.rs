//! A one-time purchase at Stripe: a paid invoice without a subscription, as a checkout in the mode `payment` creates it.

use perennial_domain::{PaymentFact, PlanReference, Quantity, ReportedFact};

use crate::payment_accounts::{
    checkout_request,
    fetched_object::{CustomerRef, FetchedObject, FetchedPurchase, ObjectReader, UnknownShape},
    user_token,
};

/// What a paid invoice without a subscription is for.
pub(super) struct BoughtLine {
    plan: PlanReference,
    quantity: Quantity,
}

/// Returns the only line of an invoice that is paid; `None` if there are several, or if it has no price.
pub(super) fn bought_line(invoice: &ObjectReader<'_>) -> Result<Option<BoughtLine>, UnknownShape> {
    let lines = invoice.items("/lines/data")?;
    let ([line], "paid") = (lines.as_slice(), invoice.text("/status")?) else {
        return Ok(None);
    };
    // Under `pricing` since basil. The checkout has noted the price in case that the line has none.
    let noted = format!("/metadata/{}", checkout_request::PRICE_FIELD);
    let (price, product) = if line.get("/pricing/price_details/price").is_some() {
        let details = (
            "/pricing/price_details/price",
            "/pricing/price_details/product",
        );
        (line.id(details.0)?, line.optional_id(details.1)?)
    } else if line.get("/price/id").is_some() {
        (line.id("/price/id")?, line.optional_id("/price/product")?)
    } else if invoice.get(&noted).is_some() {
        (invoice.id(&noted)?, None)
    } else {
        return Ok(None);
    };
    let quantity = line.optional_integer("/quantity")?.unwrap_or(1);
    let product = product.map(|product| line.parsed("/product", product.parse()));
    Ok(Some(BoughtLine {
        plan: PlanReference {
            variant: price,
            product: product.transpose()?,
        },
        quantity: line.parsed("/quantity", Quantity::try_from(quantity))?,
    }))
}

/// Returns the purchase of a paid invoice.
pub(super) fn purchase(
    invoice: &ObjectReader<'_>,
    line: &BoughtLine,
    fact: PaymentFact,
) -> Result<FetchedObject, UnknownShape> {
    let paid_at = match fact.paid_at {
        Some(paid_at) => paid_at,
        None => invoice.seconds("/created")?,
    };
    let payment = PaymentFact {
        // A lifetime has no end.
        period: Some((paid_at, None)),
        ..fact
    };
    let bought = payment.lifetime_subscription(line.plan.clone(), line.quantity, paid_at);
    let Some(subscription) = bought else {
        return Ok(FetchedObject::Unrelated("the invoice is not paid"));
    };
    let metadata = format!("/metadata/{}", user_token::FIELD);
    let email = invoice.optional_text("/customer_email")?;
    let version = None;
    Ok(FetchedObject::Purchase(Box::new(FetchedPurchase {
        payment: ReportedFact {
            fact: payment,
            version,
        },
        subscription: ReportedFact {
            fact: subscription,
            version,
        },
        customer: CustomerRef {
            id: invoice.id("/customer")?.to_string(),
            email: email.map(str::to_owned),
            user_token: invoice.optional_text(&metadata)?.map(str::to_owned),
            may_be_named_later: false,
        },
    })))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::payment_accounts::stripe::stripe_invoice::{InvoiceMoney, invoice_fact};

    fn invoice() -> Value {
        json!({
            "id": "in_1", "object": "invoice", "status": "paid", "attempted": true, "currency": "usd", "total": 29_900,
            "amount_paid": 29_900, "amount_due": 29_900,
            "parent": null, "customer": "cus_1", "customer_email": "a@example.com",
            "metadata": {"perennial_user": "token", "perennial_price": "price_noted"},
            "status_transitions": {"paid_at": 1_000},
            "payments": {"data": [{"payment": {"type": "payment_intent", "payment_intent": "pi_1"}}]},
            "lines": {"data": [{
                "quantity": 2, "period": {"start": 900, "end": 900}, "parent": null,
                "pricing": {"price_details": {"price": "price_1", "product": "prod_1"}},
            }]},
        })
    }

    fn purchase_of(value: &Value) -> FetchedPurchase {
        match invoice_fact(value, &InvoiceMoney::default()).unwrap() {
            FetchedObject::Purchase(purchase) => *purchase,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paid_invoice_without_subscription_is_a_purchase_in_both_generations_of_shapes() {
        let new = invoice();
        let mut old = new.clone();
        old["lines"]["data"][0]["pricing"].take();
        old["lines"]["data"][0]["price"] = json!({"id": "price_1", "product": "prod_1"});
        old["payments"].take();
        old["payment_intent"] = json!("pi_1");
        assert_eq!(purchase_of(&new), purchase_of(&old));
        let bought = purchase_of(&new);
        let (payment, subscription) = (bought.payment.fact, bought.subscription.fact);
        assert_eq!(subscription.external_id.as_str(), "in_1");
        assert_eq!(payment.subscription, subscription.external_id);
        assert_eq!(subscription.plan.variant.as_str(), "price_1");
        assert_eq!(subscription.quantity.get(), 2);
        assert_eq!(subscription.starts_at.as_second(), 1_000);
        assert_eq!(payment.period, Some((subscription.starts_at, None)));
        assert_eq!(bought.customer.user_token.as_deref(), Some("token"));
        // A line without a price is for the one that the checkout has noted.
        let mut noted = invoice();
        noted["lines"]["data"][0]["pricing"].take();
        let bought = purchase_of(&noted).subscription.fact;
        assert_eq!(bought.plan.variant.as_str(), "price_noted");
    }

    #[test]
    fn unpaid_invoice_and_one_with_several_lines_are_no_purchases() {
        let mut unpaid = invoice();
        unpaid["status"] = json!("open");
        let mut several = invoice();
        let line = several["lines"]["data"][0].clone();
        several["lines"]["data"] = json!([line, line]);
        let mut unpriced = invoice();
        unpriced["lines"]["data"][0]["pricing"].take();
        unpriced["metadata"].take();
        for value in [unpaid, several, unpriced] {
            let fetched = invoice_fact(&value, &InvoiceMoney::default()).unwrap();
            assert!(
                matches!(fetched, FetchedObject::Unrelated(_)),
                "{fetched:?}"
            );
        }
    }
}
