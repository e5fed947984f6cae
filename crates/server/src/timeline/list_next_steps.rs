//! `GET /subscriptions/next-steps`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::SubscriptionId;
use serde::Serialize;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        Required,
        path::{Parameter, ParameterIn},
    },
};

use super::{Situation, history::StatusHistory, next_steps::NextStep};
use crate::{
    app::App,
    auth::{Caller, SubscriptionForecasts},
    http::{
        filter_params::filter,
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::{NoStore, display},
        schema::named,
    },
    subscriptions,
};

struct NextStepParams;

impl IntoParams for NextStepParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "The subscriptions, up to 100.";
        let list = named::SUBSCRIPTION_ID_LIST.reference(description);
        let mut param = filter("subscription_id", list);
        param.required = Required::True;
        vec![param]
    }
}

/// What happens next to some subscriptions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubscriptionNextSteps)]
pub struct NextStepsView {
    /// In the order of ids. Subscriptions that do not exist are missing.
    data: Vec<SubscriptionStepsView>,
}

/// What happens next to a subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubscriptionSteps)]
pub struct SubscriptionStepsView {
    /// The subscription.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_id: SubscriptionId,
    /// At least one step, in the order in which they happen.
    next: Vec<NextStep>,
}

/// Forecast subscriptions
///
/// Returns what happens next to each subscription and when, as in the timeline of its user. The forecast assumes that nothing
/// is paid and no request is made.
#[utoipa::path(
    get,
    path = "/subscriptions/next-steps",
    tag = "Subscriptions",
    operation_id = "listNextSteps",
    params(NextStepParams),
    responses(
        (status = 200, description = "The next steps.", body = NextStepsView),
        CommonResponses,
    ),
)]
pub async fn list_next_steps(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionForecasts>,
    mut params: QueryParams,
) -> Result<NoStore<NextStepsView>, Problem> {
    if !params.contains("subscription_id") {
        params.push_error("subscription_id", "is required");
    }
    let ids: Vec<SubscriptionId> = params.any_of("subscription_id").unwrap_or_default();
    params.finish()?;
    let tenant = caller.tenant();
    let connection = app.database_for(tenant)?.connection().await?;
    let scope = subscriptions::scope(tenant);
    let mut found = subscriptions::table::find_all(&connection, scope, &ids).await?;
    drop(connection);
    found.sort_unstable_by_key(|subscription| subscription.id);
    let now = app.billing_clock.now();
    // Only the explanation of the past needs the events.
    let history = StatusHistory::default();
    let data = { found.iter() }
        .map(|subscription| SubscriptionStepsView {
            subscription_id: subscription.id,
            next: Situation::new(subscription, &history, now).next_steps(),
        })
        .collect();
    Ok(NoStore(StatusCode::OK, NextStepsView { data }))
}
