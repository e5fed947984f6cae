//! Subscription plans: what a tenant sells, and at what price.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /subscription-plans` | `list.rs` | clients with `plans:read`; publishable clients and users see only active plans |
//! | `POST /subscription-plans` | `create.rs` | secret clients with `plans:write` |
//! | `GET /subscription-plans/{slug}` | `read.rs` | clients with `plans:read`; publishable clients see only active plans, users also those of their subscriptions |
//! | `PUT /subscription-plans/{slug}` | `update.rs` | secret clients with `plans:write` |
//! | `DELETE /subscription-plans/{slug}` | `delete.rs` | secret clients with `plans:write` |
//!
//! A slug identifies a plan. It is unique among the tenant's plans that are not deleted, ignoring
//! case.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{EventKind, Plan, PlanId};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db::{self, Sql},
    http::problem::{Code, Problem},
    record::Record,
};

mod body;
mod create;
mod delete;
mod list;
mod plan_list_sql;
mod plan_ref;
mod read;
pub mod table;
mod update;
mod view;

pub use body::parse_create;
pub use create::insert_plan;
pub use plan_list_sql::list_all;
pub use plan_ref::PlanRef;
pub use update::update_plan;
pub use view::PlanView;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
}

impl Record for Plan {
    type Id = PlanId;
    type View = PlanView;

    const NOUN: &'static str = "plan";
    const KEY: &'static str = "slug";
    const NOT_FOUND: Code = Code::PlanNotFound;
    const DELETED: EventKind = EventKind::PlanDeleted;
    const SOFT_DELETE: &'static Sql = &table::SOFT_DELETE;

    fn id(&self) -> PlanId {
        self.id
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn view(&self, _now: Timestamp) -> PlanView {
        PlanView::from(self)
    }
}

/// Converts an insert error into a problem. A duplicate slug becomes `slug_taken`.
fn insert_problem(error: db::Error) -> Problem {
    match error.constraint() {
        Some(table::SLUG_UNIQUE) => {
            let detail = "another plan has this slug, ignoring case";
            Problem::new(Code::SlugTaken, detail)
        }
        _ => error.into(),
    }
}
