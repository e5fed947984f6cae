//! Subscription plans: what a tenant offers, and at what price.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `POST /subscription-plans` | `create.rs` | secret clients with `plans:write` |
//! | `GET /subscription-plans/{slug}` | `read.rs` | clients with `plans:read`; publishable ones see active plans |
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
mod read;
pub mod table;
mod view;

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create::create))
        .routes(routes!(read::read))
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
