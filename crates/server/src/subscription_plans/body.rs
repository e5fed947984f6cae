//! Request fields of `POST /subscription-plans` and `PUT /subscription-plans/{slug}`: their schema
//! and parsing.

use perennial_domain::{Currency, Money, Plan, PlanDetails, PlanId, TrialDays, Variants};
use serde_json::json;
use utoipa::openapi::{
    KnownFormat, RefOr, SchemaFormat,
    schema::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

use super::view::COMPUTED;
use crate::http::{
    json::{BodyFields, boolean, decimal, integer, list, text, timestamp},
    metadata_field,
    problem::Problem,
    request_schema::{RequestField, request_body},
    schema::{self, named},
};

const FIELDS: &[RequestField] = &[
    RequestField::required("name", || {
        schema::single_line("Display name: a single line.", 200, "Pro").into()
    }),
    RequestField::required("slug", || {
        let description = "The plan's name in URLs. Must be unique within the tenant, ignoring case. Cannot change.";
        named::SLUG.reference(description).into()
    }),
    RequestField::required("price", || {
        let description =
            "Price of one billing cycle. Must not have more decimals than the currency.";
        named::AMOUNT.reference(description).into()
    })
    .update_note("A change applies to new subscriptions only."),
    RequestField::required("billing_cycle", || {
        named::BILLING_CYCLE_INPUT
            .reference("How often subscriptions renew.")
            .into()
    }),
    RequestField::with_default("trial_days", || {
        let description = "Length of the free trial in days; 0 is none. By default, a user gets a plan's trial once.";
        integer_schema(description, TrialDays::MIN, TrialDays::MAX, 14)
    })
    .create_note("Default: 0.")
    .update_note("A change applies to new subscriptions only."),
    RequestField::with_default("currency", || {
        named::CURRENCY_CODE
            .reference("ISO 4217 code; case-insensitive. Cannot change.")
            .into()
    })
    .create_note("Default: the tenant's `default_currency`."),
    RequestField::nullable("product_id", || {
        named::EXTERNAL_ID
            .reference("The product at the payment provider.")
            .into()
    }),
    RequestField::with_default("variants", variants),
    RequestField::nullable("href", || {
        let description =
            "Link to a page about the plan. Must be http or https, without user name and password.";
        named::URL.reference(description).into()
    }),
    RequestField::nullable("description", || {
        let description = "Description for customers; may have several lines.";
        schema::multi_line(description, 5000, "For teams that ship every day.").into()
    }),
    RequestField::with_default("node_quota", || {
        let description = "Number of nodes a subscriber may run; -1 is unlimited.";
        integer_schema(description, -1, i32::MAX, 25)
    })
    .create_note("Default: 0."),
    RequestField::nullable("features", || {
        let description =
            "The included features: a comma-separated list in one string, stored unchanged.";
        schema::multi_line(description, 5000, "SSO, Audit log, Priority support").into()
    }),
    RequestField::with_default("most_popular", || {
        schema::boolean("Whether a pricing page should highlight the plan.").into()
    })
    .create_note("Default: false."),
    RequestField::with_default("tier", || {
        let description = "Rank among the tenant's plans; higher tiers include more.";
        integer_schema(description, 0, 1000, 2)
    })
    .create_note("Default: 0."),
    RequestField::with_default("is_active", || {
        schema::boolean("Whether new subscriptions are allowed.").into()
    })
    .create_note("Default: true."),
    metadata_field::FIELD,
    RequestField::generated("id", || {
        named::PLAN_ID
            .reference("The plan's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

fn variants() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(named::EXTERNAL_ID.reference("A variant."))
        .max_items(Some(100))
        .description(Some("The product's variants at the payment provider."))
        .examples([json!(["var_1", "var_2"])])
        .into()
}

fn integer_schema(description: &str, minimum: i32, maximum: i32, example: i32) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(minimum))
        .maximum(Some(maximum))
        .description(Some(description))
        .examples([json!(example)])
        .into()
}

request_body!(
    CreatePlan,
    create_schema(FIELDS, COMPUTED),
    "The plan to create.",
    {
        "name": "Pro",
        "slug": "pro",
        "price": 19.99,
        "billing_cycle": "monthly",
        "product_id": "prod_1042",
        "variants": ["var_1", "var_2"],
        "href": "https://example.com/plans/pro",
        "description": "For teams that ship every day.",
        "node_quota": 25,
        "features": "SSO, Audit log, Priority support",
        "most_popular": true,
        "tier": 2
    }
);

request_body!(
    UpdatePlan,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"price": 24.99, "most_popular": false}
);

/// Parses the body of a create request, or returns all field errors.
pub fn parse_create(
    mut fields: BodyFields,
    default_currency: Currency,
) -> Result<PlanDetails, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let currency = fields.with_default("currency", text, default_currency);
    let price = fields.required("price", |raw| match currency {
        Some(currency) => Ok(Some(Money::from_decimal(&decimal(raw)?, currency)?)),
        // Without a valid currency, still check that the price is a number.
        None => decimal(raw).map(|_| None),
    });
    let name = fields.required("name", text);
    let slug = fields.required("slug", text);
    let billing_cycle = fields.required("billing_cycle", text);
    let trial_days = fields.or_default("trial_days", integer);
    let product_id = fields.optional("product_id", text);
    let variants = fields.or_default("variants", |raw| Ok(Variants::new(list(text)(raw)?)?));
    let href = fields.optional("href", text);
    let description = fields.optional("description", text);
    let node_quota = fields.or_default("node_quota", integer);
    let features = fields.optional("features", text);
    let most_popular = fields.or_default("most_popular", boolean);
    let tier = fields.or_default("tier", integer);
    let is_active = fields.with_default("is_active", boolean, true);
    let metadata = metadata_field::from_create(&mut fields);
    fields.finish(|| {
        Some(PlanDetails {
            name: name?,
            slug: slug?,
            price: price??,
            billing_cycle: billing_cycle?,
            trial_days: trial_days?,
            product_id: product_id?,
            variants: variants?,
            href: href?,
            description: description?,
            node_quota: node_quota?,
            features: features?,
            most_popular: most_popular?,
            tier: tier?,
            is_active: is_active?,
            metadata: metadata?,
        })
    })
}

