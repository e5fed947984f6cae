//! `PUT /subscriptions/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{
    Changes, EventKind, PlanId, Status, Subscription, SubscriptionId, TenantId, UserId,
};
use utoipa::ToSchema;

use super::{
    Change, Locked, duplicate, lock, refused, shape, table,
    view::{READ_ONLY, SubscriptionView},
};
use crate::{
    app::App,
    callers::{Caller, SubscriptionsWrite},
    db::Transaction,
    http::{
        answer::Found,
        etag::IfMatch,
        json::{Fields, boolean, instant, text},
        path::PathParam,
        problem::{AnyEndpoint, Conditional, Problem, ProblemBody, WithBody},
    },
    subscription_plans, users,
};

/// What is to change. What is left out stays; null empties what can be empty. Everything that GET
/// returns may be sent back: a field that equals what is shown is no instruction.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UpdateSubscription, example = json!({"status": "cancelled"}))]
#[expect(dead_code, reason = "describes the body; `parse` reads it")]
pub struct UpdateSubscription {
    #[schema(schema_with = shape::subscription_plan_id)]
    subscription_plan_id: Option<()>,
    #[schema(schema_with = shape::external_subscription_id)]
    external_subscription_id: Option<String>,
    #[schema(schema_with = shape::billing_cycle)]
    billing_cycle: Option<()>,
    #[schema(schema_with = shape::status)]
    status: Option<()>,
    /// False suspends one that gives access, true lifts that.
    #[schema(value_type = bool, required = false, example = true)]
    is_active: Option<bool>,
    #[schema(schema_with = shape::starts_at)]
    starts_at: Option<()>,
    #[schema(schema_with = shape::renews_at)]
    renews_at: Option<()>,
    #[schema(schema_with = shape::ends_at)]
    ends_at: Option<()>,
}

/// Change a subscription
///
/// Changes what is sent and what follows from it: `cancelled` sets `ends_at` to the next renewal unless one is sent, a
/// cancelled one that is made active again has none, another plan brings its own price and cycle. `user_id` never
/// changes (`immutable_field`).
#[utoipa::path(
    put,
    path = "/subscriptions/{id}",
    tag = "Subscriptions",
    operation_id = "updateSubscription",
    params(
        ("id" = String, Path, description = "The subscription's id.", example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^sub_[0-9a-f]{32}$"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "The ETag of the subscription that the change is meant for."),
    ),
    request_body(content = UpdateSubscription, description = "What is to change."),
    responses(
        (status = 200, description = "The subscription as it now stands.", body = SubscriptionView,
            headers(("ETag" = String, description = "What the subscription looks like, for If-Match."))),
        (status = 404, description = "There is no such subscription (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "It does not go from its status to that one (`invalid_transition`), or another subscription has this external id (`duplicate_external_id`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        Conditional,
        WithBody,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsWrite>,
    PathParam(id): PathParam<SubscriptionId>,
    if_match: IfMatch,
    fields: Fields,
) -> Result<Found<SubscriptionView>, Problem> {
    let tenant = caller.tenant().id;
    let engine = app.engine_of(caller.tenant())?;
    let mut connection = engine.connection().await?;
    let tx = connection.begin();
    let Locked {
        subscription,
        view,
        now,
    } = lock(&app, &tx, tenant, id, &if_match).await?;
    let (mut changes, plan) = parse(fields, subscription.user)?;
    if let Some(plan) = plan.filter(|plan| *plan != subscription.terms.plan) {
        let offer = subscription_plans::table::hold_offer(&tx, tenant, plan).await?;
        let unknown = || Problem::unknown_reference("subscription_plan_id", plan);
        changes.offer = Some(offer.ok_or_else(unknown)?);
    }
    let Some(after) = subscription.amend(&changes, now).map_err(refused)? else {
        return Ok(Found(view));
    };
    let after = after.granted(&subscription, &caller.tenant().lifecycle);
    if subscription.status_at(now) == Status::Expired && after.status != Status::Expired {
        hold_parties(&tx, tenant, &after).await?;
    }
    let change = Change {
        tenant,
        by: caller.by(),
        ids: app.ids,
        now,
        tx: &tx,
    };
    let kind = EventKind::SubscriptionUpdated;
    let view = change.save(kind, &subscription, &after).await?;
    match tx.commit().await {
        Err(error) if error.constraint() == Some(table::EXTERNAL_ID_UNIQUE) => {
            Err(duplicate(engine, tenant, after.external_id.as_ref()).await?)
        }
        committed => Ok(committed.map(|()| Found(view))?),
    }
}

/// What was over and is opened again needs a user and a plan that are still there, and stay.
async fn hold_parties(
    tx: &Transaction<'_>,
    tenant: TenantId,
    opened: &Subscription,
) -> Result<(), Problem> {
    if !users::table::hold_if_free(tx, tenant, opened.user).await? {
        return Err(Problem::unknown_reference("user_id", opened.user));
    }
    let plan = opened.terms.plan;
    let offer = subscription_plans::table::hold_offer(tx, tenant, plan).await?;
    let unknown = || Problem::unknown_reference("subscription_plan_id", plan);
    offer.map(|_| ()).ok_or_else(unknown)
}

/// Reads the body, or says everything that is wrong with it. The plan is looked up afterwards.
fn parse(mut fields: Fields, user: UserId) -> Result<(Changes, Option<PlanId>), Problem> {
    fields.read_only(READ_ONLY);
    fields.immutable("user_id", text, &user);
    let plan = fields.sent("subscription_plan_id", text);
    let external_id = fields.sent_optional("external_subscription_id", text);
    let billing_cycle = fields.sent("billing_cycle", text);
    let status = fields.sent("status", text);
    let is_active = fields.sent("is_active", boolean);
    let starts_at = fields.sent("starts_at", instant);
    let renews_at = fields.sent_optional("renews_at", instant);
    let ends_at = fields.sent_optional("ends_at", instant);
    fields.finish(|| {
        let changes = Changes {
            offer: None,
            external_id: external_id?,
            billing_cycle: billing_cycle?,
            status: status?,
            is_active: is_active?,
            starts_at: starts_at?,
            renews_at: renews_at?,
            ends_at: ends_at?,
        };
        Some((changes, plan?))
    })
}
