//! Plans that `perennial import --create-plans` creates.

use serde_json::{Value, json};

use super::sync::StripeShop;

/// Returns the plan of a variant.
fn plan_of(plans: &Value, variant: &str) -> Value {
    let mut plans = plans["data"].as_array().unwrap().iter();
    let plan = plans.find(|plan| plan["variants"] == json!([variant]));
    plan.unwrap_or_else(|| panic!("{variant} has no plan"))
        .clone()
}

#[tokio::test]
async fn price_without_a_valid_plan_does_not_stop_the_import() {
    let shop = StripeShop::start().await;
    let mut prices = Vec::new();
    for name in ["Line\nbreak", &"A very long name ".repeat(16), "Pro"] {
        let form = [
            ("currency", "usd"),
            ("unit_amount", "1999"),
            ("recurring[interval]", "month"),
            ("product_data[name]", name),
        ];
        let price = shop.stand_in.stripe("prices", &form).await;
        prices.push(price["id"].as_str().unwrap().to_owned());
    }
    let report = shop
        .service
        .run_json(&["import", "stripe", "--create-plans", "--json"]);
    assert_eq!(report["plans"]["missing"], 1, "{report}");
    let problems = report["problems"].as_array().unwrap();
    let problem = problems[0].as_str().unwrap();
    assert!(problem.starts_with(&prices[0]), "{problem}");
    assert!(problem.contains("name"), "{problem}");
    assert_eq!(problems.len(), 1, "{report}");
    let plans = shop.api.get_json("/subscription-plans").await;
    let slug = plan_of(&plans, &prices[1])["slug"].clone();
    let slug = slug.as_str().unwrap();
    assert!(slug.starts_with("a-very-long-name-a-very-long"), "{slug}");
    assert!(slug.ends_with("-monthly") && slug.len() <= 64, "{slug}");
    assert_eq!(plan_of(&plans, &prices[2])["slug"], "pro-monthly");
}
