//! `GET /entitlements`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::ExternalId;
use utoipa::{
    IntoParams,
    openapi::path::{Parameter, ParameterIn},
};

use super::{entitlements, view::EntitlementsView};
use crate::{
    app::App,
    auth::{Caller, OwnEntitlements},
    http::{
        filter_params::filter,
        problem::{Code, CommonResponses, Problem, ProblemBody},
        query::QueryParams,
        response::OkJson,
        schema::named,
    },
    users,
};

/// The user, if the request does not have an access token.
struct UserQuery;

impl IntoParams for UserQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description =
            "The user's id in your system. With an access token, it must be that user's.";
        vec![filter(
            "external_user_id",
            named::EXTERNAL_ID.reference(description),
        )]
    }
}

/// Get the entitlements of the signed-in user, or of a user by external id
///
/// With a user's access token, of that user. Without one, a secret client must send `external_user_id`.
/// Combines all subscriptions with access: the highest tier and quota, all features, and the latest end.
#[utoipa::path(
    get,
    path = "/entitlements",
    tag = "Entitlements",
    operation_id = "readOwnEntitlements",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(UserQuery),
    responses(
        (status = 200, description = "The current entitlements of the user.", body = EntitlementsView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read_own(
    State(app): State<Arc<App>>,
    caller: Caller<OwnEntitlements>,
    mut params: QueryParams,
) -> Result<OkJson<EntitlementsView>, Problem> {
    let external_id: Option<ExternalId> = match caller.user_session() {
        Some(_) => params.value("external_user_id"),
        None => params.required("external_user_id"),
    };
    params.finish()?;
    let not_found = || {
        let detail = "no user has this external_user_id";
        Problem::new(Code::UserNotFound, detail)
    };
    let user = match (caller.user_session(), external_id) {
        (Some(session), None) => session.user.id,
        (Some(session), sent) if session.user.external_id == sent => session.user.id,
        (None, Some(external_id)) => {
            let (tenant, database) = (caller.tenant().id, app.database_for(caller.tenant())?);
            let ids = std::slice::from_ref(&external_id);
            let found = users::table::find_ids_by_external_id(database, tenant, ids).await?;
            found.first().copied().ok_or_else(not_found)?
        }
        _ => return Err(not_found()),
    };
    entitlements(&app, &caller, user).await
}
