//! `GET /subscription-plans`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, Plan};
use utoipa::{
    IntoParams,
    openapi::path::{Parameter, ParameterIn},
};

use super::{
    plan_list_sql::{self, PlanFilter, PlanKey, PlanOrder},
    view::PlanView,
};
use crate::{
    app::App,
    auth::{Caller, PlansRead},
    db::AgeOrder,
    http::{
        filter_params::filter,
        openapi::{CursorParams, sort_order},
        pagination::{Page, PageRequest, SortKey},
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::BrowserCacheable,
        schema::named,
    },
};

/// Values of `sort`; the first is the default.
const ORDERS: [(&str, PlanOrder); 4] = [
    ("created_at", PlanOrder::ByAge(AgeOrder::OldestFirst)),
    ("-created_at", PlanOrder::ByAge(AgeOrder::NewestFirst)),
    ("tier", PlanOrder::LowestTierFirst),
    ("-tier", PlanOrder::HighestTierFirst),
];

/// Filters and the order. A comma separates several values of one filter, of which any may match.
struct Filters;

impl IntoParams for Filters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let sort = "`created_at` (default) or `tier`; with a leading `-` in descending order.";
        let is_active = "Only plans that allow new subscriptions (`true`), or do not (`false`).";
        vec![
            filter("sort", sort_order(sort, &ORDERS.map(|(name, _)| name))),
            filter("is_active", named::BOOLEAN_LIST.reference(is_active)),
            filter(
                "tier",
                named::TIER_LIST.reference("Only plans of these tiers."),
            ),
            filter(
                "billing_cycle",
                named::BILLING_CYCLE_LIST.reference("Only plans with these billing cycles."),
            ),
        ]
    }
}

/// List plans
///
/// Results are paginated by cursor. Publishable clients and users see only active plans.
#[utoipa::path(
    get,
    path = "/subscription-plans",
    tag = "Subscription plans",
    operation_id = "listPlans",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        CursorParams,
        Filters,
    ),
    responses(
        (status = 200, description = "A page of plans.", body = Page<PlanView>),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<PlansRead>,
    mut params: QueryParams,
) -> Result<BrowserCacheable<Page<PlanView>>, Problem> {
    let request = PageRequest::parse(&mut params, &ORDERS);
    let mut filter = PlanFilter {
        is_active: params.any_of("is_active"),
        tier: params.any_of("tier"),
        billing_cycle: params.any_of("billing_cycle"),
    };
    params.finish()?;
    if !caller.is_unrestricted() {
        let values = filter.is_active.get_or_insert_with(|| vec![true]);
        values.retain(|is_active| *is_active);
    }

    let tenant = caller.tenant().id;
    let user = caller.idempotency_scope().user;
    let page = request.verify(
        &app.cursor_key,
        &[&"GET /subscription-plans", &tenant, &user, &filter],
    )?;
    let connection = app.database_for(caller.tenant())?.connection().await?;
    let start = (page.order, page.after);
    let plans = plan_list_sql::list(&connection, tenant, &filter, start, page.row_limit()).await?;
    let response = page.finish(plans, |plan: &Plan| PlanKey {
        created_at: plan.created_at,
        tier: plan.details.tier.get(),
        id: plan.id.uuid(),
    });
    Ok(BrowserCacheable {
        is_public: caller.is_public(),
        response,
    })
}

impl SortKey for PlanKey {
    fn encode(&self) -> String {
        format!("{} {} {}", self.created_at, self.tier, self.id)
    }

    fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        Some(Self {
            created_at: parts.next()?.parse().ok()?,
            tier: parts.next()?.parse().ok()?,
            id: parts.next()?.parse().ok()?,
        })
    }
}
