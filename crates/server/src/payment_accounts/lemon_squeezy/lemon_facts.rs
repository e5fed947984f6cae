//! The resources of Lemon Squeezy as facts. A response of the API and a webhook request have the same resource in `data`.

use perennial_domain::{
    ExternalId, PaymentFact, PaymentObjectKind, PlanReference, Quantity, ReportedFact,
    SubscriptionFact, SubscriptionStatus, lemon_squeezy_words,
};
use serde_json::Value;

use crate::payment_accounts::{
    fetched_object::{CustomerRef, FetchedObject, FetchedPurchase, ObjectReader, UnknownShape},
    user_token,
};

/// The prefix of an order's number in the external ids of records.
pub const ORDER_PREFIX: &str = "order_";

/// Converts the resource of a response or of a webhook request.
pub fn resource_fact(
    kind: PaymentObjectKind,
    document: &Value,
) -> Result<FetchedObject, UnknownShape> {
    match kind {
        PaymentObjectKind::Subscription => subscription_fact(document),
        PaymentObjectKind::Invoice => invoice_fact(document),
        PaymentObjectKind::Order => order_fact(document),
        PaymentObjectKind::PaymentIntent
        | PaymentObjectKind::Charge
        | PaymentObjectKind::Refund
        | PaymentObjectKind::Dispute
        | PaymentObjectKind::Customer => Ok(FetchedObject::Unrelated(
            "Lemon Squeezy reports no such object",
        )),
    }
}

/// Returns the value of the custom data of a webhook request that selects a user. The API does not return custom data.
pub fn webhook_user_token(body: &Value) -> Option<&str> {
    body.pointer("/meta/custom_data")?
        .get(user_token::FIELD)?
        .as_str()
}

fn subscription_fact(document: &Value) -> Result<FetchedObject, UnknownShape> {
    let object = ObjectReader::new("subscription", document);
    let status = lemon_squeezy_words::subscription_status(
        object.text("/data/attributes/status")?,
        object.optional_text("/data/attributes/pause/mode")?,
    )
    .map_err(|error| object.field_error(error))?;
    let ends = [SubscriptionStatus::Cancelled, SubscriptionStatus::Expired].contains(&status);
    let quantity_field = "/data/attributes/first_subscription_item/quantity";
    let quantity = object.optional_integer(quantity_field)?.unwrap_or(1);
    let fact = SubscriptionFact {
        external_id: object.id("/data/id")?,
        plan: PlanReference {
            variant: object.id("/data/attributes/variant_id")?,
            product: Some(object.id("/data/attributes/product_id")?),
        },
        quantity: object.parsed(quantity_field, Quantity::try_from(quantity))?,
        // A subscription of Lemon Squeezy has no price, currency or interval.
        price: None,
        status,
        starts_at: object.rfc3339("/data/attributes/created_at")?,
        // Reported after the end too, when nothing is charged any more.
        renews_at: { object.optional_rfc3339("/data/attributes/renews_at")? }.filter(|_| !ends),
        ends_at: object.optional_rfc3339("/data/attributes/ends_at")?,
        trial_ends_at: object.optional_rfc3339("/data/attributes/trial_ends_at")?,
        late_since: None,
    };
    let email = object.optional_text("/data/attributes/user_email")?;
    Ok(FetchedObject::Subscription {
        customer: CustomerRef {
            id: object.id("/data/attributes/customer_id")?.to_string(),
            email: email.map(str::to_owned),
            // In webhook requests only.
            user_token: None,
            may_be_named_later: true,
        },
        reported: ReportedFact {
            fact,
            version: Some(object.rfc3339("/data/attributes/updated_at")?),
        },
    })
}

