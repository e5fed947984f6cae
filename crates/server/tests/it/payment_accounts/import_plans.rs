//! Plans that `perennial import --create-plans` creates.

use serde_json::{Value, json};

use super::sync::{StripeShop, lemon_squeezy::LemonShop};

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

#[tokio::test]
async fn only_variant_of_a_product_is_sold_although_it_is_pending() {
    let shop = LemonShop::start(true).await;
    let variant = |name: &str| json!({"name": name, "price": 900, "interval": "month"});
    let mut ids = Vec::new();
    for variants in [
        json!([variant("Only")]),
        json!([variant("Default"), variant("Large")]),
    ] {
        let product = json!({"name": "Team", "variants": variants});
        let created = shop.stand_in.post("/products", product).await;
        for variant in created["variants"].as_array().unwrap() {
            ids.push(variant["id"].as_str().unwrap().to_owned());
        }
    }
    // The default variant of a product with others is not shown.
    let path = format!("/objects/variants/{}/overrides", ids[1]);
    let pending = json!({"fields": {"status": "pending"}});
    shop.stand_in.post(&path, pending).await;
    shop.import_plans();
    let plans = shop.api.get_json("/subscription-plans").await;
    let sold = ids
        .iter()
        .map(|id| plan_of(&plans, id)["is_active"].clone());
    let expected = [json!(true), json!(false), json!(true)];
    assert_eq!(sold.collect::<Vec<Value>>(), expected);
}
