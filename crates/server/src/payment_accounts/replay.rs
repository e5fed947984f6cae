//! `POST /payment-notifications/{id}/replay`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{AsciiToken, PaymentAccount, PaymentNotificationId, TenantId};

use super::{
    account_secrets,
    notifications_sql::{self, PaymentNotification},
    objects_sql,
    provider_notification::ClassifiedNotification,
    read_notification::notification_not_found,
    table,
    view::PaymentNotificationView,
};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsWrite},
    clock::Clock,
    crypto::DerivedKeys,
    db::CellDatabase,
    http::{
        json::NoBody,
        openapi::PaymentNotificationIdPath,
        path_param::PathParam,
        problem::{CommonResponses, EmptyBodyResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::not_found,
};

/// Process a payment notification again
///
/// The stored notification is read again, with the account's current settings, and its object is compared with the
/// provider's.
#[utoipa::path(
    post,
    path = "/payment-notifications/{id}/replay",
    tag = "Payment accounts",
    operation_id = "replayPaymentNotification",
    params(PaymentNotificationIdPath),
    responses(
        (status = 200, description = "The notification.", body = PaymentNotificationView),
        (status = 404, description = "There is no such notification (`payment_notification_not_found`), or its account was \
            deleted (`payment_account_not_found`).", body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn replay(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsWrite>,
    PathParam(id): PathParam<PaymentNotificationId>,
    _: NoBody,
) -> Result<OkJson<PaymentNotificationView>, Problem> {
    let id = id.map_err(notification_not_found)?;
    let database = app.database_for(caller.tenant())?;
    let tenant = caller.tenant().id;
    let notification = replay_notification(database, &app.keys, app.clock, tenant, id).await?;
    Ok(OkJson(PaymentNotificationView::from(&notification)))
}

/// Reads a stored notification again and marks its object as dirty, in a transaction. The object is locked first, as by the
/// worker.
pub async fn replay_notification(
    database: &CellDatabase,
    keys: &DerivedKeys,
    clock: Clock,
    tenant: TenantId,
    id: PaymentNotificationId,
) -> Result<PaymentNotification, Problem> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let found = notifications_sql::find_with_body(&tx, tenant, id).await?;
    let (notification, sealed) = found.ok_or_else(|| notification_not_found(id))?;
    let key = notification.account;
    let account = table::find(database, tenant, key).await?;
    let account = account.ok_or_else(|| not_found::<PaymentAccount>(key))?;
    let body = account_secrets::open_body(keys, id, &sealed)?;
    let external_account_id = account.details.external_account_id.as_ref();
    let content = ClassifiedNotification::new(
        account.provider,
        account.mode,
        external_account_id.map(AsciiToken::as_str),
        &body,
    );
    let notification = PaymentNotification {
        attempts: 0,
        next_attempt_at: None,
        content: ClassifiedNotification {
            // The id by which repeated notifications are recognized does not change.
            event_id: notification.content.event_id,
            ..content
        },
        ..notification
    };
    if let Some(object) = notification.content.changed_object() {
        objects_sql::mark_dirty(&tx, (tenant, key), object, clock.now(), true).await?;
    }
    notifications_sql::reclassify(&tx, tenant, &notification).await?;
    tx.commit().await?;
    Ok(notification)
}