/// Converts an order. Whether it is a purchase of its own depends on the plan that has its variant: an order of a
/// subscription is the same money as the first invoice.
fn order_fact(document: &Value) -> Result<FetchedObject, UnknownShape> {
    let object = ObjectReader::new("order", document);
    // Orders, subscriptions and invoices have the same numbers.
    let id = format!("{ORDER_PREFIX}{}", object.id("/data/id")?);
    let id = object.parsed("/data/id", id.parse::<ExternalId>())?;
    let created_at = object.rfc3339("/data/attributes/created_at")?;
    let version = Some(object.rfc3339("/data/attributes/updated_at")?);
    let payment = PaymentFact {
        // A lifetime has no end.
        period: Some((created_at, None)),
        ..payment_fact(&object, id.clone(), id)?
    };
    let item = |field: &str| format!("/data/attributes/first_order_item/{field}");
    let quantity = object.optional_integer(&item("quantity"))?.unwrap_or(1);
    let quantity = object.parsed(&item("quantity"), Quantity::try_from(quantity))?;
    let plan = PlanReference {
        variant: object.id(&item("variant_id"))?,
        product: Some(object.id(&item("product_id"))?),
    };
    let Some(subscription) = payment.lifetime_subscription(plan, quantity, created_at) else {
        return Ok(FetchedObject::Unrelated("the order is not paid"));
    };
    let email = object.optional_text("/data/attributes/user_email")?;
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
            id: object.id("/data/attributes/customer_id")?.to_string(),
            email: email.map(str::to_owned),
            // In webhook requests only.
            user_token: None,
            may_be_named_later: true,
        },
    })))
}

fn invoice_fact(document: &Value) -> Result<FetchedObject, UnknownShape> {
    let object = ObjectReader::new("subscription invoice", document);
    let subscription = object.id("/data/attributes/subscription_id")?;
    Ok(FetchedObject::Payment(ReportedFact {
        fact: payment_fact(&object, object.id("/data/id")?, subscription)?,
        version: Some(object.rfc3339("/data/attributes/updated_at")?),
    }))
}

