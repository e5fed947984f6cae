//! A subscription of Stripe as a fact.

use perennial_domain::{
    PlanReference, Quantity, ReportedFact, ReportedPrice, SubscriptionFact, SubscriptionStatus,
    stripe_words,
};
use serde_json::Value;

use crate::payment_accounts::{
    fetched_object::{CustomerRef, FetchedObject, ObjectReader, UnknownShape},
    user_token,
};

/// Converts a subscription whose `customer` is expanded.
pub(super) fn subscription_fact(value: &Value) -> Result<FetchedObject, UnknownShape> {
    let object = ObjectReader::new("subscription", value);
    let items = object.items("/items/data")?;
    let [item] = items.as_slice() else {
        let message = format!("must have one item to follow one plan; has {}", items.len());
        return Err(object.error("/items", message));
    };
    let is_at_period_end = object.flag("/cancel_at_period_end")?;
    let cancel_at = object.optional_seconds("/cancel_at")?;
    let status = stripe_words::subscription_status(
        object.text("/status")?,
        object.optional_text("/pause_collection/behavior")?,
        is_at_period_end || cancel_at.is_some(),
    )
    .map_err(|error| object.field_error(error))?;
    // On the item since basil.
    let period_end = match item.optional_seconds("/current_period_end")? {
        Some(end) => end,
        None => object.seconds("/current_period_end")?,
    };
    let scheduled_end = cancel_at.or(is_at_period_end.then_some(period_end));
    let ends_at = object.optional_seconds("/ended_at")?.or(scheduled_end);
    let is_renewed =
        status != SubscriptionStatus::Expired && scheduled_end.is_none_or(|end| period_end < end);
    let quantity = item.optional_integer("/quantity")?.unwrap_or(1);
    let fact = SubscriptionFact {
        external_id: object.id("/id")?,
        plan: PlanReference {
            variant: item.id("/price/id")?,
            product: Some(item.id("/price/product")?),
        },
        quantity: item.parsed("/quantity", Quantity::try_from(quantity))?,
        price: reported_price(item)?,
        status,
        starts_at: object.seconds("/start_date")?,
        renews_at: is_renewed.then_some(period_end),
        ends_at,
        trial_ends_at: object.optional_seconds("/trial_end")?,
        late_since: None,
    };
    let customer = object.id("/customer")?;
    let metadata = format!("/metadata/{}", user_token::FIELD);
    Ok(FetchedObject::Subscription {
        customer: CustomerRef {
            id: customer.as_str().to_owned(),
            email: object.optional_text("/customer/email")?.map(str::to_owned),
            user_token: object.optional_text(&metadata)?.map(str::to_owned),
            may_be_named_later: false,
        },
        reported: ReportedFact {
            fact,
            // Stripe's objects have no version.
            version: None,
        },
    })
}