/// Returns the details with the changes of an update request, or all field errors.
pub(super) fn parse_update(mut fields: BodyFields, current: &Plan) -> Result<PlanDetails, Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<PlanId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    let current = current.details.clone();
    let currency = current.price.currency();
    fields.immutable("slug", text, &current.slug);
    fields.immutable("currency", text, &currency);
    let money = |raw: &_| Ok(Money::from_decimal(&decimal(raw)?, currency)?);
    let variants = |raw: &_| Ok(Variants::new(list(text)(raw)?)?);
    let price = fields.or_current("price", money, current.price);
    let billing_cycle = fields.or_current("billing_cycle", text, current.billing_cycle);
    let trial_days = fields.or_current("trial_days", integer, current.trial_days);
    let description = fields.or_current_nullable("description", text, current.description);
    let node_quota = fields.or_current("node_quota", integer, current.node_quota);
    let features = fields.or_current_nullable("features", text, current.features);
    let most_popular = fields.or_current("most_popular", boolean, current.most_popular);
    let tier = fields.or_current("tier", integer, current.tier);
    let is_active = fields.or_current("is_active", boolean, current.is_active);
    let name = fields.or_current("name", text, current.name);
    let product_id = fields.or_current_nullable("product_id", text, current.product_id);
    let variants = fields.or_current("variants", variants, current.variants);
    let href = fields.or_current_nullable("href", text, current.href);
    let metadata = metadata_field::from_update(&mut fields, &current.metadata);
    fields.finish(|| {
        Some(PlanDetails {
            name: name?,
            slug: current.slug,
            price: price?,
            billing_cycle: billing_cycle?,
            trial_days: trial_days?,
            product_id: product_id?,
            variants: variants?,
            href: href?,
            description: description?,
            node_quota: node_quota?,
            features: features?,
            most_popular: most_popular?,
            tier: tier?,
            is_active: is_active?,
            metadata: metadata?,
        })
    })
}
