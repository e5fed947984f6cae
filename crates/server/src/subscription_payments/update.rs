//! `PUT /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Payment, PaymentChanges, PaymentId, Subscription, TenantId};
use utoipa::ToSchema;

use super::{
    Locked,
    count::{Counted, save},
    duplicate, lock, refused, shape, table,
    view::{PaymentView, READ_ONLY},
};
use crate::{
    app::App,
    callers::{Caller, PaymentsWrite},
    db::Transaction,
    http::{
        answer::Found,
        etag::IfMatch,
        json::{Fields, decimal, text},
        path::PathParam,
        problem::{AnyEndpoint, Conditional, Problem, ProblemBody, WithBody},
    },
    subscriptions::{self, Change},
};

/// What is to change. What is left out stays; null empties what can be empty. Everything that GET
/// returns may be sent back: a field that equals what the payment has is no instruction.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UpdatePayment, example = json!({"status": "completed"}))]
#[expect(dead_code, reason = "describes the body; `parse` reads it")]
pub struct UpdatePayment {
    #[schema(schema_with = shape::subscription_id)]
    subscription_id: Option<()>,
    #[schema(schema_with = shape::amount)]
    amount: Option<()>,
    /// ISO 4217, in any case. The number stays, and must be one that the currency has the decimals for.
    #[schema(value_type = String, required = false, pattern = "^[A-Za-z]{3}$", example = "USD")]
    currency: Option<String>,
    #[schema(schema_with = shape::external_payment_id)]
    external_payment_id: Option<String>,
    #[schema(schema_with = shape::status)]
    status: Option<()>,
    #[schema(schema_with = shape::refunded_amount)]
    refunded_amount: Option<()>,
}

/// Change a payment
///
/// Changes what is sent and nothing else. Once it is completed, `amount`, `currency` and `subscription_id` are frozen
/// (`payment_settled`). One that becomes completed makes a past due or unpaid subscription active at once, unless a payment
/// provider runs it.
#[utoipa::path(
    put,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "updatePayment",
    params(
        ("payment_id" = String, Path, description = "The payment's id.", example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^pay_[0-9a-f]{32}$"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "The ETag of the payment that the change is meant for."),
    ),
    request_body(content = UpdatePayment, description = "What is to change."),
    responses(
        (status = 200, description = "The payment as it now stands.", body = PaymentView,
            headers(("ETag" = String, description = "What the payment looks like, for If-Match."))),
        (status = 404, description = "There is no such payment (`payment_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "It does not go from its status to that one (`invalid_transition`), money has come (`payment_settled`), or another payment has this external id (`duplicate_external_id`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        Conditional,
        WithBody,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsWrite>,
    PathParam(id): PathParam<PaymentId>,
    if_match: IfMatch,
    fields: Fields,
) -> Result<Found<PaymentView>, Problem> {
    let tenant = caller.tenant().id;
    let engine = app.engine_of(caller.tenant())?;
    let sent = parse(fields)?;
    let mut connection = engine.connection().await?;
    let tx = connection.begin();
    let Locked {
        payment: before,
        view: was,
        now,
    } = lock(&app, &tx, tenant, id, &if_match).await?;
    let Some(mut after) = before.amend(&sent, now).map_err(refused)? else {
        return Ok(Found(was));
    };
    let concerned = concerned(&tx, tenant, &before, &after).await?;
    let concerned = concerned.filter(|_| before.status != after.status);
    let last = concerned.as_ref().map(|one| one.updated_at);
    let mut change = Change {
        tenant,
        by: caller.by(),
        ids: app.ids,
        now: app.billing.after(last.unwrap_or(now)),
        tx: &tx,
    };
    let counted = match concerned {
        None => None,
        Some(subscription) => {
            let lifecycle = &caller.tenant().lifecycle;
            Some(Counted::of(&mut after, subscription, &mut change, lifecycle).await?)
        }
    };
    let is = save(&change, &before, &after).await?;
    if let Some(counted) = counted {
        counted.save(&change).await?;
    }
    match tx.commit().await {
        Err(error) if error.constraint() == Some(table::EXTERNAL_ID_UNIQUE) => {
            Err(duplicate(engine, tenant, after.external_id.as_ref()).await?)
        }
        committed => Ok(committed.map(|()| Found(is))?),
    }
}

/// The subscription that the payment is for after a change, if the change matters to it; nobody else changes it until the
/// end of the transaction.
async fn concerned(
    tx: &Transaction<'_>,
    tenant: TenantId,
    before: &Payment,
    after: &Payment,
) -> Result<Option<Subscription>, Problem> {
    let elsewhere = before.subscription != after.subscription;
    if !elsewhere && before.status == after.status {
        return Ok(None);
    }
    let found = subscriptions::table::lock(tx, tenant, after.subscription).await?;
    // The one that it was for may have been deleted since; another must be there.
    if found.is_none() && elsewhere {
        let id = after.subscription;
        return Err(Problem::unknown_reference("subscription_id", id));
    }
    Ok(found)
}

/// Reads the body, or says everything that is wrong with it.
fn parse(mut fields: Fields) -> Result<PaymentChanges, Problem> {
    fields.read_only(READ_ONLY);
    let subscription = fields.sent("subscription_id", text);
    let amount = fields.sent("amount", decimal);
    let currency = fields.sent("currency", text);
    let external_id = fields.sent_optional("external_payment_id", text);
    let status = fields.sent("status", text);
    let refunded = fields.sent_optional("refunded_amount", decimal);
    fields.finish(|| {
        Some(PaymentChanges {
            subscription: subscription?,
            amount: amount?,
            currency: currency?,
            external_id: external_id?,
            status: status?,
            refunded: refunded?,
        })
    })
}
