//! `POST /payment-notifications/{id}`: notifications of payment providers.
//!
//! The signature is verified before anything is read from the database, with the cached secrets of the account. A request
//! without a valid signature counts against its peer, and one with a valid signature against its account only: all
//! notifications of a provider come from a few addresses.

use std::sync::Arc;

use axum::{
    Extension,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
};
use jiff::Timestamp;
use perennial_domain::{
    NotificationState, PaymentAccount, PaymentAccountId, PaymentNotificationId, PaymentProvider,
    ValidationError,
};
use secrecy::SecretString;

use super::{
    account_secrets, lemon_squeezy,
    notification_signature::SignatureError,
    notifications_sql::{self, PaymentNotification},
    objects_sql,
    provider_notification::ClassifiedNotification,
    stripe, table,
    view::ReceivedNotificationView,
};
use crate::{
    app::App,
    auth::ReceivingAccount,
    http::{
        json::read_raw_body,
        middleware::RequestContext,
        openapi::PaymentAccountIdPath,
        path_param::PathParam,
        problem::{Code, Problem, ProblemBody, PublicResponses},
        response::NoStore,
    },
    record::not_found,
};

/// The template of the path, which `GET` of a notification has too.
pub const RECEIVE_PATH: &str = "/payment-notifications/{id}";

const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The outcome of a notification that was received before.
const DUPLICATE: &str = "duplicate";

/// Registers the counters of notifications, so that each starts at 0.
pub(super) fn register_counters() {
    let states = [
        NotificationState::New,
        NotificationState::Ignored,
        NotificationState::Failed,
        NotificationState::Refused,
    ];
    for outcome in states
        .map(NotificationState::as_str)
        .into_iter()
        .chain([DUPLICATE])
    {
        count(outcome, 0);
    }
}

fn count(outcome: &'static str, number: u64) {
    metrics::counter!("perennial_payment_notifications_total", "outcome" => outcome)
        .increment(number);
}

/// Receive a payment notification
///
/// For payment providers: the webhook URL of the payment account `{id}`. The header `Stripe-Signature` or `X-Signature`
/// must have a signature over the body with a secret of the account. A notification that changes nothing is accepted too.
#[utoipa::path(
    post,
    path = "/payment-notifications/{id}",
    tag = "Payment accounts",
    operation_id = "receivePaymentNotification",
    security(()),
    params(PaymentAccountIdPath),
    request_body(content = Value, content_type = "application/json", description = "The provider's event, up to 1 MiB.",
        example = json!({"id": "evt_1042", "object": "event", "type": "invoice.paid"})),
    responses(
        (status = 200, description = "The notification is stored.", body = ReceivedNotificationView),
        (status = 401, description = "The signature is missing, invalid or too old (`invalid_signature`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 404, description = "There is no such account (`payment_account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time (`request_timeout`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 1 MiB (`payload_too_large`).", body = ProblemBody,
            content_type = "application/problem+json"),
        PublicResponses,
    ),
)]
pub async fn receive(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    PathParam(id): PathParam<PaymentAccountId>,
    request: Request,
) -> Result<NoStore<ReceivedNotificationView>, Problem> {
    let (account, body) = match authenticate(&app, id, request).await {
        Ok(authentic) => authentic,
        Err(problem) if problem.code().status().is_client_error() => {
            app.client_middleware.check_peer(&context)?;
            return Err(problem);
        }
        Err(problem) => return Err(problem),
    };
    app.payment_accounts
        .check_rate(account.id, context.received_at)?;
    let id = store(&app, &account, &body).await?;
    Ok(NoStore(StatusCode::OK, ReceivedNotificationView { id }))
}

/// Returns the account and the body of a request with a valid signature.
async fn authenticate(
    app: &App,
    id: Result<PaymentAccountId, ValidationError>,
    request: Request,
) -> Result<(Arc<ReceivingAccount>, Bytes), Problem> {
    let id = id.map_err(not_found::<PaymentAccount>)?;
    let account = app.payment_accounts.find(id).await?;
    let account = account.ok_or_else(|| not_found::<PaymentAccount>(id))?;
    let headers = request.headers().clone();
    let body = read_raw_body(request, MAX_BODY_BYTES).await?;
    let now = app.clock.now();
    let secrets = account_secrets::open_secrets(&app.keys, id, &account.secrets, now)?;
    verify(account.provider, &secrets, &headers, &body, now)
        .map_err(|error| Problem::new(Code::InvalidSignature, error.to_string()))?;
    Ok((account, body))
}

fn verify(
    provider: PaymentProvider,
    secrets: &[SecretString],
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    match provider {
        PaymentProvider::Stripe => stripe::verify(secrets, headers, body, now),
        PaymentProvider::LemonSqueezy => lemon_squeezy::verify(secrets, headers, body, now),
    }
}

/// Stores a notification and marks its object as dirty, in one transaction. Returns the id of the notification, or of the
/// one that was received before.
async fn store(
    app: &App,
    account: &ReceivingAccount,
    body: &[u8],
) -> Result<PaymentNotificationId, Problem> {
    let (tenant, now) = (account.tenant, app.clock.now());
    let external_account_id = account.external_account_id.as_deref();
    let content =
        ClassifiedNotification::new(account.provider, account.mode, external_account_id, body);
    let notification = PaymentNotification {
        id: app.ids.generate(now),
        account: account.id,
        created_at: now,
        attempts: 0,
        next_attempt_at: None,
        content,
    };
    let sealed = account_secrets::seal_body(&app.keys, notification.id, body);
    let mut connection = app.db.cell(&account.cell)?.connection().await?;
    let tx = connection.begin();
    if !notifications_sql::insert_event_id(&tx, tenant, &notification).await? {
        let event_id = &notification.content.event_id;
        let key = (tenant, account.id);
        let first = notifications_sql::find_by_event_id(&tx, key, event_id).await?;
        tx.rollback().await;
        count(DUPLICATE, 1);
        return Ok(first.unwrap_or(notification.id));
    }
    notifications_sql::insert(&tx, tenant, &notification, &sealed).await?;
    if let Some(object) = notification.content.changed_object() {
        objects_sql::mark_dirty(&tx, (tenant, account.id), object, now, false).await?;
    }
    table::set_last_heard(&tx, tenant, account.id, now).await?;
    tx.commit().await?;
    count(notification.content.state.as_str(), 1);
    Ok(notification.id)
}
