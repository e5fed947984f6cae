//! Amounts in currencies whose minor units payment providers write in their own way.

use serde_json::json;

use super::{StripeShop, lemon_squeezy::LemonShop};

#[tokio::test]
async fn amounts_of_stripe_are_exact() {
    let shop = StripeShop::start().await;
    for (currency, units, shown) in [
        ("usd", "1999", "19.99"),
        ("jpy", "1999", "1999"),
        ("kwd", "1990", "1.990"),
        ("isk", "150000", "1500"),
        ("ugx", "150000", "1500"),
        ("mga", "1500", "1500.00"),
    ] {
        let (price, _) = shop.create_price(currency, units).await;
        shop.create_plan_for(currency, &price).await;
        let customer = shop
            .create_customer(&format!("{currency}@example.com"))
            .await;
        let id = shop.subscribe(&customer, &price, &[]).await;
        shop.settle().await;
        let invoice = shop.latest_invoice(&id).await;
        let refund = format!("/invoices/{invoice}/refund");
        shop.stand_in.post(&refund, json!({})).await;
        shop.settle().await;
        let text = shop.payment_text(&invoice).await;
        let currency_field = format!("\"currency\":\"{}\"", currency.to_uppercase());
        for part in [
            format!("\"amount\":{shown},"),
            format!("\"refunded_amount\":{shown},"),
            "\"status\":\"refunded\"".to_owned(),
            currency_field,
        ] {
            assert!(text.contains(&part), "{currency}: {part} in {text}");
        }
    }
}

#[tokio::test]
async fn balance_of_a_customer_is_not_part_of_a_payment() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let balance = [("balance", "-2500")];
    let object = format!("customers/{customer}");
    shop.stand_in.stripe(&object, &balance).await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
    let covered = shop.object(&shop.latest_invoice(&id).await).await;
    assert_eq!(
        (&covered["total"], &covered["amount_paid"]),
        (&json!(1_999), &json!(0))
    );
    let payments = "SELECT count(*) FROM subscription_payments";
    assert_eq!(shop.count(payments).await, 0, "the balance has paid it");
    let renew = format!("/subscriptions/{id}/renew");
    for amount in ["14.98", "19.99"] {
        shop.stand_in.post(&renew, json!({})).await;
        shop.settle().await;
        let text = shop.payment_text(&shop.latest_invoice(&id).await).await;
        assert!(text.contains("\"status\":\"completed\""), "{text}");
        assert!(text.contains(&format!("\"amount\":{amount},")), "{text}");
    }
}

#[tokio::test]
async fn amounts_of_lemon_squeezy_are_exact_or_wait_for_a_person() {
    let shop = LemonShop::start(true).await;
    for (currency, units, shown) in [
        ("USD", 1_999, "19.99"),
        ("JPY", 1_999, "1999"),
        ("KWD", 1_990, "1.990"),
        ("ISK", 1_500, "1500"),
        ("UGX", 1_500, "1500"),
        ("MGA", 150_000, "1500.00"),
    ] {
        let sold = shop.buy(currency, units).await;
        shop.settle().await;
        let text = shop.payment_text(&sold.invoice).await;
        assert!(text.contains(&format!("\"amount\":{shown},")), "{text}");
        assert!(
            text.contains(&format!("\"currency\":\"{currency}\"")),
            "{text}"
        );
    }
    // The integer counts hundredths, and the text shows none.
    let style = json!({"amount_style": "inconsistent"});
    shop.stand_in.post("/settings", style).await;
    let sold = shop.buy("JPY", 1_500).await;
    shop.settle().await;
    let failed = shop.invoice_notification(&sold.invoice).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("subscription invoice total: is ambiguous"),
        "{reason}"
    );
    assert_eq!(shop.status(&sold.subscription).await, "active");
}
