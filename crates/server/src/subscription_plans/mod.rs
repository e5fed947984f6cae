//! Subscription plans: what a tenant offers, and at what price.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `GET /subscription-plans` | `list.rs` | clients with `plans:read`; publishable ones see active plans |
//! | `POST /subscription-plans` | `create.rs` | secret clients with `plans:write` |
//! | `GET /subscription-plans/{slug}` | `read.rs` | clients with `plans:read`; publishable ones see active plans |
//! | `PUT /subscription-plans/{slug}` | `update.rs` | secret clients with `plans:write` |
//! | `DELETE /subscription-plans/{slug}` | `delete.rs` | secret clients with `plans:write` |
//!
//! A plan is addressed by its slug, which is unique among the tenant's undeleted plans regardless of
//! case. Its price is exact: minor units of a currency.

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db,
    http::problem::{Code, Problem},
};

mod create;
mod delete;
mod list;
mod read;
pub mod table;
mod update;
mod view;

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
}

/// There is no plan with this slug, or it cannot be one.
fn no_such_plan(slug: impl std::fmt::Display) -> Problem {
    Problem::new(Code::PlanNotFound, format!("no plan has this slug: {slug}"))
}

/// Why a change of a plan was refused by the database.
fn refused(error: db::Error) -> Problem {
    match error.constraint() {
        Some(table::SLUG_UNIQUE) => {
            let detail = "another plan has this slug; upper and lower case count as the same";
            Problem::new(Code::SlugTaken, detail)
        }
        _ => error.into(),
    }
}
