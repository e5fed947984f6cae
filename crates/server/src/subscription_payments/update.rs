//! `PUT /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Payment, PaymentId, Subscription};

use super::{
    apply::without_periods,
    body::{UpdatePayment, parse_update},
    check_refund, lock, update_and_apply, update_problem,
    view::PaymentView,
};
use crate::{
    app::App,
    auth::{Caller, PaymentsWrite, Tenant},
    db::{CellDatabase, Transaction},
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::{IfMatchParam, PaymentIdPath},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::{ChangeOrigin, Locked, commit_update, not_found},
    subscriptions,
};

/// Update a payment
///
/// Changes only the fields in the request. After a payment has settled, `amount`, `currency` and
/// `subscription_id` cannot change (`payment_settled`). A `paid_at` in the future is rejected with 422
/// (`inconsistent_dates`).
///
/// In managed billing, a payment that becomes completed adds its amount to the subscription's credit,
/// which then pays what is open or pending. A refund takes credit; what the credit lacks is waived, and
/// a period that has started stays. A dispute takes at once what is not refunded, even if the credit
/// becomes negative; the subscription is then late. A dispute that is won returns the same amount, and
/// one that is lost takes nothing more.
///
/// Outside managed billing, a payment that becomes completed activates a past due or unpaid
/// subscription, unless a payment provider manages it. Refunds and disputes do not change the
/// subscription.
#[utoipa::path(
    put,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "updatePayment",
    params(
        PaymentIdPath,
        IfMatchParam,
    ),
    request_body(content = UpdatePayment, description = "The fields to change."),
    responses(
        (status = 200, description = "The payment.", body = PaymentView),
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
    let database = app.database_for(caller.tenant())?;
    let id = id.map_err(not_found::<Payment>)?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.billing_clock);
    let view = update_payment(database, &origin, id, &if_match, fields).await?;
    Ok(OkJson(view))
}

/// Updates a payment in a transaction, applies the change to its subscription, and returns the payment's
/// new representation.
pub async fn update_payment(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    id: PaymentId,
    if_match: &IfMatch,
    fields: BodyFields,
) -> Result<PaymentView, Problem> {
    let (tenant, clock) = (origin.tenant, origin.clock);
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let Locked {
        record: before,
        view,
        now,
    } = lock(clock, &tx, tenant.id, Ok(id), if_match).await?;
    let changes = parse_update(fields, &before)?;
    let Some(after) = before.update(&changes, now).map_err(update_problem)? else {
        return Ok(view);
    };
    let subscription = lock_subscription(&tx, tenant, &before, &after).await?;
    if let Some(subscription) = &subscription {
        check_refund(&after, subscription)?;
    }
    let last_change = subscription
        .as_ref()
        .map_or(now, |subscription| subscription.updated_at.max(now));
    let mut context = origin.context(clock.now_after(last_change), &tx);
    let after = update_and_apply(&mut context, &before, after, subscription.as_ref()).await?;
    let external_id = after.external_id.as_ref();
    commit_update::<Payment>(tx, database, tenant.id, external_id).await?;
    Ok(PaymentView::from(&after))
}

/// Locks the payment's subscription if the change of the payment can affect it.
async fn lock_subscription(
    tx: &Transaction<'_>,
    tenant: &Tenant,
    before: &Payment,
    after: &Payment,
) -> Result<Option<Subscription>, Problem> {
    let scope = (tenant.id, tenant.lifecycle);
    let id = after.subscription;
    // The current subscription may have been deleted; another one must exist.
    if before.subscription != id {
        let subscription = subscriptions::table::lock(tx, scope, id).await?;
        let unknown = || Problem::unknown_reference("subscription_id", id);
        return subscription.ok_or_else(unknown).map(Some);
    }
    if before.status == after.status && before.refunded == after.refunded {
        return Ok(None);
    }
    let locked = subscriptions::table::lock_with_deleted(tx, scope, id).await?;
    Ok(locked.map(|(subscription, is_deleted)| {
        if is_deleted {
            without_periods(subscription, after.updated_at)
        } else {
            subscription
        }
    }))
}
