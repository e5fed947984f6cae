//! Entitlements: what a user may do now.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /entitlements` | `read_own.rs` | clients with `subscriptions:read`, on behalf of a user; secret clients, by `external_user_id` |
//! | `GET /entitlements/{user_id}` | `read.rs` | secret clients with `subscriptions:read`; on behalf of a user, only that user |
//!
//! One SQL statement reads the user, the subscriptions that grant access and their plans. The domain crate
//! combines them. The result is not cached, so it is always current.

use std::sync::Arc;

use perennial_domain::UserId;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::Caller,
    http::{problem::Problem, response::OkJson},
    users::user_not_found,
};

mod read;
mod read_own;
pub mod table;
mod view;

use view::EntitlementsView;

pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(read_own::read_own))
        .routes(routes!(read::read))
}

/// Returns the current entitlements of a user.
async fn entitlements<P>(
    app: &App,
    caller: &Caller<P>,
    user: UserId,
) -> Result<OkJson<EntitlementsView>, Problem> {
    let database = app.database_for(caller.tenant())?;
    let now = app.billing_clock.now();
    let access = table::find(database, caller.tenant().id, user, now).await?;
    let access = access.ok_or_else(|| user_not_found(Ok(user)))?;
    Ok(OkJson(EntitlementsView::new(user, access)))
}
