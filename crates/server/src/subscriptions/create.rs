//! `POST /subscriptions`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{CreateContext, Subscription};

use super::{
    body::{CreateSubscription, parse_create},
    table,
    view::SubscriptionView,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsWrite},
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
    record::{ChangeContext, duplicate_external_id},
    subscription_plans, users,
};

/// Create a subscription
///
/// Required: `user_id` or `external_user_id`, and `subscription_plan_id` or `subscription_plan_slug`. References
/// to records that do not exist are reported together (`unknown_reference`). The plan supplies the billing cycle and the
/// price; the first renewal is one cycle after the start. A subscription with an `ends_at` in the
/// past is stored as `expired`. In managed billing, a subscription that is not free waits as `pending`
/// for its payment; with the status `active` its first period is due at once, so the response may say
/// `past_due`.
#[utoipa::path(
    post,
    path = "/subscriptions",
    tag = "Subscriptions",
    operation_id = "createSubscription",
    params(IdempotencyKeyParam),
    request_body(content = CreateSubscription, description = "The subscription to create."),
    responses(
        (status = 201, description = "The created subscription.", body = SubscriptionView),
        (status = 409, description = "Another subscription has this external id (`duplicate_external_id`), or a request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // Invalid bodies are rejected before a connection is taken from the pool.
    let (user, plan, for_user) = parse_create(fields)?;
    let database = app.database_for(tenant)?;
    let mut connection = database.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let created = async {
        // The locks keep the user and the plan from being deleted before the commit.
        let (known_user, offer) = tokio::try_join!(
            biased;
            users::lock_sql::lock_key_share(&tx, tenant.id, &user),
            subscription_plans::table::lock_offer_key_share(&tx, tenant.id, &plan),
        )?;
        let (known_user, offer) = match (user.resolve(known_user), plan.resolve(offer)) {
            (Ok(user), Ok(offer)) => (user, offer),
            (user, offer) => {
                let errors = user.err().into_iter().chain(offer.err());
                return Err(Problem::unknown_references(errors.collect()));
            }
        };
        let new = for_user(known_user);
        let plan = offer.plan;
        let offers_trial = offer.trial_days > 0 && new.status.is_none();
        if offers_trial {
            // Of requests at the same time, one gets the trial.
            users::lock_sql::lock_known(&tx, tenant.id, new.user).await?;
        }
        let had_trial = offers_trial && table::had_trial(&tx, tenant.id, new.user, plan).await?;
        let now = app.billing_clock.now();
        let create = CreateContext {
            offer: &offer,
            lifecycle: tenant.lifecycle,
            had_trial,
            id: app.ids.generate(now),
            now,
        };
        let created = Subscription::create(&new, &create).map_err(Problem::from_field_errors)?;
        let subscription = &created.after;
        let context = ChangeContext::new(&caller, app.ids, now, &tx);
        let Some(view) = context.insert_subscription(&created).await? else {
            let external_id = subscription.external_id.as_ref();
            return Err(
                duplicate_external_id::<Subscription>(database, tenant.id, external_id).await?,
            );
        };
        Ok((format!("/subscriptions/{}", subscription.id), view))
    };
    let created = created.await;
    tx.respond(created).await
}
