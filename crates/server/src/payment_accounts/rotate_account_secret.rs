//! `POST /payment-accounts/{id}/rotate-secret`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::SignedDuration;
use perennial_domain::{EventKind, PaymentAccount, PaymentAccountId};
use secrecy::ExposeSecret;

use super::{
    account_secrets,
    body::{RotatePaymentSecret, parse_secret},
    table,
    view::{PaymentAccountEvent, PaymentSecretView},
};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsWrite, notify_payment_account_changed},
    crypto::DerivedKeys,
    db::CellDatabase,
    http::{
        json::BodyFields,
        openapi::PaymentAccountIdPath,
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    randomness::Randomness,
    record::{ChangeOrigin, not_found},
};

/// How long notifications with the previous secret are accepted.
const PREVIOUS_SECRET_TTL: SignedDuration = SignedDuration::from_hours(24);

/// Set or rotate the secret of a payment account
///
/// For 24 hours, notifications with the previous secret are accepted too. The one before is no longer accepted.
#[utoipa::path(
    post,
    path = "/payment-accounts/{id}/rotate-secret",
    tag = "Payment accounts",
    operation_id = "rotatePaymentSecret",
    params(PaymentAccountIdPath),
    request_body(content = RotatePaymentSecret, description = "The new secret."),
    responses(
        (status = 200, description = "The new secret, if it was generated.", body = PaymentSecretView),
        (status = 404, description = "There is no such account (`payment_account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn rotate(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsWrite>,
    PathParam(id): PathParam<PaymentAccountId>,
    fields: BodyFields,
) -> Result<NoStore<PaymentSecretView>, Problem> {
    let id = id.map_err(not_found::<PaymentAccount>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let view = rotate_secret(database, &origin, &app.keys, id, fields).await?;
    app.payment_accounts.invalidate(&caller.tenant().cell);
    Ok(NoStore(StatusCode::OK, view))
}

/// Gives an account a new secret in a transaction: that of the request, or a generated one.
pub async fn rotate_secret(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    keys: &DerivedKeys,
    id: PaymentAccountId,
    fields: BodyFields,
) -> Result<PaymentSecretView, Problem> {
    let tenant = origin.tenant.id;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, tenant, id).await?;
    let record = row.ok_or_else(|| not_found::<PaymentAccount>(id))?;
    let sent = parse_secret(fields, record.provider)?;
    let generated = match sent {
        Some(_) => None,
        None => Some(account_secrets::generate_secret(Randomness)),
    };
    let secret = sent.as_ref().or(generated.as_ref());
    let secret = secret.ok_or_else(|| Problem::internal(&"there is no secret"))?;
    let sealed = keys.seal(secret.expose_secret(), &account_secrets::secret_owner(id));
    let now = origin.clock.now_after(record.updated_at);
    let expires_at = now.saturating_add(PREVIOUS_SECRET_TTL).unwrap_or(now);
    let secret_id = origin.ids.generate_uuid(now);
    let has_previous =
        table::replace_secret(&tx, (tenant, id), (secret_id, &sealed), (now, expires_at)).await?;
    table::touch(&tx, tenant, id, now).await?;
    notify_payment_account_changed(&tx, id).await?;
    let data = PaymentAccountEvent::from(&record);
    origin
        .context(now, &tx)
        .record_event(EventKind::PaymentAccountSecretRotated, id, &data)
        .await?;
    tx.commit().await?;
    let expires_at = has_previous.then_some(expires_at);
    Ok(PaymentSecretView::new(generated.as_ref(), expires_at))
}
