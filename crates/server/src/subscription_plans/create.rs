//! `POST /subscription-plans`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{Currency, EventKind, Money, NewPlan, Plan, Variants};
use utoipa::ToSchema;

use super::{
    refused, shape, table,
    view::{PlanView, READ_ONLY},
};
use crate::{
    app::App,
    callers::{Caller, PlansWrite},
    events,
    http::{
        idempotency::{Begun, Once},
        json::{Fields, boolean, decimal, integer, list, text},
        problem::{AnyEndpoint, Problem, ProblemBody, WithBody},
    },
};

/// What is said of a plan when it is made.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreatePlan, example = json!({
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
}))]
#[expect(dead_code, reason = "describes the body; `parse` reads it")]
pub struct CreatePlan {
    #[schema(schema_with = shape::name)]
    name: String,
    /// How the plan is addressed. Unique regardless of case; never changes.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        example = "pro"
    )]
    slug: String,
    #[schema(schema_with = shape::price)]
    price: (),
    #[schema(schema_with = shape::billing_cycle)]
    billing_cycle: (),
    /// ISO 4217, in any case. Default: the tenant's `default_currency`.
    #[schema(pattern = "^[A-Za-z]{3}$", example = "USD")]
    currency: Option<String>,
    #[schema(schema_with = shape::product_id)]
    product_id: Option<String>,
    #[schema(schema_with = shape::variants_or_null)]
    variants: Option<Vec<String>>,
    #[schema(schema_with = shape::href)]
    href: Option<String>,
    #[schema(schema_with = shape::description)]
    description: Option<String>,
    /// How many nodes a subscriber may run; -1 is unlimited. Default: 0.
    #[schema(minimum = -1, maximum = 2_147_483_647_i64, example = 25)]
    node_quota: Option<i32>,
    #[schema(schema_with = shape::features)]
    features: Option<String>,
    /// Whether a pricing page should point it out. Default: false.
    #[schema(example = true)]
    most_popular: Option<bool>,
    /// Where it stands among the others: the higher, the more it gives. Default: 0.
    #[schema(minimum = 0, maximum = 1000, example = 2)]
    tier: Option<i32>,
    /// Whether it can be subscribed to. Default: true.
    #[schema(example = true)]
    is_active: Option<bool>,
}

/// Create a plan
///
/// Required: `name`, `slug`, `price` and `billing_cycle`. Everything that is wrong with the body is
/// reported at once.
#[utoipa::path(
    post,
    path = "/subscription-plans",
    tag = "Subscription plans",
    operation_id = "createPlan",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11",
        description = "Names this request: sent again with the same key within 24 hours, it gets the same answer \
                       (with `Idempotency-Replayed: true`) and is not done twice.")),
    request_body(content = CreatePlan, description = "What is said of the plan."),
    responses(
        (status = 201, description = "The plan as it now stands.", body = PlanView,
            headers(("Location" = String, description = "The path of the plan."),
                ("ETag" = String, description = "What the plan looks like, for If-Match."),
                ("Idempotency-Replayed" = String, description = "`true` if this is the answer to an earlier request with the same key."))),
        (status = 409, description = "Another plan has this slug (`slug_taken`), or a request with the same key is still running (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<PlansWrite>,
    once: Once,
    fields: Fields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // What is wrong with the body costs no connection.
    let terms = parse(fields, tenant.default_currency)?;
    let mut connection = app.engine_of(tenant)?.connection().await?;
    let tx = match once
        .begin(&mut connection, &caller.scope(), fingerprint)
        .await?
    {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(tx) => tx,
    };
    let now = app.clock.now();
    let plan = Plan::create(terms, app.ids.next(now), now);
    let view = PlanView::from(&plan);

    table::insert(&tx, tenant.id, &plan)
        .await
        .map_err(refused)?;
    let event = caller.event(app.ids, now, EventKind::PlanCreated, plan.id, &view);
    events::record(&tx, &event).await?;
    let location = format!("/subscription-plans/{}", plan.terms.slug);
    tx.created(location, &view).await
}

/// Reads the body, or says everything that is wrong with it.
fn parse(mut fields: Fields, default_currency: Currency) -> Result<NewPlan, Problem> {
    fields.read_only(READ_ONLY);
    let currency = fields.or("currency", text, default_currency);
    let price = fields.required("price", |raw| match currency {
        Some(currency) => Ok(Some(Money::exact(&decimal(raw)?, currency)?)),
        // Which currency is meant is not known; that it is a number can still be checked.
        None => decimal(raw).map(|_| None),
    });
    let name = fields.required("name", text);
    let slug = fields.required("slug", text);
    let billing_cycle = fields.required("billing_cycle", text);
    let product_id = fields.optional("product_id", text);
    let variants = fields.or_default("variants", |raw| Ok(Variants::new(list(text)(raw)?)?));
    let href = fields.optional("href", text);
    let description = fields.optional("description", text);
    let node_quota = fields.or_default("node_quota", integer);
    let features = fields.optional("features", text);
    let most_popular = fields.or_default("most_popular", boolean);
    let tier = fields.or_default("tier", integer);
    let is_active = fields.or("is_active", boolean, true);
    fields.finish(|| {
        Some(NewPlan {
            name: name?,
            slug: slug?,
            price: price??,
            billing_cycle: billing_cycle?,
            product_id: product_id?,
            variants: variants?,
            href: href?,
            description: description?,
            node_quota: node_quota?,
            features: features?,
            most_popular: most_popular?,
            tier: tier?,
            is_active: is_active?,
        })
    })
}
