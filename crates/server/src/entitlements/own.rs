//! `GET /entitlements`

use std::sync::Arc;

use axum::extract::State;

use super::{entitlements, view::EntitlementsView};
use crate::{
    app::App,
    callers::{Caller, OwnEntitlements},
    http::{
        answer::Found,
        params::NoQuery,
        problem::{AnyEndpoint, Problem},
    },
};

/// Read one's own entitlements
///
/// What the bearer's user may do now: of all subscriptions that give access the highest tier and quota, all features, and
/// the latest end.
#[utoipa::path(
    get,
    path = "/entitlements",
    tag = "Entitlements",
    operation_id = "readOwnEntitlements",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "What the user may do now.", body = EntitlementsView,
            headers(("ETag" = String, description = "What the entitlements look like."))),
        AnyEndpoint,
    ),
)]
pub async fn own(
    State(app): State<Arc<App>>,
    caller: Caller<OwnEntitlements>,
    _: NoQuery,
) -> Result<Found<EntitlementsView>, Problem> {
    let user = caller.signed_in()?.user.id;
    entitlements(&app, &caller, user).await
}
