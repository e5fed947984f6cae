//! `PUT /subscriptions/{id}`

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use perennial_domain::{
    AppliedChange, EventKind, Offer, Subscription, SubscriptionChanges, SubscriptionId,
    SubscriptionStatus, TenantId, UserId,
};

use super::{
    body::{UpdateSubscription, parse_update},
    is_visible, scope, table, update_by_user, update_problem,
    view::SubscriptionView,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsUpdate},
    db::{CellDatabase, Transaction},
    http::{
        etag::IfMatch,
        json::{BodyFields, BodyFieldsWithQuery},
        openapi::{IfMatchParam, LocalParam, SubscriptionIdPath},
        path_param::PathParamWithQuery,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        query::QueryParams,
        response::OkJson,
    },
    payment_commands::{self, PaymentProviderCommand},
    record::{ChangeOrigin, Locked, commit_update, not_found},
    subscription_plans::{self, PlanRef},
    users,
};

/// Update a subscription
///
/// Changes the fields in the request and the fields that depend on them: `cancelled` sets `ends_at`
/// to the next renewal unless the request sets it, reactivating a cancelled subscription clears
/// `ends_at`, and a new plan changes the price and the billing cycle. `id`, `user_id`, `currency` and
/// `created_at` cannot change (`immutable_field`).
///
/// In managed billing, everything that is due is applied first. A new plan or quantity charges or
/// returns the difference for the rest of the period; a change that the credit does not pay for is
/// rejected with `payment_required` and the amount due. `past_due` and `unpaid` cannot be requested:
/// they follow from missing payments. `renews_at` is computed, and ignored in a request: `free_until` gives free time.
///
/// If a payment account with an API key runs the subscription, its payment provider gets a cancellation and its undoing as a
/// command, which is sent until the provider acknowledges it. Stripe cancels at the `ends_at` of the request, or at the end of
/// the paid period without one; Lemon Squeezy always at the end of the paid period. A change that makes the subscription
/// `expired`, as for one that is past due, ends it at the provider. The subscription then follows what the provider reports.
/// `?local=true` changes only the record.
///
/// With a user's access token (self-service, off by default), only `status` can change: to `cancelled`, and to
/// `active` to undo a cancellation before `ends_at`. The undo restores the status and the `ends_at` from before it. Only
/// publishable clients can send an access token here. The tenant must allow it (`self_service_disabled`), and the
/// subscription must be the user's own (`subscription_not_found`).
#[utoipa::path(
    put,
    path = "/subscriptions/{id}",
    tag = "Subscriptions",
    operation_id = "updateSubscription",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        SubscriptionIdPath,
        LocalParam,
        IfMatchParam,
    ),
    request_body(content = UpdateSubscription, description = "The fields to change."),
    responses(
        (status = 200, description = "The subscription.", body = SubscriptionView),
        (status = 402, description = "The credit does not pay for the change (`payment_required`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 404, description = "No subscription has this id (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The status transition is not allowed (`invalid_transition`), another subscription has this external id (`duplicate_external_id`), or free time is not possible (`free_time_not_possible`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
        (status = 403, description = "Not allowed for users: the tenant does not allow self-service (`self_service_disabled`), or the request changes more than users can (`not_for_users`). Or not allowed for this client (`insufficient_scope`, `secret_client_in_browser`, `origin_not_allowed`, `address_not_allowed`).", body = ProblemBody,
            content_type = "application/problem+json"),
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsUpdate>,
    PathParamWithQuery(id): PathParamWithQuery<SubscriptionId>,
    mut params: QueryParams,
    if_match: IfMatch,
    BodyFieldsWithQuery(fields): BodyFieldsWithQuery,
) -> Result<OkJson<SubscriptionView>, Problem> {
    let tenant = caller.tenant();
    let user = caller.user();
    let is_local = params.value("local").unwrap_or(false);
    if user.is_some() && is_local {
        params.push_error("local", "cannot be true in a user's request");
    }
    params.finish()?;
    if user.is_some() {
        update_by_user::check_enabled(tenant)?;
    }
    let request = UpdateRequest {
        id: id.map_err(not_found::<Subscription>)?,
        user,
        if_match,
        fields,
        is_local,
    };
    let origin = ChangeOrigin::new(&caller, app.ids, app.billing_clock);
    let view = update_subscription(app.database_for(tenant)?, &origin, request).await?;
    Ok(OkJson(view))
}

/// A request to update a subscription.
pub struct UpdateRequest {
    pub id: SubscriptionId,
    /// The user, if a user makes the change. It must be the user's own subscription.
    pub user: Option<UserId>,
    pub if_match: IfMatch,
    /// The fields to change.
    pub fields: BodyFields,
    /// Whether only the record changes, without a command to the payment provider.
    pub is_local: bool,
}

/// Updates a subscription in a transaction and returns its new representation.
pub async fn update_subscription(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    request: UpdateRequest,
) -> Result<SubscriptionView, Problem> {
    let tenant = origin.tenant;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, scope(tenant), request.id).await?;
    let row = row.filter(|row| is_visible(request.user, row));
    let Locked {
        record: before,
        view,
        now,
    } = Locked::new(row, request.id, origin.clock, &request.if_match)?;
    let fields = request.fields;
    let (applied, changes) = if request.user.is_some() {
        let applied = update_by_user::apply(&tx, tenant.id, &before, fields, now).await?;
        (applied, SubscriptionChanges::default())
    } else {
        apply(&tx, tenant.id, &before, fields, now).await?
    };
    let Some(applied) = applied else {
        return Ok(view);
    };
    let after = &applied.after;
    update_by_user::save_cancellation(&tx, tenant.id, applied.before(&before), after, &changes)
        .await?;
    if before.status_at(now) == SubscriptionStatus::Expired
        && after.status != SubscriptionStatus::Expired
    {
        lock_user_and_plan(&tx, tenant.id, after).await?;
    }
    let statuses = (applied.before(&before).status_at(now), after.status);
    let ends_at = { changes.ends_at.flatten() }.filter(|end| before.ends_at != Some(*end));
    if let Some(command) =
        PaymentProviderCommand::for_change(statuses.0, statuses.1, ends_at.is_some())
            .filter(|_| !request.is_local)
    {
        payment_commands::enqueue(&tx, tenant.id, after.id, command, ends_at).await?;
    }
    let mut context = origin.context(now, &tx);
    let view = context
        .save_applied(EventKind::SubscriptionUpdated, &before, &applied)
        .await?;
    let external_id = after.external_id.as_ref();
    commit_update::<Subscription>(tx, database, tenant.id, external_id).await?;
    Ok(view)
}

/// Applies the body of a server's request to a locked subscription. Returns the changes too.
async fn apply(
    tx: &Transaction<'_>,
    tenant: TenantId,
    before: &Subscription,
    fields: BodyFields,
    now: Timestamp,
) -> Result<(Option<AppliedChange>, SubscriptionChanges), Problem> {
    let changes = parse_changes(tx, tenant, before, fields).await?;
    let applied = before.update(&changes, now);
    let applied = applied.map_err(|error| update_problem(before, error))?;
    Ok((applied, changes))
}

/// Parses the body of an update and looks up the plan's offer if the change needs it.
pub(super) async fn parse_changes(
    tx: &Transaction<'_>,
    tenant: TenantId,
    before: &Subscription,
    fields: BodyFields,
) -> Result<SubscriptionChanges, Problem> {
    let (mut changes, plan) = parse_update(fields, before)?;
    let needs_offer = changes.price == Some(None)
        || changes.status == Some(SubscriptionStatus::OnTrial)
        || plan.is_some();
    if needs_offer {
        let plan = plan.unwrap_or(PlanRef::Id(before.plan.id));
        let offer = lock_offer(tx, tenant, &plan).await?;
        if offer.trial_days > 0 && offer.plan != before.plan.id {
            changes.had_trial = table::had_trial(tx, tenant, before.user, offer.plan).await?;
        }
        changes.offer = Some(offer);
    }
    Ok(changes)
}

/// Locks the user and the plan of a reopened subscription, which prevents their deletion until the commit.
async fn lock_user_and_plan(
    tx: &Transaction<'_>,
    tenant: TenantId,
    reopened: &Subscription,
) -> Result<(), Problem> {
    if !users::lock_sql::try_lock_key_share(tx, tenant, reopened.user).await? {
        return Err(Problem::unknown_reference("user_id", reopened.user));
    }
    let plan = PlanRef::Id(reopened.plan.id);
    lock_offer(tx, tenant, &plan).await.map(|_| ())
}

/// Returns a plan's offer and locks the plan, which prevents its deletion until the commit.
async fn lock_offer(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: &PlanRef,
) -> Result<Offer, Problem> {
    let offer = subscription_plans::table::lock_offer_key_share(tx, tenant, plan).await?;
    plan.resolve(offer)
        .map_err(|error| Problem::unknown_references(vec![error]))
}
