//! `GET /subscription-plans`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, Plan};

use super::{
    table::{self, PlanFilter, PlanKey, PlanOrder},
    view::PlanView,
};
use crate::{
    app::App,
    auth::{Caller, PlansRead},
    db::AgeOrder,
    http::{
        openapi::CursorParams,
        pagination::{Page, PageRequest, SortKey},
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::BrowserCacheable,
    },
};

/// Values of `sort`; the first is the default.
const ORDERS: [(&str, PlanOrder); 4] = [
    ("created_at", PlanOrder::ByAge(AgeOrder::OldestFirst)),
    ("-created_at", PlanOrder::ByAge(AgeOrder::NewestFirst)),
    ("tier", PlanOrder::LowestTierFirst),
    ("-tier", PlanOrder::HighestTierFirst),
];

/// List plans
///
/// Results are paginated by cursor. Publishable clients and users see only active plans.
#[utoipa::path(
    get,
    path = "/subscription-plans",
    tag = "Subscription plans",
    operation_id = "listPlans",
    params(
        CursorParams,
        ("sort" = Option<String>, Query, example = "-created_at", pattern = "^-?(created_at|tier)$",
            description = "`created_at` (default) or `tier`; with a leading `-` in descending order."),
        ("is_active" = Option<String>, Query, example = "true", pattern = "^(true|false)(,(true|false)){0,99}$",
            description = "Only plans that allow new subscriptions (`true`), or do not (`false`)."),
        ("tier" = Option<String>, Query, example = "1,2", pattern = "^[0-9]{1,4}(,[0-9]{1,4}){0,99}$",
            description = "Only plans of these tiers, separated by commas."),
        ("billing_cycle" = Option<String>, Query, example = "monthly,yearly",
            pattern = "^(daily|weekly|monthly|quarterly|semiannual|yearly|lifetime|day|week|month|quarter|half_yearly|year|annual|annually|one_time)(,(daily|weekly|monthly|quarterly|semiannual|yearly|lifetime|day|week|month|quarter|half_yearly|year|annual|annually|one_time)){0,99}$",
            description = "Only plans with these billing cycles, separated by commas."),
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
    let plans = table::list(&connection, tenant, &filter, start, page.row_limit()).await?;
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
