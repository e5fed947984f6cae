//! `DELETE /console/session`

use std::sync::Arc;

use axum::{extract::State, http::header};
use jiff::SignedDuration;

use super::{WithCookie, set_cookie};
use crate::{
    app::App,
    auth::staff::{self, StaffCaller},
    http::{
        json::NoBody,
        problem::{CommonResponses, EmptyBodyResponses, Problem},
        response::NoContent,
    },
};

/// Sign out of the console
///
/// Ends the session, on every instance within a second.
#[utoipa::path(
    delete,
    path = "/console/session",
    tag = "Console",
    operation_id = "deleteConsoleSession",
    security(("console-session" = [])),
    responses(
        (status = 204, description = "Signed out."),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: StaffCaller,
    _: NoBody,
) -> Result<WithCookie<NoContent>, Problem> {
    let mut home = app.db.home()?.connection().await?;
    let change = caller.change(app.ids, app.clock.now());
    staff::sign_out(&mut home, &change, caller.tenant().id, caller.session()).await?;
    let cookie = set_cookie("", SignedDuration::ZERO)?;
    Ok(([(header::SET_COOKIE, cookie)], NoContent))
}
