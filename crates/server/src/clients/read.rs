//! `GET /clients/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::ClientId;

use super::{
    table::{self, ClientRow},
    view::ClientView,
};
use crate::{
    app::App,
    auth::{Caller, ClientsRead},
    http::{
        openapi::ClientIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::not_found,
};

/// Get a client
///
/// The API key is not returned: only its hash is stored.
#[utoipa::path(
    get,
    path = "/clients/{id}",
    tag = "Clients",
    operation_id = "readClient",
    params(ClientIdPath),
    responses(
        (status = 200, description = "The client.", body = ClientView),
        (status = 404, description = "There is no such client (`client_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<ClientsRead>,
    PathParam(id): PathParam<ClientId>,
) -> Result<OkJson<ClientView>, Problem> {
    let id = id.map_err(not_found::<ClientRow>)?;
    let client = table::find(app.db.home()?, caller.tenant().id, id).await?;
    let client = client.ok_or_else(|| not_found::<ClientRow>(id))?;
    Ok(OkJson(ClientView::from(&client)))
}
