//! `PUT /staff/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::StaffId;

use super::{
    body::{UpdateStaffMember, parse_update},
    change, lock_member,
    view::StaffMemberView,
};
use crate::{
    app::App,
    auth::{Caller, StaffWrite, staff},
    http::{
        json::BodyFields,
        openapi::StaffIdPath,
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
};

/// Change the role of a staff member
///
/// Takes effect within a second, also in the member's current sessions.
#[utoipa::path(
    put,
    path = "/staff/{id}",
    tag = "Console",
    operation_id = "updateStaffMember",
    params(StaffIdPath),
    request_body(content = UpdateStaffMember, description = "The role to set."),
    responses(
        (status = 200, description = "The staff member.", body = StaffMemberView),
        (status = 404, description = "There is no such staff member (`staff_member_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The member is the caller, or a member of all tenants (`staff_change_not_allowed`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<StaffWrite>,
    PathParam(id): PathParam<StaffId>,
    fields: BodyFields,
) -> Result<OkJson<StaffMemberView>, Problem> {
    let mut home = app.db.home()?.connection().await?;
    let tx = home.begin();
    let member = lock_member(&tx, &caller, id).await?;
    let role = parse_update(fields, &member)?;
    let member = staff::set_role(&tx, &change(&app, &caller), member, role).await?;
    tx.commit().await?;
    Ok(OkJson(StaffMemberView::from(&member)))
}
