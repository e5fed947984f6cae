//! `GET /subscriptions/counts`

use std::{collections::BTreeMap, sync::Arc};

use axum::extract::State;
use perennial_domain::{PlanId, Slug, SubscriptionStatus};
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use super::counts_sql::{self, PlanCount};
use crate::{
    app::App,
    auth::{Caller, SubscriptionCounts},
    http::{
        problem::{CommonResponses, Problem},
        query::NoQuery,
        response::{OkJson, display},
        schema::named,
    },
};

/// The numbers of subscriptions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubscriptionCounts)]
pub struct SubscriptionCountsView {
    /// One item for each status that any subscription has.
    by_status: Vec<StatusCountView>,
    /// One item for each plan and status that any subscription has.
    by_plan: Vec<PlanCountView>,
}

/// The number of subscriptions with a status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatusCount)]
pub struct StatusCountView {
    #[schema(schema_with = status)]
    status: &'static str,
    /// The number of subscriptions.
    #[schema(example = 42)]
    count: i64,
    /// Whether there may be more: a plan has more subscriptions with this status than are counted.
    #[schema(example = false)]
    at_least: bool,
}

/// The number of a plan's subscriptions with a status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlanStatusCount)]
pub struct PlanCountView {
    /// The plan, which may be deleted.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// The plan's slug.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pro")]
    subscription_plan_slug: Slug,
    #[schema(schema_with = status)]
    status: &'static str,
    /// The number of subscriptions, up to 1,000.
    #[schema(example = 42)]
    count: i64,
    /// Whether there may be more than `count`.
    #[schema(example = false)]
    at_least: bool,
}

fn status() -> Ref {
    named::SUBSCRIPTION_STATUS.reference("The status, as responses show it.")
}

/// Count subscriptions
///
/// By status, and by plan and status. At most 1,000 subscriptions of a plan and status are counted; `at_least` says that there
/// may be more.
#[utoipa::path(
    get,
    path = "/subscriptions/counts",
    tag = "Subscriptions",
    operation_id = "countSubscriptions",
    responses(
        (status = 200, description = "The numbers of subscriptions.", body = SubscriptionCountsView),
        CommonResponses,
    ),
)]
pub async fn counts(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionCounts>,
    _: NoQuery,
) -> Result<OkJson<SubscriptionCountsView>, Problem> {
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    let now = app.billing_clock.now();
    let counts = counts_sql::count(&mut connection, caller.tenant().id, now).await?;
    let mut by_status: BTreeMap<SubscriptionStatus, StatusCountView> = BTreeMap::new();
    for count in &counts {
        let sum = by_status.entry(count.status).or_insert(StatusCountView {
            status: count.status.as_str(),
            count: 0,
            at_least: false,
        });
        sum.count += count.count;
        sum.at_least |= count.is_at_least;
    }
    Ok(OkJson(SubscriptionCountsView {
        by_status: by_status.into_values().collect(),
        by_plan: counts.iter().map(PlanCountView::from).collect(),
    }))
}

impl From<&PlanCount> for PlanCountView {
    fn from(count: &PlanCount) -> Self {
        Self {
            subscription_plan_id: count.plan,
            subscription_plan_slug: count.slug,
            status: count.status.as_str(),
            count: count.count,
            at_least: count.is_at_least,
        }
    }
}
