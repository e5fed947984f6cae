//! `DELETE /staff/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::StaffId;

use super::{change, lock_member};
use crate::{
    app::App,
    auth::{Caller, StaffWrite, staff},
    http::{
        openapi::StaffIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::NoContent,
    },
};

/// Remove a staff member
///
/// Ends the member's sessions within a second. Events keep the member's id.
#[utoipa::path(
    delete,
    path = "/staff/{id}",
    tag = "Console",
    operation_id = "removeStaffMember",
    params(StaffIdPath),
    responses(
        (status = 204, description = "Removed."),
        (status = 404, description = "There is no such staff member (`staff_member_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The member is the caller, or a member of all tenants (`staff_change_not_allowed`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller<StaffWrite>,
    PathParam(id): PathParam<StaffId>,
) -> Result<NoContent, Problem> {
    let mut home = app.db.home()?.connection().await?;
    let tx = home.begin();
    let member = lock_member(&tx, &caller, id).await?;
    staff::remove(&tx, &change(&app, &caller), &member).await?;
    tx.commit().await?;
    Ok(NoContent)
}
