//! Staff members of a tenant: list, invite, change, remove.

use std::sync::Arc;

use perennial_domain::{StaffId, ValidationError};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{
        Caller, StaffWrite,
        staff::{StaffChange, StaffMember, table},
    },
    db::Transaction,
    http::problem::{Code, Problem},
};

mod body;
mod invite;
mod list;
mod remove;
mod update;
mod view;

pub(super) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, invite::invite))
        .routes(routes!(update::update, remove::remove))
}

/// Returns the context of a change that a request makes.
fn change(app: &App, caller: &Caller<StaffWrite>) -> StaffChange {
    StaffChange {
        ids: app.ids,
        now: app.clock.now(),
        actor: caller.actor(),
    }
}

/// Locks a member whom the caller may change: one of the caller's tenant, and not the caller.
async fn lock_member(
    tx: &Transaction<'_>,
    caller: &Caller<StaffWrite>,
    id: Result<StaffId, ValidationError>,
) -> Result<StaffMember, Problem> {
    let id = id.map_err(not_found)?;
    let member = table::lock(tx, id).await?;
    let tenant = caller.tenant().id;
    let member = member
        .filter(|member| member.tenant.is_none_or(|own| own == tenant))
        .ok_or_else(|| not_found(id))?;
    let not_allowed = |detail: &str| Err(Problem::new(Code::StaffChangeNotAllowed, detail));
    if caller.staff_id() == Some(id) {
        return not_allowed("you cannot change or remove yourself; ask another admin");
    }
    if member.tenant.is_none() {
        let detail = "a member of all tenants can only be changed with `perennial staff`";
        return not_allowed(detail);
    }
    Ok(member)
}

fn not_found(key: impl std::fmt::Display) -> Problem {
    let detail = format!("no staff member has this id: {key}");
    Problem::new(Code::StaffMemberNotFound, detail)
}
