//! `GET /payment-notifications`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{ExternalId, Id};
use utoipa::{
    IntoParams,
    openapi::path::{Parameter, ParameterIn},
};

use super::{
    notifications_sql::{self, NotificationFilter, PaymentNotification},
    view::PaymentNotificationView,
};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsRead},
    db::AgeKey,
    http::{
        filter_params::{external_ids, filter, time_range},
        openapi::{CreatedAtSortParam, CursorParams},
        pagination::{BY_AGE, Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::{QueryParams, time_bounds},
        schema::named,
    },
};

const CREATED_AT: [&str; 4] = time_bounds!("created_at");

/// A comma separates several values of one filter, of which any may match.
struct Filters;

impl IntoParams for Filters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut params = vec![
            filter(
                "payment_account_id",
                named::PAYMENT_ACCOUNT_ID_LIST.reference("Only notifications to these accounts."),
            ),
            filter(
                "state",
                named::PAYMENT_NOTIFICATION_STATE_LIST
                    .reference("Only notifications in these states."),
            ),
            external_ids(
                "type",
                "Only notifications of these types of the provider.",
                "invoice.paid",
            ),
            external_ids(
                "object_id",
                "Only notifications about the provider's objects with these ids.",
                "sub_1042",
            ),
        ];
        params.extend(time_range(CREATED_AT));
        params
    }
}

/// List payment notifications
///
/// Notifications are kept for at least 90 days.
#[utoipa::path(
    get,
    path = "/payment-notifications",
    tag = "Payment accounts",
    operation_id = "listPaymentNotifications",
    params(
        CursorParams,
        CreatedAtSortParam,
        Filters,
    ),
    responses(
        (status = 200, description = "A page of notifications.", body = Page<PaymentNotificationView>),
        CommonResponses,
    ),
)]
pub async fn list_notifications(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsRead>,
    mut params: QueryParams,
) -> Result<Page<PaymentNotificationView>, Problem> {
    let event_types: Option<Vec<ExternalId>> = params.any_of("type");
    let object_ids: Option<Vec<ExternalId>> = params.any_of("object_id");
    let texts = |values: Vec<ExternalId>| values.iter().map(ToString::to_string).collect();
    let filter = NotificationFilter {
        accounts: params.any_of("payment_account_id"),
        states: params.any_of("state"),
        event_types: event_types.map(texts),
        object_ids: object_ids.map(texts),
        created_at: params.time_range(CREATED_AT),
    };
    let request = PageRequest::parse(&mut params, &BY_AGE);
    params.finish()?;
    let tenant = caller.tenant().id;
    let identity = "GET /payment-notifications";
    let page = request.verify(&app.cursor_key, &[&identity, &tenant, &filter])?;
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    let (start, limit) = ((page.order, page.after), page.row_limit());
    let notifications =
        notifications_sql::list(&mut connection, tenant, &filter, start, limit).await?;
    Ok(
        page.finish(notifications, |notification: &PaymentNotification| AgeKey {
            created_at: notification.created_at,
            id: notification.id.uuid(),
        }),
    )
}