/// Returns the price per unit, or `None` if it has tiers, fractions of a minor unit or an interval that is no billing
/// cycle of ours.
fn reported_price(item: &ObjectReader<'_>) -> Result<Option<ReportedPrice>, UnknownShape> {
    let Some(units) = item.optional_integer("/price/unit_amount")? else {
        return Ok(None);
    };
    let interval = item.text("/price/recurring/interval")?;
    let count = item.integer("/price/recurring/interval_count")?;
    let billing_cycle = stripe_words::billing_cycle(interval, count);
    let Some(billing_cycle) = billing_cycle.map_err(|error| item.field_error(error))? else {
        return Ok(None);
    };
    let currency = item.text("/price/currency")?;
    let amount = stripe_words::money("price.unit_amount", units, currency);
    Ok(Some(ReportedPrice {
        amount: amount.map_err(|error| item.field_error(error))?,
        billing_cycle,
    }))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    /// A subscription in the shape since basil.
    fn subscription() -> Value {
        json!({
            "id": "sub_1", "object": "subscription", "status": "active", "start_date": 1_000,
            "cancel_at": null, "cancel_at_period_end": false, "ended_at": null, "trial_end": null,
            "pause_collection": null, "metadata": {"perennial_user": "token"},
            "customer": {"id": "cus_1", "object": "customer", "email": "a@example.com"},
            "items": {"object": "list", "data": [{
                "id": "si_1", "quantity": 3, "current_period_end": 5_000,
                "price": {"id": "price_1", "product": "prod_1", "currency": "usd", "unit_amount": 1_999,
                    "recurring": {"interval": "month", "interval_count": 1}},
            }]},
            "a_field_of_the_future": {"x": 1},
        })
    }

    fn fact(value: &Value) -> SubscriptionFact {
        match subscription_fact(value).unwrap() {
            FetchedObject::Subscription { reported, .. } => reported.fact,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_generations_of_shapes_give_the_same_fact() {
        let new = subscription();
        let mut old = new.clone();
        old["items"]["data"][0]["current_period_end"].take();
        old["current_period_end"] = json!(5_000);
        old["customer"] = json!("cus_1");
        assert_eq!(fact(&new), fact(&old));
        let fact = fact(&new);
        assert_eq!(fact.renews_at.map(Timestamp::as_second), Some(5_000));
        assert_eq!(fact.price.unwrap().amount.to_string(), "19.99");
        let FetchedObject::Subscription { customer, .. } = subscription_fact(&new).unwrap() else {
            panic!("no subscription");
        };
        assert_eq!(customer.id, "cus_1");
        assert_eq!(customer.email.as_deref(), Some("a@example.com"));
        assert_eq!(customer.user_token.as_deref(), Some("token"));
    }

    #[test]
    fn scheduled_and_past_ends_are_reported() {
        let mut value = subscription();
        value["cancel_at_period_end"] = json!(true);
        let scheduled = fact(&value);
        assert_eq!(scheduled.status, SubscriptionStatus::Cancelled);
        assert_eq!(scheduled.ends_at.map(Timestamp::as_second), Some(5_000));
        assert_eq!(scheduled.renews_at, None);
        value["cancel_at_period_end"] = json!(false);
        value["cancel_at"] = json!(9_000);
        let later = fact(&value);
        assert_eq!(later.ends_at.map(Timestamp::as_second), Some(9_000));
        assert_eq!(later.renews_at.map(Timestamp::as_second), Some(5_000));
        value["status"] = json!("canceled");
        value["ended_at"] = json!(2_000);
        let ended = fact(&value);
        assert_eq!(ended.status, SubscriptionStatus::Expired);
        assert_eq!(ended.ends_at.map(Timestamp::as_second), Some(2_000));
        assert_eq!(ended.renews_at, None);
    }

    #[test]
    fn missing_or_unknown_field_is_named() {
        for (pointer, changed, expected) in [
            ("/status", json!(null), "subscription status: is missing"),
            ("/status", json!("dormant"), "subscription status: "),
            (
                "/start_date",
                json!("soon"),
                "subscription start_date: must be",
            ),
            (
                "/items/data/0/price/id",
                json!(null),
                "subscription price.id: is missing",
            ),
            (
                "/items/data/0/price/currency",
                json!("doge"),
                "subscription currency: ",
            ),
            (
                "/items/data/0/current_period_end",
                json!(null),
                "subscription current_period_end: ",
            ),
            (
                "/items/data",
                json!([]),
                "subscription items: must have one item",
            ),
        ] {
            let mut value = subscription();
            *value.pointer_mut(pointer).unwrap() = changed;
            let error = subscription_fact(&value).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{pointer}: {error}");
        }
    }

    #[test]
    fn price_without_equivalent_is_left_to_the_plan() {
        for (pointer, changed) in [
            ("/items/data/0/price/unit_amount", json!(null)),
            ("/items/data/0/price/recurring/interval_count", json!(2)),
        ] {
            let mut value = subscription();
            *value.pointer_mut(pointer).unwrap() = changed;
            assert_eq!(fact(&value).price, None, "{pointer}");
        }
    }
}
