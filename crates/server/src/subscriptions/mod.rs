//! Subscriptions: which user has which plan, and whether that gives access.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /subscriptions` | `list.rs` | clients with `subscriptions:read`; users see their own |
//! | `POST /subscriptions` | `create.rs` | secret clients with `subscriptions:write` |
//! | `GET /subscriptions/counts` | `counts.rs` | secret clients with `subscriptions:read` |
//! | `GET /subscriptions/{id}` | `read.rs` | clients with `subscriptions:read`; users see their own |
//! | `PUT /subscriptions/{id}` | `update.rs` | secret clients with `subscriptions:write`; users cancel their own (`update_by_user.rs`) |
//! | `DELETE /subscriptions/{id}` | `delete.rs` | secret clients with `subscriptions:write` |
//! | `POST /subscriptions/{id}/preview` | `preview.rs` | clients with `subscriptions:read`; users see their own |
//! | `GET /subscriptions/{id}/ledger` | `ledger/list.rs` | clients with `payments:read`; users see their own |
//!
//! The rules are in `domain/subscription`. A handler locks the row, applies the rules, and stores the
//! result with its event in one transaction. A subscription past its `ends_at` is shown as expired;
//! the background task in `due_transitions.rs`, or the next update, stores the status.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{
    AppliedChange, BillingChange, DueTransition, EventKind, FreeTimeError, LedgerEntry,
    LifecycleKind, SignedMoney, Subscription, SubscriptionId, SubscriptionStatus,
    SubscriptionUpdateError, Transition, UserId, ValidationError,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{Caller, Tenant},
    db::{Error, Sql, Transaction},
    events,
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
    record::{ChangeContext, ExternalRecord, Locked, Record, not_found},
    revenue_journal,
};

mod body;
mod cancellation_sql;
mod counts;
pub mod counts_sql;
mod create;
mod delete;
pub mod due_sql;
mod due_transitions;
mod expire_for_user;
pub mod lapsed;
pub mod ledger;
mod list;
mod list_sql;
mod preview;
mod read;
mod record_list;
mod subscription_row;
pub mod table;
mod update;
mod update_by_user;
mod view;

use ledger::table::NewRow;

pub use body::plan_ref;
pub use due_transitions::apply_due_transitions;
pub use expire_for_user::expire_all_for_user;
pub use record_list::RecordList;
pub use update::{UpdateRequest, update_subscription};
pub use view::SubscriptionView;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
        .routes(routes!(counts::counts))
        .routes(routes!(preview::preview))
        .routes(routes!(ledger::list::list))
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
    let subscription = table::find(database, scope(caller.tenant()), id).await?;
    subscription
        .filter(|subscription| is_visible(caller.user(), subscription))
        .ok_or_else(|| not_found::<Subscription>(id))
}

/// Returns whether the subscription exists for the user of a request: users see their own, and servers all.
fn is_visible(user: Option<UserId>, subscription: &Subscription) -> bool {
    user.is_none_or(|user| user == subscription.user)
}

/// Returns what the table's functions need of a tenant.
pub fn scope(tenant: &Tenant) -> table::Scope {
    (tenant.id, tenant.lifecycle)
}

/// Locks the subscription with the id in a path if the caller may see it, and checks `If-Match`.
async fn lock<P>(
    app: &App,
    tx: &Transaction<'_>,
    caller: &Caller<P>,
    id: Result<SubscriptionId, ValidationError>,
    if_match: &IfMatch,
) -> Result<Locked<Subscription>, Problem> {
    let id = id.map_err(not_found::<Subscription>)?;
    let row = table::lock(tx, scope(caller.tenant()), id).await?;
    let row = row.filter(|subscription| is_visible(caller.user(), subscription));
    Locked::new(row, id, app.billing_clock, if_match)
}

