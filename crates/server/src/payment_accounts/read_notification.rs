//! `GET /payment-notifications/{id}`

use std::{fmt::Display, sync::Arc};

use axum::extract::State;
use perennial_domain::PaymentNotificationId;

use super::{notifications_sql, view::PaymentNotificationView};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsRead},
    http::{
        openapi::PaymentNotificationIdPath,
        path_param::PathParam,
        problem::{Code, CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
};

/// Get a payment notification
///
/// The body that the provider sent is not returned, because it may contain personal data.
#[utoipa::path(
    get,
    path = "/payment-notifications/{id}",
    tag = "Payment accounts",
    operation_id = "readPaymentNotification",
    params(PaymentNotificationIdPath),
    responses(
        (status = 200, description = "The notification.", body = PaymentNotificationView),
        (status = 404, description = "There is no such notification (`payment_notification_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read_notification(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsRead>,
    PathParam(id): PathParam<PaymentNotificationId>,
) -> Result<OkJson<PaymentNotificationView>, Problem> {
    let id = id.map_err(notification_not_found)?;
    let database = app.database_for(caller.tenant())?;
    let notification = notifications_sql::find(database, caller.tenant().id, id).await?;
    let notification = notification.ok_or_else(|| notification_not_found(id))?;
    Ok(OkJson(PaymentNotificationView::from(&notification)))
}

/// Returns the 404 for an id that is malformed, unknown or of another tenant's notification.
pub(super) fn notification_not_found(id: impl Display) -> Problem {
    let detail = format!("no payment notification has this id: {id}");
    Problem::new(Code::PaymentNotificationNotFound, detail)
}
