//! `PUT /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Payment, PaymentId, Subscription, TenantId};

use super::{
    apply::{PaymentApplication, save},
    body::{UpdatePayment, parse_update},
    lock, update_problem,
    view::PaymentView,
};
use crate::{
    app::App,
    auth::{Caller, PaymentsWrite},
    db::Transaction,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::IfMatchParam,
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::{ChangeContext, Locked, commit_update},
    subscriptions,
};

/// Update a payment
///
/// Changes only the fields in the request. After a payment has settled, `amount`, `currency` and
/// `subscription_id` cannot change (`payment_settled`). A payment that becomes completed activates
/// a past due or unpaid subscription, unless a payment provider manages it.
#[utoipa::path(
    put,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "updatePayment",
    params(
        ("payment_id" = String, Path, description = "The payment's id.", example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^pay_[0-9a-f]{32}$"),
        IfMatchParam,
    ),
    request_body(content = UpdatePayment, description = "The fields to change."),
    responses(
        (status = 200, description = "The updated payment.", body = PaymentView),
        (status = 404, description = "No payment has this id (`payment_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The status transition is not allowed (`invalid_transition`), the payment has settled (`payment_settled`), or another payment has this external id (`duplicate_external_id`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsWrite>,
    PathParam(id): PathParam<PaymentId>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<PaymentView>, Problem> {
    let tenant = caller.tenant();
    let database = app.database_for(tenant)?;
    let changes = parse_update(fields)?;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let Locked {
        record: before,
        view,
        now,
    } = lock(&app, &tx, tenant.id, id, &if_match).await?;
    let Some(mut after) = before.update(&changes, now).map_err(update_problem)? else {
        return Ok(OkJson(view));
    };
    let subscription = lock_subscription(&tx, tenant.id, &before, &after).await?;
    // Only a change of the payment's status can affect the subscription.
    let subscription = subscription.filter(|_| before.status != after.status);
    let last_change = subscription.as_ref().map(|locked| locked.updated_at);
    let now = app.billing_clock.now_after(last_change.unwrap_or(now));
    let mut context = ChangeContext::new(&caller, app.ids, now, &tx);
    let application = match subscription {
        None => None,
        Some(subscription) => {
            let lifecycle = &tenant.lifecycle;
            let application =
                PaymentApplication::new(&mut after, subscription, &mut context, lifecycle);
            Some(application.await?)
        }
    };
    let view = save(&context, &before, &after).await?;
    if let Some(application) = application {
        application.save(&context).await?;
    }
    let external_id = after.external_id.as_ref();
    commit_update::<Payment>(tx, database, tenant.id, external_id).await?;
    Ok(OkJson(view))
}

/// Locks the payment's subscription if the payment's status or subscription changes.
async fn lock_subscription(
    tx: &Transaction<'_>,
    tenant: TenantId,
    before: &Payment,
    after: &Payment,
) -> Result<Option<Subscription>, Problem> {
    let moved = before.subscription != after.subscription;
    if !moved && before.status == after.status {
        return Ok(None);
    }
    let id = after.subscription;
    let subscription = subscriptions::table::lock(tx, tenant, id).await?;
    // The current subscription may have been deleted; a new one must exist.
    if subscription.is_none() && moved {
        return Err(Problem::unknown_reference("subscription_id", id));
    }
    Ok(subscription)
}
