//! `GET /subscription-plans`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, Plan};

use super::{
    table::{self, Filter, Order, Place},
    view::PlanView,
};
use crate::{
    app::App,
    callers::{Caller, PlansRead},
    http::{
        page::{self, List, Page},
        params::Params,
        problem::{AnyEndpoint, Problem},
    },
};

/// The orders that a caller can ask for; the first is the default.
const ORDERS: [(&str, Order); 4] = [
    ("created_at", Order::Oldest),
    ("-created_at", Order::Newest),
    ("tier", Order::LowestTier),
    ("-tier", Order::HighestTier),
];

/// List plans
///
/// Page by page; a cursor goes on where the last page ended. Publishable clients and
/// users see active plans only.
#[utoipa::path(
    get,
    path = "/subscription-plans",
    tag = "Subscription plans",
    operation_id = "listPlans",
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many plans a page has. Default: 50."),
        ("cursor" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]+$",
            description = "Where to go on: `next_cursor` of the page before, with the same filters and order."),
        ("sort" = Option<String>, Query, example = "-created_at", pattern = "^-?(created_at|tier)$",
            description = "`created_at` (the default), `tier`, or either with `-` in front for the other way round."),
        ("is_active" = Option<String>, Query, example = "true", pattern = "^(true|false)(,(true|false)){0,99}$",
            description = "Only plans that can, or cannot, be subscribed to."),
        ("tier" = Option<String>, Query, example = "1,2", pattern = "^[0-9]{1,4}(,[0-9]{1,4}){0,99}$",
            description = "Only plans of these tiers, separated by commas."),
        ("billing_cycle" = Option<String>, Query, example = "monthly,yearly",
            pattern = "^(daily|weekly|monthly|quarterly|semiannual|yearly|lifetime|day|week|month|quarter|half_yearly|year|annual|annually|one_time)(,(daily|weekly|monthly|quarterly|semiannual|yearly|lifetime|day|week|month|quarter|half_yearly|year|annual|annually|one_time)){0,99}$",
            description = "Only plans with these billing cycles, separated by commas."),
    ),
    responses(
        (status = 200, description = "A page of plans.", body = Page<PlanView>),
        AnyEndpoint,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<PlansRead>,
    mut params: Params,
) -> Result<Page<PlanView>, Problem> {
    let limit = page::limit(&mut params);
    let cursor = params.text("cursor");
    let order = params.order(&ORDERS);
    let mut filter = Filter {
        is_active: params.any_of("is_active"),
        tier: params.any_of("tier"),
        billing_cycle: params.any_of("billing_cycle"),
    };
    params.finish()?;
    if !caller.sees_everything() {
        let wanted = filter.is_active.get_or_insert_with(|| vec![true]);
        wanted.retain(|active| *active);
    }

    let tenant = caller.tenant().id;
    let list = List::new(
        &app.cursor_key,
        &[
            &"GET /subscription-plans",
            &tenant,
            &caller.scope().user,
            &filter,
            &order,
        ],
    );
    let after = cursor.map(|cursor| place(&list, &cursor)).transpose()?;
    let connection = app.engine_of(caller.tenant())?.connection().await?;
    let plans = table::list(&connection, tenant, &filter, order, after, limit + 1).await?;
    let place = |plan: &Plan| {
        format!(
            "{} {} {}",
            plan.created_at,
            plan.terms.tier.get(),
            plan.id.uuid()
        )
    };
    Ok(Page::of(plans, limit, &list, place))
}

/// Reads what `list` wrote; a cursor that is signed and cannot be read is a mistake of ours.
fn place(list: &List<'_>, cursor: &str) -> Result<Place, Problem> {
    let place = list.place(cursor)?;
    let mut parts = place.split(' ');
    let mut next = || parts.next().unwrap_or_default();
    let read = (next().parse(), next().parse(), next().parse());
    match read {
        (Ok(created_at), Ok(tier), Ok(id)) => Ok(Place {
            created_at,
            tier,
            id,
        }),
        _ => Err(Problem::internal(&"a cursor of ours cannot be read")),
    }
}
