//! `/subscription-plans`

mod create;
mod delete;
mod list;
mod read;
mod update;

use serde_json::{Value, json};

/// The fields of a plan without any optional ones.
pub fn minimal_plan(slug: &str) -> Value {
    json!({"name": "Pro", "slug": slug, "price": 19.99, "billing_cycle": "monthly"})
}
