//! The JSON representation of a plan, in responses and events.

use jiff::Timestamp;
use perennial_domain::{Metadata, Money, MultiLine, Plan, PlanId, SingleLine};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use crate::http::{
    metadata_field,
    response::{display, money_number, timestamp},
    schema::{amount_output, named},
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub const COMPUTED: &[&str] = &["feature_list", "updated_at"];

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
    "trial_days": 0,
    "description": "For teams that ship every day.",
    "node_quota": 25,
    "features": "SSO, Audit log, Priority support",
    "feature_list": ["SSO", "Audit log", "Priority support"],
    "most_popular": true,
    "tier": 2,
    "is_active": true,
    "metadata": {"order": "A-1042"},
    "created_at": "2026-11-15T09:30:00.000000Z",
    "updated_at": "2026-11-15T09:30:00.000000Z"
}))]
pub struct PlanView {
    /// The plan's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PlanId,
    /// The plan's name in URLs.
    #[schema(example = "pro")]
    slug: String,
    /// Display name.
    #[schema(example = "Pro")]
    name: String,
    /// The product at the payment provider.
    #[schema(required, example = "prod_1042")]
    product_id: Option<String>,
    /// The product's variants at the payment provider.
    #[schema(example = json!(["var_1", "var_2"]))]
    variants: Vec<String>,
    #[serde(serialize_with = "money_number")]
    #[schema(schema_with = price)]
    price: Money,
    /// The currency of the price (ISO 4217).
    #[schema(example = "USD")]
    currency: &'static str,
    /// Link to a page about the plan.
    #[schema(required, format = "uri", example = "https://example.com/plans/pro")]
    href: Option<String>,
    #[schema(schema_with = billing_cycle)]
    billing_cycle: &'static str,
    /// Length of the free trial in days; 0 is none.
    #[schema(example = 14)]
    trial_days: i32,
    /// Description for customers.
    #[schema(required, example = "For teams that ship every day.")]
    description: Option<String>,
    /// Number of nodes a subscriber may run; -1 is unlimited.
    #[schema(example = 25)]
    node_quota: i32,
    /// The included features: a comma-separated list in one string, as sent.
    #[schema(required, example = "SSO, Audit log, Priority support")]
    features: Option<String>,
    /// The items of `features`, trimmed and without empty ones.
    #[schema(example = json!(["SSO", "Audit log", "Priority support"]))]
    feature_list: Vec<String>,
    /// Whether a pricing page should highlight the plan.
    #[schema(example = true)]
    most_popular: bool,
    /// Rank among the tenant's plans; higher tiers include more.
    #[schema(example = 2)]
    tier: i32,
    /// Whether new subscriptions are allowed.
    #[schema(example = true)]
    is_active: bool,
    #[serde(serialize_with = "metadata_field::serialize")]
    #[schema(schema_with = metadata_field::response_schema)]
    metadata: Metadata,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    updated_at: Timestamp,
}

fn price() -> Object {
    amount_output("Price of one billing cycle, with all decimals of the currency.")
}

fn billing_cycle() -> Ref {
    named::BILLING_CYCLE.reference("How often subscriptions renew.")
}

impl From<&Plan> for PlanView {
    fn from(plan: &Plan) -> Self {
        let details = &plan.details;
        Self {
            id: plan.id,
            slug: details.slug.to_string(),
            name: details.name.to_string(),
            product_id: details.product_id.as_ref().map(SingleLine::to_string),
            variants: details.variants.iter().map(str::to_owned).collect(),
            price: details.price,
            currency: details.price.currency().code(),
            href: details.href.as_ref().map(|href| href.as_str().to_owned()),
            billing_cycle: details.billing_cycle.as_str(),
            trial_days: details.trial_days.get(),
            description: details.description.as_ref().map(MultiLine::to_string),
            node_quota: details.node_quota.get(),
            features: details
                .features
                .as_ref()
                .map(|features| features.as_str().to_owned()),
            feature_list: details
                .features
                .iter()
                .flat_map(|features| features.list().map(str::to_owned))
                .collect(),
            most_popular: details.most_popular,
            tier: details.tier.get(),
            is_active: details.is_active,
            metadata: details.metadata.clone(),
            created_at: plan.created_at,
            updated_at: plan.updated_at,
        }
    }
}
