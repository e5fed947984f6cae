//! Subscriptions: which user has which plan, and whether that gives access.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /subscriptions` | `list.rs` | clients with `subscriptions:read`; users see their own |
//! | `POST /subscriptions` | `create.rs` | secret clients with `subscriptions:write` |
//! | `GET /subscriptions/{id}` | `read.rs` | clients with `subscriptions:read`; users see their own |
//! | `PUT /subscriptions/{id}` | `update.rs` | secret clients with `subscriptions:write` |
//! | `DELETE /subscriptions/{id}` | `delete.rs` | secret clients with `subscriptions:write` |
//!
//! The rules are in `domain/subscription`. A handler locks the row, applies the rules, and stores the
//! result with its event in one transaction. A subscription past its `ends_at` is shown as expired;
//! the background task in `due_transitions.rs`, or the next update, stores the status.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{
    DueTransition, EventKind, Subscription, SubscriptionId, SubscriptionStatus,
    SubscriptionUpdateError, TenantId, Transition, ValidationError,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::Caller,
    db::{Error, Sql, Transaction},
    events,
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
    record::{ChangeContext, ExternalRecord, Locked, Record, not_found},
};

mod body;
mod create;
mod delete;
pub mod due_sql;
mod due_transitions;
mod expire_for_user;
pub mod lapsed;
mod list;
mod list_sql;
mod read;
pub mod table;
mod update;
mod view;

pub use due_transitions::apply_due_transitions;
pub use expire_for_user::expire_all_for_user;
pub use view::SubscriptionView;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
}

impl Record for Subscription {
    type Id = SubscriptionId;
    type View = SubscriptionView;

    const NOUN: &'static str = "subscription";
    const KEY: &'static str = "id";
    const NOT_FOUND: Code = Code::SubscriptionNotFound;
    const DELETED: EventKind = EventKind::SubscriptionDeleted;
    const SOFT_DELETE: &'static Sql = &table::SOFT_DELETE;

    fn id(&self) -> SubscriptionId {
        self.id
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn view(&self, now: Timestamp) -> SubscriptionView {
        SubscriptionView::at(self, now)
    }
}

impl ExternalRecord for Subscription {
    const EXTERNAL_ID: &'static str = "external_subscription_id";
    const EXTERNAL_ID_UNIQUE: &'static str = table::EXTERNAL_ID_UNIQUE;
    const FIND_BY_EXTERNAL_ID: &'static Sql = &table::FIND_BY_EXTERNAL_ID;
}

/// Returns the subscription with the id in a path if the caller may see it.
pub async fn find_visible<P>(
    app: &App,
    caller: &Caller<P>,
    id: Result<SubscriptionId, ValidationError>,
) -> Result<Subscription, Problem> {
    let id = id.map_err(not_found::<Subscription>)?;
    let database = app.database_for(caller.tenant())?;
    let subscription = table::find(database, caller.tenant().id, id).await?;
    subscription
        .filter(|subscription| {
            let session = caller.user_session();
            session.is_none_or(|session| session.user.id == subscription.user)
        })
        .ok_or_else(|| not_found::<Subscription>(id))
}

/// Locks the subscription with the id in a path and checks `If-Match`.
async fn lock(
    app: &App,
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: Result<SubscriptionId, ValidationError>,
    if_match: &IfMatch,
) -> Result<Locked<Subscription>, Problem> {
    let id = id.map_err(not_found::<Subscription>)?;
    let row = table::lock(tx, tenant, id).await?;
    Locked::new(row, id, app.billing_clock, if_match)
}

impl ChangeContext<'_> {
    /// Inserts a subscription and records the event. Returns `None` if another one has its external
    /// id.
    pub async fn insert_subscription(
        &self,
        subscription: &Subscription,
    ) -> Result<Option<SubscriptionView>, Error> {
        if !table::insert(self.tx, self.tenant, subscription).await? {
            return Ok(None);
        }
        let view = SubscriptionView::at(subscription, self.now);
        self.record_event(EventKind::SubscriptionCreated, subscription.id, &view)
            .await?;
        Ok(Some(view))
    }

    /// Updates a locked subscription and records the event. If the subscription is past its end but not
    /// stored as expired, records the expiry first, with the time of the end.
    pub async fn save_subscription(
        &self,
        kind: EventKind,
        before: &Subscription,
        after: &Subscription,
    ) -> Result<SubscriptionView, Error> {
        let current = before.as_of(self.now);
        let old_view = SubscriptionView::at(&current, self.now);
        let new_view = SubscriptionView::at(after, self.now);
        if current.status != before.status {
            let due = DueTransition {
                transition: Transition::Expired,
                at: current.updated_at,
                after: current,
            };
            self.record_transition(before, &due).await?;
        }
        table::update(self.tx, self.tenant, after).await?;
        // Changes that clients cannot see, such as a prepaid period, have no event.
        if old_view != new_view {
            let data = events::diff(&old_view, &new_view)?;
            self.record_event(kind, after.id, &data).await?;
        }
        Ok(new_view)
    }
}

fn update_problem(error: SubscriptionUpdateError) -> Problem {
    match error {
        SubscriptionUpdateError::InvalidFields(errors) => Problem::from_field_errors(errors),
        SubscriptionUpdateError::TransitionNotAllowed { from, to } => {
            let allowed: Vec<&str> = from
                .allowed_transitions()
                .iter()
                .map(|to| to.as_str())
                .collect();
            let detail = match from {
                SubscriptionStatus::Expired => format!(
                    "cannot change from {from} to {to}; allowed: active, with a renews_at or ends_at in the future"
                ),
                _ => format!(
                    "cannot change from {from} to {to}; allowed: {}",
                    allowed.join(", ")
                ),
            };
            Problem::new(Code::InvalidTransition, detail).with_allowed(allowed)
        }
    }
}
