//! Entitlements: what a user may do now, in one question.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `GET /entitlements` | `own.rs` | clients with `subscriptions:read`, on behalf of a user |
//! | `GET /entitlements/{user_id}` | `of_user.rs` | secret clients with `subscriptions:read`; on behalf of a user, that one |
//!
//! One statement by index finds the user, the subscriptions that give access now, and their plans; `domain/entitlement`
//! adds them up. Nothing is kept: it is true at the instant of the answer, as reading subscriptions and filtering them is.

use std::sync::Arc;

use perennial_domain::UserId;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    callers::Caller,
    http::{answer::Found, problem::Problem},
    users::no_such_user,
};

mod of_user;
mod own;
pub mod table;
mod view;

use view::EntitlementsView;

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(own::own))
        .routes(routes!(of_user::of_user))
}

/// What a user may do now.
async fn entitlements<N>(
    app: &App,
    caller: &Caller<N>,
    user: UserId,
) -> Result<Found<EntitlementsView>, Problem> {
    let engine = app.engine_of(caller.tenant())?;
    let now = app.billing.now();
    let found = table::granted(engine, caller.tenant().id, user, now).await?;
    let granted = found.ok_or_else(|| no_such_user(Ok(user)))?;
    Ok(Found(EntitlementsView::of(user, granted)))
}
