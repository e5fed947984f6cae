//! `DELETE /clients/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::ClientId;
use serde_json::json;

use super::{lock_enabled, table::ClientRow};
use crate::{
    app::App,
    auth::{Caller, ClientsWrite, tenants::table::notify_clients_changed},
    db::PooledConnection,
    http::{
        etag::IfMatch,
        openapi::{ClientIdPath, IfMatchParam},
        path_param::PathParam,
        problem::{Code, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    record::{ChangeOrigin, Locked, not_found},
};

/// Disable a client
///
/// All instances reject its API keys within a second, permanently. The client stays in lists. A client cannot disable
/// itself.
#[utoipa::path(
    delete,
    path = "/clients/{id}",
    tag = "Clients",
    operation_id = "disableClient",
    params(
        ClientIdPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Disabled."),
        (status = 404, description = "There is no such client (`client_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The client is disabled already (`client_disabled`), or it is the calling client (`own_client`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn disable(
    State(app): State<Arc<App>>,
    caller: Caller<ClientsWrite>,
    PathParam(id): PathParam<ClientId>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let id = id.map_err(not_found::<ClientRow>)?;
    let mut home = app.db.home()?.connection().await?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    disable_client(&mut home, &origin, id, &if_match).await?;
    Ok(NoContent)
}

/// Disables a client permanently, in a transaction.
pub async fn disable_client(
    home: &mut PooledConnection,
    origin: &ChangeOrigin<'_>,
    id: ClientId,
    if_match: &IfMatch,
) -> Result<(), Problem> {
    if origin.actor.client == Some(id) {
        let detail =
            "a client cannot disable itself; use another client, or `perennial client disable`";
        return Err(Problem::new(Code::OwnClient, detail));
    }
    let tx = home.begin();
    let Locked { record, now, .. } = lock_enabled(&tx, origin, id, if_match).await?;
    origin
        .context(now, &tx)
        .soft_delete_with(&record, &json!({}))
        .await?;
    notify_clients_changed(&tx, Some(origin.tenant.id)).await?;
    tx.commit().await?;
    Ok(())
}