/// Converts what orders and invoices share.
fn payment_fact(
    object: &ObjectReader<'_>,
    external_id: ExternalId,
    subscription: ExternalId,
) -> Result<PaymentFact, UnknownShape> {
    let currency = object.text("/data/attributes/currency")?;
    let to_money = |field, units, formatted| {
        let money = lemon_squeezy_words::money(field, units, formatted, currency);
        money.map_err(|error| object.field_error(error))
    };
    let total = object.integer("/data/attributes/total")?;
    let formatted = object.text("/data/attributes/total_formatted")?;
    let amount = to_money("total", total, formatted)?;
    let status = lemon_squeezy_words::payment_status(object.text("/data/attributes/status")?)
        .map_err(|error| object.field_error(error))?;
    let refunded = match object.optional_integer("/data/attributes/refunded_amount")? {
        None => None,
        Some(units) => {
            let formatted = object.text("/data/attributes/refunded_amount_formatted")?;
            Some(to_money("refunded_amount", units, formatted)?.minor_units())
        }
    };
    let created_at = object.rfc3339("/data/attributes/created_at")?;
    Ok(PaymentFact {
        external_id,
        subscription,
        status,
        amount,
        refunded_minor: refunded,
        // The time of the payment is not reported. The invoice is created when it is first charged.
        paid_at: status.is_settled().then_some(created_at),
        failure_reason: None,
        period: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subscription() -> Value {
        json!({"data": {"type": "subscriptions", "id": "7", "attributes": {
            "status": "active", "pause": null, "variant_id": 21, "product_id": 3, "customer_id": 5,
            "user_email": "a@example.com", "first_subscription_item": {"quantity": 2},
            "created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-02T00:00:00.000000Z",
            "renews_at": "2026-02-01T00:00:00.000000Z", "ends_at": null, "trial_ends_at": null,
        }}})
    }

    fn invoice() -> Value {
        json!({"data": {"type": "subscription-invoices", "id": "9", "attributes": {
            "status": "paid", "subscription_id": 7, "currency": "USD", "total": 999, "total_formatted": "$9.99",
            "total_usd": 31_337, "refunded_amount": 0, "refunded_amount_formatted": "$0.00",
            "created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-02T00:00:00.000000Z",
        }}})
    }

    #[test]
    fn subscription_is_read_with_its_version_and_customer() {
        let fetched = resource_fact(PaymentObjectKind::Subscription, &subscription()).unwrap();
        let FetchedObject::Subscription { reported, customer } = fetched else {
            panic!("{fetched:?}");
        };
        assert_eq!(
            reported.version,
            Some("2026-01-02T00:00:00Z".parse().unwrap())
        );
        assert_eq!(reported.fact.plan.variant.as_str(), "21");
        assert_eq!(reported.fact.quantity.get(), 2);
        assert_eq!(
            (customer.id.as_str(), customer.email.as_deref()),
            ("5", Some("a@example.com"))
        );
    }

    #[test]
    fn ended_subscription_is_not_renewed() {
        for (status, is_renewed) in [
            ("active", true),
            ("past_due", true),
            ("cancelled", false),
            ("expired", false),
        ] {
            let mut value = subscription();
            value["data"]["attributes"]["status"] = json!(status);
            let fetched = resource_fact(PaymentObjectKind::Subscription, &value).unwrap();
            let FetchedObject::Subscription { reported, .. } = fetched else {
                panic!("{fetched:?}");
            };
            assert_eq!(reported.fact.renews_at.is_some(), is_renewed, "{status}");
        }
    }

    #[test]
    fn amount_is_that_of_the_subscriber_and_not_in_usd() {
        let fetched = resource_fact(PaymentObjectKind::Invoice, &invoice()).unwrap();
        let FetchedObject::Payment(reported) = fetched else {
            panic!("{fetched:?}");
        };
        assert_eq!(reported.fact.amount.to_string(), "9.99");
        assert_eq!(reported.fact.refunded_minor, Some(0));
    }

    #[test]
    fn ambiguous_amount_and_unknown_words_are_named() {
        for (field, changed, expected) in [
            (
                "total",
                json!(99_900),
                "subscription invoice total: is ambiguous",
            ),
            ("status", json!("lost"), "subscription invoice status: "),
            (
                "total_formatted",
                json!(null),
                "subscription invoice data.attributes.total_formatted: is missing",
            ),
        ] {
            let mut value = invoice();
            value["data"]["attributes"][field] = changed;
            let error = resource_fact(PaymentObjectKind::Invoice, &value).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{field}: {error}");
        }
    }

    #[test]
    fn order_is_a_purchase_with_an_id_of_its_own() {
        let mut order = json!({"data": {"type": "orders", "id": "9", "attributes": {
            "status": "paid", "customer_id": 5, "user_email": "a@example.com", "currency": "USD", "total": 29_900,
            "total_formatted": "$299.00", "refunded_amount": 0, "refunded_amount_formatted": "$0.00",
            "first_order_item": {"variant_id": 21, "product_id": 3, "quantity": 1},
            "created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-02T00:00:00.000000Z",
        }}});
        let fetched = resource_fact(PaymentObjectKind::Order, &order).unwrap();
        let FetchedObject::Purchase(purchase) = fetched else {
            panic!("{fetched:?}");
        };
        assert_eq!(purchase.payment.fact.external_id.as_str(), "order_9");
        assert_eq!(purchase.subscription.fact.external_id.as_str(), "order_9");
        assert_eq!(purchase.subscription.fact.plan.variant.as_str(), "21");
        assert_eq!(purchase.subscription.version, purchase.payment.version);
        assert_eq!(purchase.customer.id, "5");
        order["data"]["attributes"]["status"] = json!("pending");
        let fetched = resource_fact(PaymentObjectKind::Order, &order).unwrap();
        assert!(
            matches!(fetched, FetchedObject::Unrelated(_)),
            "{fetched:?}"
        );
    }

    #[test]
    fn user_token_is_in_the_custom_data_of_a_webhook_request() {
        let body = json!({"meta": {"custom_data": {"perennial_user": "token"}}});
        assert_eq!(webhook_user_token(&body), Some("token"));
        assert_eq!(webhook_user_token(&json!({"meta": {}})), None);
    }
}
