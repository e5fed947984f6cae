//! `POST /subscriptions`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{NewSubscription, PlanId, Subscription};
use utoipa::ToSchema;

use super::{
    Change, duplicate, shape,
    view::{READ_ONLY, SubscriptionView},
};
use crate::{
    app::App,
    callers::{Caller, SubscriptionsWrite},
    http::{
        idempotency::{Begun, Once},
        json::{Fields, boolean, instant, text},
        problem::{AnyEndpoint, Problem, ProblemBody, WithBody},
    },
    subscription_plans, users,
};

/// What is said of a subscription when it is made.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateSubscription, example = json!({
    "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5"
}))]
#[expect(dead_code, reason = "describes the body; `parse` reads it")]
pub struct CreateSubscription {
    #[schema(schema_with = shape::user_id)]
    user_id: (),
    #[schema(schema_with = shape::subscription_plan_id)]
    subscription_plan_id: (),
    #[schema(schema_with = shape::external_subscription_id)]
    external_subscription_id: Option<String>,
    #[schema(schema_with = shape::billing_cycle_or_null)]
    billing_cycle: Option<()>,
    /// Default: active.
    #[schema(schema_with = shape::status_or_null)]
    status: Option<()>,
    /// False suspends it, if it gives access; true says that it does, and is refused if not.
    #[schema(example = true)]
    is_active: Option<bool>,
    /// Default: now.
    #[schema(schema_with = shape::starts_at_or_null)]
    starts_at: Option<()>,
    /// Default: one billing cycle after its begin; a lifetime one has none.
    #[schema(schema_with = shape::renews_at)]
    renews_at: Option<()>,
    #[schema(schema_with = shape::ends_at)]
    ends_at: Option<()>,
}

/// Create a subscription
///
/// Required: `user_id` and `subscription_plan_id`. What is left out follows from the plan: its billing cycle, its price,
/// the next renewal one cycle from now. With an `ends_at` that has passed it is stored as expired.
#[utoipa::path(
    post,
    path = "/subscriptions",
    tag = "Subscriptions",
    operation_id = "createSubscription",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11",
        description = "Names this request: sent again with the same key within 24 hours, it gets the same answer \
                       (with `Idempotency-Replayed: true`) and is not done twice.")),
    request_body(content = CreateSubscription, description = "What is said of the subscription."),
    responses(
        (status = 201, description = "The subscription as it now stands.", body = SubscriptionView,
            headers(("Location" = String, description = "The path of the subscription."),
                ("ETag" = String, description = "What the subscription looks like, for If-Match."),
                ("Idempotency-Replayed" = String, description = "`true` if this is the answer to an earlier request with the same key."))),
        (status = 409, description = "Another subscription has this external id (`duplicate_external_id`), or a request with the same key is still running (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsWrite>,
    once: Once,
    fields: Fields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // What is wrong with the body costs no connection.
    let (new, plan) = parse(fields)?;
    let engine = app.engine_of(tenant)?;
    let mut connection = engine.connection().await?;
    let tx = match once
        .begin(&mut connection, &caller.scope(), fingerprint)
        .await?
    {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(tx) => tx,
    };
    // Both stay until this is committed: somebody may be deleting either just now.
    let (user_stays, offer) = tokio::try_join!(
        biased;
        users::table::hold(&tx, tenant.id, new.user),
        subscription_plans::table::hold_offer(&tx, tenant.id, plan),
    )?;
    if !user_stays {
        return Err(Problem::unknown_reference("user_id", new.user));
    }
    let offer = offer.ok_or_else(|| Problem::unknown_reference("subscription_plan_id", plan))?;
    let now = app.billing.now();
    let started = Subscription::start(new, &offer, app.ids.next(now), now);
    let subscription = started.map_err(Problem::wrong)?;
    let change = Change {
        tenant: tenant.id,
        by: caller.by(),
        ids: app.ids,
        now,
        tx: &tx,
    };
    let Some(view) = change.add(&subscription).await? else {
        let external_id = subscription.external_id.as_ref();
        return Err(duplicate(engine, tenant.id, external_id).await?);
    };
    tx.created(format!("/subscriptions/{}", subscription.id), &view)
        .await
}

/// Reads the body, or says everything that is wrong with it.
fn parse(mut fields: Fields) -> Result<(NewSubscription, PlanId), Problem> {
    fields.read_only(READ_ONLY);
    let user = fields.required("user_id", text);
    let plan = fields.required("subscription_plan_id", text);
    let external_id = fields.optional("external_subscription_id", text);
    let billing_cycle = fields.optional("billing_cycle", text);
    let status = fields.optional("status", text);
    let is_active = fields.optional("is_active", boolean);
    let starts_at = fields.optional("starts_at", instant);
    let renews_at = fields.optional("renews_at", instant);
    let ends_at = fields.optional("ends_at", instant);
    fields.finish(|| {
        let new = NewSubscription {
            user: user?,
            external_id: external_id?,
            billing_cycle: billing_cycle?,
            status: status?,
            is_active: is_active?,
            starts_at: starts_at?,
            renews_at: renews_at?,
            ends_at: ends_at?,
        };
        Some((new, plan?))
    })
}
