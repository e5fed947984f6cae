//! `POST /payment-accounts`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{EventKind, PaymentAccount};
use secrecy::ExposeSecret;

use super::{
    account_secrets,
    body::{CreatePaymentAccount, NewPaymentAccount, parse_create},
    table,
    view::{PaymentAccountEvent, PaymentAccountView},
};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsWrite, notify_payment_account_changed},
    crypto::DerivedKeys,
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
    record::ChangeContext,
};

/// Create a payment account
///
/// Then set the secret of its notifications with `rotate-secret`.
#[utoipa::path(
    post,
    path = "/payment-accounts",
    tag = "Payment accounts",
    operation_id = "createPaymentAccount",
    params(IdempotencyKeyParam),
    request_body(content = CreatePaymentAccount, description = "The account to create."),
    responses(
        (status = 201, description = "The created account.", body = PaymentAccountView),
        (status = 409, description = "A request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let fingerprint = fields.fingerprint();
    let account = parse_create(fields, app.mode)?;
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let created = insert_account(&context, &app.keys, account).await;
    let created = created.map(|account| {
        let location = format!("/payment-accounts/{}", account.id);
        (location, PaymentAccountView::from(&account))
    });
    let response = tx.respond(created).await?;
    app.payment_accounts.invalidate(&caller.tenant().cell);
    Ok(response)
}

/// Creates an account and records the event. The caller commits.
pub async fn insert_account(
    context: &ChangeContext<'_>,
    keys: &DerivedKeys,
    new: NewPaymentAccount,
) -> Result<PaymentAccount, Problem> {
    let id = context.ids.generate(context.now);
    let account = PaymentAccount {
        id,
        provider: new.provider,
        mode: new.mode,
        details: new.details,
        has_api_key: new.api_key.is_some(),
        has_secret: false,
        last_heard_at: None,
        last_reconciled_at: None,
        pending_commands: 0,
        created_at: context.now,
        updated_at: context.now,
    };
    let owner = account_secrets::api_key_owner(id);
    let api_key = new
        .api_key
        .map(|key| keys.seal(key.expose_secret(), &owner));
    table::insert(context.tx, context.tenant, &account, api_key.as_ref()).await?;
    notify_payment_account_changed(context.tx, id).await?;
    let data = PaymentAccountEvent::from(&account);
    context
        .record_event(EventKind::PaymentAccountCreated, id, &data)
        .await?;
    Ok(account)
}
