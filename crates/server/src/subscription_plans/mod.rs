//! Subscription plans: what a tenant offers, and at what price.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `GET /subscription-plans` | `list.rs` | clients with `plans:read`; publishable ones and users see active plans |
//! | `POST /subscription-plans` | `create.rs` | secret clients with `plans:write` |
//! | `GET /subscription-plans/{slug}` | `read.rs` | clients with `plans:read`; publishable ones and users see active plans |
//! | `PUT /subscription-plans/{slug}` | `update.rs` | secret clients with `plans:write` |
//! | `DELETE /subscription-plans/{slug}` | `delete.rs` | secret clients with `plans:write` |
//!
//! A plan is addressed by its slug, which is unique among the tenant's undeleted plans regardless of
//! case. Its price is exact: minor units of a currency.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{Plan, Slug, TenantId};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db::{self, Transaction},
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
};

mod create;
mod delete;
mod list;
mod read;
mod shape;
pub mod table;
mod update;
mod view;

pub use view::PlanView;

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

/// A plan that nobody else changes until the end of the transaction.
struct Locked {
    plan: Plan,
    /// What GET would answer.
    view: PlanView,
    /// The instant of the change. Read under the lock, so that the order of events is the order of
    /// changes.
    now: Timestamp,
}

/// Locks the plan that a change is meant for, if it is still the one that the caller saw.
async fn lock(
    app: &App,
    tx: &Transaction<'_>,
    tenant: TenantId,
    slug: &Slug,
    if_match: &IfMatch,
) -> Result<Locked, Problem> {
    let found = table::lock(tx, tenant, slug).await?;
    locked(app, found, slug, if_match)
}

/// A plan that was found and locked, if it is still the one that the caller saw.
fn locked(
    app: &App,
    found: Option<Plan>,
    slug: &Slug,
    if_match: &IfMatch,
) -> Result<Locked, Problem> {
    let plan = found.ok_or_else(|| no_such_plan(slug))?;
    let view = PlanView::from(&plan);
    if_match.check(&view)?;
    let now = app.clock.after(plan.updated_at);
    Ok(Locked { plan, view, now })
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
