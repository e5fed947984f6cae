//! `GET /entitlements`

use std::sync::Arc;

use axum::extract::State;

use super::{entitlements, view::EntitlementsView};
use crate::{
    app::App,
    auth::{Caller, OwnEntitlements},
    http::{
        problem::{CommonResponses, Problem},
        query::NoQuery,
        response::OkJson,
    },
};

/// Read the signed-in user's entitlements
///
/// Combines all subscriptions with access: the highest tier and quota, all features, and the latest end.
#[utoipa::path(
    get,
    path = "/entitlements",
    tag = "Entitlements",
    operation_id = "readOwnEntitlements",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "The current entitlements of the user.", body = EntitlementsView,
            headers(("ETag" = String, description = "The entity tag of the record."))),
        CommonResponses,
    ),
)]
pub async fn read_own(
    State(app): State<Arc<App>>,
    caller: Caller<OwnEntitlements>,
    _: NoQuery,
) -> Result<OkJson<EntitlementsView>, Problem> {
    let user = caller.require_user_session()?.user.id;
    entitlements(&app, &caller, user).await
}