impl ChangeContext<'_> {
    /// Inserts a subscription with its ledger entries and records the event. Returns `None` if another
    /// one has its external id.
    pub async fn insert_subscription(
        &self,
        created: &BillingChange,
    ) -> Result<Option<SubscriptionView>, Error> {
        let subscription = &created.after;
        if !table::insert(self.tx, self.tenant, subscription).await? {
            return Ok(None);
        }
        let rows = self.ledger_rows(subscription, &created.entries);
        ledger::table::append(self.tx, &rows).await?;
        let changes = revenue_journal::changes(self.tenant, None, subscription, self.now);
        let view = SubscriptionView::at(subscription, self.now);
        let kind = EventKind::SubscriptionCreated;
        let event = self.event(self.now, kind, subscription.id, &view);
        revenue_journal::append_with_event(self.tx, &changes, &event).await?;
        Ok(Some(view))
    }

    /// Appends the revenue states after a change at `at` to the journal of the reports.
    async fn append_revenue(
        &self,
        before: Option<&Subscription>,
        after: &Subscription,
        at: Timestamp,
    ) -> Result<(), Error> {
        let changes = revenue_journal::changes(self.tenant, before, after, at);
        revenue_journal::append(self.tx, &changes).await
    }

    fn ledger_rows(&self, subscription: &Subscription, entries: &[LedgerEntry]) -> Vec<NewRow> {
        ledger::rows(self.tenant, subscription, entries, self.ids, &self.actor)
    }

    /// Stores a change of a locked subscription: the transitions that were due before it, its ledger
    /// entries, and its event if clients see a difference. Moves `now` to the time of the change.
    pub async fn save_applied(
        &mut self,
        kind: EventKind,
        original: &Subscription,
        applied: &AppliedChange,
    ) -> Result<SubscriptionView, Error> {
        let mut before = original;
        for due in &applied.due {
            self.record_transition(before, due).await?;
            before = &due.after;
        }
        self.now = applied.after.updated_at;
        let rows = self.ledger_rows(&applied.after, &applied.own_entries);
        ledger::table::append(self.tx, &rows).await?;
        self.save_subscription(kind, before, &applied.after).await
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
                after: current.clone(),
                entries: Vec::new(),
            };
            self.record_transition(before, &due).await?;
        }
        table::update(self.tx, self.tenant, after).await?;
        let changes = revenue_journal::changes(self.tenant, Some(&current), after, self.now);
        // Changes that clients cannot see have no event.
        if old_view == new_view {
            revenue_journal::append(self.tx, &changes).await?;
        } else {
            let data = events::diff(&old_view, &new_view)?;
            let event = self.event(self.now, kind, after.id, &data);
            revenue_journal::append_with_event(self.tx, &changes, &event).await?;
        }
        Ok(new_view)
    }
}

fn update_problem(subscription: &Subscription, error: SubscriptionUpdateError) -> Problem {
    match error {
        SubscriptionUpdateError::PaymentRequired {
            amount_due,
            valid_until,
        } => {
            let currency = subscription.plan.price.currency();
            let amount = SignedMoney {
                minor_units: amount_due,
                currency,
            };
            let detail = format!("{amount} {currency} must be paid first; nothing was changed");
            Problem::new(Code::PaymentRequired, detail).with_amount_due(amount, valid_until)
        }
        SubscriptionUpdateError::FreeTimeNotPossible(error) => {
            Problem::new(Code::FreeTimeNotPossible, free_time_detail(error))
        }
        SubscriptionUpdateError::LifetimeCancelled => {
            let detail = "a lifetime subscription does not renew, so it cannot be cancelled; set ends_at or status expired";
            let allowed = vec![SubscriptionStatus::Expired.as_str()];
            Problem::new(Code::InvalidTransition, detail).with_allowed(allowed)
        }
        SubscriptionUpdateError::InvalidFields(errors) => Problem::from_field_errors(errors),
        SubscriptionUpdateError::TransitionNotAllowed { from, to } => {
            let is_managed = subscription.lifecycle_kind() == LifecycleKind::Managed;
            // In managed billing these follow from missing payments.
            let is_result = |status: &&SubscriptionStatus| {
                matches!(
                    status,
                    SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid
                )
            };
            let allowed: Vec<&str> = from
                .allowed_transitions()
                .iter()
                .filter(|status| !is_managed || !is_result(status))
                .map(|to| to.as_str())
                .collect();
            let condition = match from {
                SubscriptionStatus::Expired if is_managed => ", with enough credit, or free_until",
                SubscriptionStatus::Expired => ", with a renews_at or ends_at in the future",
                _ => "",
            };
            let detail = format!(
                "cannot change from {from} to {to}; allowed: {}{condition}",
                allowed.join(", ")
            );
            Problem::new(Code::InvalidTransition, detail).with_allowed(allowed)
        }
    }
}

fn free_time_detail(error: FreeTimeError) -> String {
    match error {
        FreeTimeError::NotManaged => {
            "free_until is for subscriptions that the service manages; set renews_at instead"
                .to_owned()
        }
        FreeTimeError::Status(status) => format!(
            "a {status} subscription cannot get free time; change its status to active first, or record a payment"
        ),
        FreeTimeError::Lifetime => {
            "a lifetime has no end that free time could move; leave free_until out".to_owned()
        }
        FreeTimeError::NothingToPay => {
            "the subscription costs nothing, so that all its time is free; leave free_until out"
                .to_owned()
        }
        FreeTimeError::CycleChange { until } => format!(
            "the billing cycle cannot change with the plan in free time, which ends at {until}; choose a plan with the \
             present billing cycle, or change it after that"
        ),
    }
}
