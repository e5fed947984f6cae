//! `GET /users/{id}/identities`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::UserId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    identities_sql::{self, LinkedIdentity},
    table, user_not_found,
};
use crate::{
    app::App,
    auth::{Caller, UserSignIns},
    http::{
        openapi::UserIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::{NoStore, timestamp},
    },
};

/// An identity of a user at an identity provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Identity)]
pub struct IdentityView {
    /// The identity provider.
    #[schema(example = "https://accounts.example.com")]
    issuer: String,
    /// The provider's id of the user.
    #[schema(example = "248289761001")]
    subject: String,
    /// When the user first signed in with it.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
}

impl From<LinkedIdentity> for IdentityView {
    fn from(identity: LinkedIdentity) -> Self {
        let LinkedIdentity {
            issuer,
            subject,
            created_at,
        } = identity;
        Self {
            issuer,
            subject,
            created_at,
        }
    }
}

/// The identities of a user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Identities)]
pub struct IdentitiesView {
    /// Oldest first. Empty if the user has not signed up yet.
    data: Vec<IdentityView>,
}

/// List a user's identities
///
/// Returns with which accounts of which identity providers the user signs in.
#[utoipa::path(
    get,
    path = "/users/{id}/identities",
    tag = "Users",
    operation_id = "listUserIdentities",
    params(UserIdPath),
    responses(
        (status = 200, description = "The identities.", body = IdentitiesView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn list_identities(
    State(app): State<Arc<App>>,
    caller: Caller<UserSignIns>,
    PathParam(id): PathParam<UserId>,
) -> Result<NoStore<IdentitiesView>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    let (tenant, database) = (caller.tenant().id, app.database_for(caller.tenant())?);
    let user = table::find(database, tenant, id).await?;
    user.ok_or_else(|| user_not_found(Ok(id)))?;
    let connection = database.connection().await?;
    let identities = identities_sql::identities(&connection, tenant, id).await?;
    let data = identities.into_iter().map(IdentityView::from).collect();
    Ok(NoStore(StatusCode::OK, IdentitiesView { data }))
}
