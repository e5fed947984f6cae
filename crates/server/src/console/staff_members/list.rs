//! `GET /staff`

use std::sync::Arc;

use axum::extract::State;

use super::view::{StaffList, StaffMemberView};
use crate::{
    app::App,
    auth::{Caller, StaffRead, staff::table},
    http::{
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::OkJson,
    },
};

/// List staff members
///
/// Returns everyone who can work with the tenant's data in the console, members of all tenants included.
#[utoipa::path(
    get,
    path = "/staff",
    tag = "Console",
    operation_id = "listStaff",
    responses(
        (status = 200, description = "All staff members.", body = StaffList),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<StaffRead>,
    params: QueryParams,
) -> Result<OkJson<StaffList>, Problem> {
    params.finish()?;
    let home = app.db.home()?.connection().await?;
    let members = table::list(&home, caller.tenant().id).await?;
    let data = members.iter().map(StaffMemberView::from).collect();
    Ok(OkJson(StaffList { data }))
}
