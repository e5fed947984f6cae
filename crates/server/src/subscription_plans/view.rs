//! A plan as we return it and as its events carry it.

use jiff::Timestamp;
use perennial_domain::{BillingCycle, Line, Money, Plan, PlanId, Prose};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::http::{
    answer::{exact_number, shown},
    schema::{amount_out, words},
};

/// What a plan's answer carries beyond what can be said of it: a caller may send it back.
pub const READ_ONLY: &[&str] = &["id", "feature_list", "created_at", "updated_at"];

/// A plan.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Plan, example = json!({
    "id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
    "slug": "pro",
    "name": "Pro",
    "product_id": "prod_1042",
    "variants": ["var_1", "var_2"],
    "price": 19.99,
    "currency": "USD",
    "href": "https://example.com/plans/pro",
    "billing_cycle": "monthly",
    "description": "For teams that ship every day.",
    "node_quota": 25,
    "features": "SSO, Audit log, Priority support",
    "feature_list": ["SSO", "Audit log", "Priority support"],
    "most_popular": true,
    "tier": 2,
    "is_active": true,
    "created_at": "2026-11-15T09:30:00Z",
    "updated_at": "2026-11-15T09:30:00Z"
}))]
pub struct PlanView {
    /// The plan's identifier.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PlanId,
    /// How it is addressed.
    #[schema(example = "pro")]
    slug: String,
    /// What people see.
    #[schema(example = "Pro")]
    name: String,
    /// The product at the payment provider.
    #[schema(required, example = "prod_1042")]
    product_id: Option<String>,
    /// The product's variants there.
    #[schema(example = json!(["var_1", "var_2"]))]
    variants: Vec<String>,
    #[serde(serialize_with = "exact_number")]
    #[schema(schema_with = price)]
    price: Money,
    /// The currency of the price, ISO 4217.
    #[schema(example = "USD")]
    currency: &'static str,
    /// The plan's page.
    #[schema(required, format = "uri", example = "https://example.com/plans/pro")]
    href: Option<String>,
    #[schema(schema_with = billing_cycle)]
    billing_cycle: &'static str,
    /// What people read.
    #[schema(required, example = "For teams that ship every day.")]
    description: Option<String>,
    /// How many nodes a subscriber may run; -1 is unlimited.
    #[schema(example = 25)]
    node_quota: i32,
    /// What it includes: a comma-separated list in one string, as it was sent.
    #[schema(required, example = "SSO, Audit log, Priority support")]
    features: Option<String>,
    /// The items of `features`: trimmed, empty ones dropped.
    #[schema(example = json!(["SSO", "Audit log", "Priority support"]))]
    feature_list: Vec<String>,
    /// Whether a pricing page should point it out.
    #[schema(example = true)]
    most_popular: bool,
    /// Where it stands among the others: the higher, the more it gives.
    #[schema(example = 2)]
    tier: i32,
    /// Whether it can be subscribed to.
    #[schema(example = true)]
    is_active: bool,
    /// When it was made.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    created_at: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    updated_at: Timestamp,
}

fn price() -> Object {
    amount_out("What one billing cycle costs, at the currency's own decimals.")
}

fn billing_cycle() -> Object {
    words(
        "How often it is paid for.",
        &BillingCycle::ALL.map(BillingCycle::as_str),
    )
}

impl From<&Plan> for PlanView {
    fn from(plan: &Plan) -> Self {
        let terms = &plan.terms;
        Self {
            id: plan.id,
            slug: terms.slug.to_string(),
            name: terms.name.to_string(),
            product_id: terms.product_id.as_ref().map(Line::to_string),
            variants: terms.variants.iter().map(str::to_owned).collect(),
            price: terms.price,
            currency: terms.price.currency().code(),
            href: terms.href.as_ref().map(|href| href.as_str().to_owned()),
            billing_cycle: terms.billing_cycle.as_str(),
            description: terms.description.as_ref().map(Prose::to_string),
            node_quota: terms.node_quota.get(),
            features: terms
                .features
                .as_ref()
                .map(|features| features.as_str().to_owned()),
            feature_list: terms
                .features
                .iter()
                .flat_map(|features| features.list().map(str::to_owned))
                .collect(),
            most_popular: terms.most_popular,
            tier: terms.tier.get(),
            is_active: terms.is_active,
            created_at: plan.created_at,
            updated_at: plan.updated_at,
        }
    }
}
