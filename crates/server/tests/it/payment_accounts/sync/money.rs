//! Amounts in currencies whose minor units payment providers write in their own way.

use serde_json::json;

use super::lemon_squeezy::LemonShop;

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
