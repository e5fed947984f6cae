//! `/subscription-plans`

mod create;
mod delete;
mod list;
mod read;
mod update;

use serde_json::{Value, json};

/// The smallest plan.
pub fn minimal(slug: &str) -> Value {
    json!({"name": "Pro", "slug": slug, "price": 19.99, "billing_cycle": "monthly"})
}
