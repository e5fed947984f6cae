//! `PUT /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, Money, NewPlan, Slug, Variants};
use utoipa::ToSchema;

use super::{
    Locked, lock, no_such_plan, shape, table,
    view::{PlanView, READ_ONLY},
};
use crate::{
    app::App,
    callers::{Caller, PlansWrite},
    events,
    http::{
        answer::Found,
        etag::IfMatch,
        json::{Fields, boolean, decimal, integer, list, text},
        path::PathParam,
        problem::{AnyEndpoint, Conditional, Problem, ProblemBody, WithBody},
    },
};

/// What is to change. What is left out stays; null empties what can be empty. Everything that GET
/// returns may be sent back: a field that equals what the plan has is no instruction.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UpdatePlan, example = json!({"price": 24.99, "most_popular": false}))]
#[expect(dead_code, reason = "describes the body; `amend` reads it")]
pub struct UpdatePlan {
    #[schema(schema_with = shape::price)]
    price: Option<()>,
    #[schema(schema_with = shape::billing_cycle)]
    billing_cycle: Option<()>,
    #[schema(schema_with = shape::description)]
    description: Option<String>,
    /// How many nodes a subscriber may run; -1 is unlimited.
    #[schema(value_type = i32, required = false, minimum = -1, maximum = 2_147_483_647_i64, example = 25)]
    node_quota: Option<i32>,
    #[schema(schema_with = shape::features)]
    features: Option<String>,
    /// Whether a pricing page should point it out.
    #[schema(value_type = bool, required = false, example = true)]
    most_popular: Option<bool>,
    /// Where it stands among the others: the higher, the more it gives.
    #[schema(value_type = i32, required = false, minimum = 0, maximum = 1000, example = 2)]
    tier: Option<i32>,
    /// Whether it can be subscribed to.
    #[schema(value_type = bool, required = false, example = true)]
    is_active: Option<bool>,
    #[schema(schema_with = shape::name)]
    name: Option<String>,
    #[schema(schema_with = shape::product_id)]
    product_id: Option<String>,
    #[schema(schema_with = shape::variants)]
    variants: Option<Vec<String>>,
    #[schema(schema_with = shape::href)]
    href: Option<String>,
}

/// Change a plan
///
/// Changes what is sent and nothing else. A new price reaches new subscriptions only. `slug` and
/// `currency` never change (`immutable_field`).
#[utoipa::path(
    put,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "updatePlan",
    params(
        ("slug" = String, Path, description = "The plan's slug, in any case.", example = "pro",
            min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "The ETag of the plan that the change is meant for."),
    ),
    request_body(content = UpdatePlan, description = "What is to change."),
    responses(
        (status = 200, description = "The plan as it now stands.", body = PlanView,
            headers(("ETag" = String, description = "What the plan looks like, for If-Match."))),
        (status = 404, description = "There is no such plan (`plan_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        Conditional,
        WithBody,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<PlansWrite>,
    PathParam(slug): PathParam<Slug>,
    if_match: IfMatch,
    fields: Fields,
) -> Result<Found<PlanView>, Problem> {
    let slug = slug.map_err(no_such_plan)?;
    let tenant = caller.tenant().id;
    let mut connection = app.engine_of(caller.tenant())?.connection().await?;
    let tx = connection.begin();
    let Locked {
        plan,
        view: before,
        now,
    } = lock(&app, &tx, tenant, &slug, &if_match).await?;
    let Some(plan) = plan.amend(amend(fields, plan.terms.clone())?, now) else {
        return Ok(Found(before));
    };
    let after = PlanView::from(&plan);

    table::save(&tx, tenant, &plan).await?;
    let changed = events::changed(&before, &after)?;
    let event = caller.event(app.ids, now, EventKind::PlanUpdated, plan.id, &changed);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    Ok(Found(after))
}

/// The terms with what the body says changed, or everything that is wrong with it.
fn amend(mut fields: Fields, current: NewPlan) -> Result<NewPlan, Problem> {
    fields.read_only(READ_ONLY);
    let currency = current.price.currency();
    fields.immutable("slug", text, &current.slug);
    fields.immutable("currency", text, &currency);
    let exact = |raw: &_| Ok(Money::exact(&decimal(raw)?, currency)?);
    let variants = |raw: &_| Ok(Variants::new(list(text)(raw)?)?);
    let price = fields.amend("price", exact, current.price);
    let billing_cycle = fields.amend("billing_cycle", text, current.billing_cycle);
    let description = fields.amend_optional("description", text, current.description);
    let node_quota = fields.amend("node_quota", integer, current.node_quota);
    let features = fields.amend_optional("features", text, current.features);
    let most_popular = fields.amend("most_popular", boolean, current.most_popular);
    let tier = fields.amend("tier", integer, current.tier);
    let is_active = fields.amend("is_active", boolean, current.is_active);
    let name = fields.amend("name", text, current.name);
    let product_id = fields.amend_optional("product_id", text, current.product_id);
    let variants = fields.amend("variants", variants, current.variants);
    let href = fields.amend_optional("href", text, current.href);
    fields.finish(|| {
        Some(NewPlan {
            name: name?,
            slug: current.slug,
            price: price?,
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
