//! Subscriptions: which user has which plan, and whether that gives access.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `GET /subscriptions` | `list.rs` | clients with `subscriptions:read`; on behalf of a user, that user's |
//! | `POST /subscriptions` | `create.rs` | secret clients with `subscriptions:write` |
//! | `GET /subscriptions/{id}` | `read.rs` | clients with `subscriptions:read`; on behalf of a user, that user's |
//! | `PUT /subscriptions/{id}` | `update.rs` | secret clients with `subscriptions:write` |
//! | `DELETE /subscriptions/{id}` | `delete.rs` | secret clients with `subscriptions:write` |
//!
//! The rules are in `domain/subscription`: where a status leads, when there is access, what a change brings along. Here
//! a record is locked, the rule is asked, and what it says is written with its event. What has passed its `ends_at` is
//! shown as expired at once, and written down by the next who changes it. `lifecycle.rs` is the background task that writes
//! down what happens by itself.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{
    EventKind, ExternalId, Id, Invalid, Refused, Status, Step, Subscription, SubscriptionId,
    TenantId, Turn,
};
use serde::Serialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    callers::Caller,
    clock::Ids,
    db::{self, Engine, Error, Transaction},
    events::{self, By, Event},
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
};

mod create;
mod delete;
pub mod due;
mod end;
pub mod lifecycle;
mod list;
mod listed;
mod read;
pub mod report;
mod shape;
pub mod table;
mod update;
mod view;

pub use end::{Whose, end_all_of_user};
pub use view::SubscriptionView;

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
}

/// There is no subscription with this id, or it cannot be one, or it is somebody else's.
fn no_such_subscription(id: Result<SubscriptionId, Invalid>) -> Problem {
    let detail = match id {
        Ok(id) => format!("no subscription has this id: {id}"),
        Err(why) => format!("no subscription has this id: {why}"),
    };
    Problem::new(Code::SubscriptionNotFound, detail)
}

/// The subscription with the id in a path, if the caller may see it.
pub async fn find<N>(
    app: &App,
    caller: &Caller<N>,
    id: Result<SubscriptionId, Invalid>,
) -> Result<Subscription, Problem> {
    let id = id.map_err(|why| no_such_subscription(Err(why)))?;
    let engine = app.engine_of(caller.tenant())?;
    let found = table::find(engine, caller.tenant().id, id).await?;
    let own = |found: &Subscription| {
        let user = caller.user();
        user.is_none_or(|signed_in| signed_in.user.id == found.user)
    };
    found
        .filter(own)
        .ok_or_else(|| no_such_subscription(Ok(id)))
}

/// A subscription that nobody else changes until the end of the transaction.
struct Locked {
    subscription: Subscription,
    /// What GET would answer.
    view: SubscriptionView,
    /// The instant of the change. Read under the lock, so that the order of events is the order of changes.
    now: Timestamp,
}

/// Locks the subscription that a change is meant for, if it is still the one that the caller saw.
async fn lock(
    app: &App,
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: Result<SubscriptionId, Invalid>,
    if_match: &IfMatch,
) -> Result<Locked, Problem> {
    let id = id.map_err(|why| no_such_subscription(Err(why)))?;
    let found = table::lock(tx, tenant, id).await?;
    let subscription = found.ok_or_else(|| no_such_subscription(Ok(id)))?;
    let now = app.billing.after(subscription.updated_at);
    let view = SubscriptionView::at(&subscription, now);
    if_match.check(&view)?;
    Ok(Locked {
        subscription,
        view,
        now,
    })
}

/// Who changes a subscription, and whose.
pub struct Change<'a> {
    /// Whose data it is.
    pub tenant: TenantId,
    /// Who does it.
    pub by: By,
    /// Makes the events' identifiers.
    pub ids: Ids,
    /// When.
    pub now: Timestamp,
    /// The transaction that it is done in.
    pub tx: &'a Transaction<'a>,
}

impl Change<'_> {
    async fn record(
        &self,
        (kind, at): (EventKind, Timestamp),
        subscription: &Subscription,
        data: &impl Serialize,
    ) -> Result<(), Error> {
        let event = Event {
            id: self.ids.next(at),
            at,
            tenant: self.tenant,
            kind,
            subject: subscription.id.uuid(),
            by: self.by.clone(),
            data,
        };
        events::record(self.tx, &event).await
    }

    /// Adds a new subscription, unless another has its external id.
    pub async fn add(&self, new: &Subscription) -> Result<Option<SubscriptionView>, Error> {
        if !table::insert(self.tx, self.tenant, new).await? {
            return Ok(None);
        }
        let view = SubscriptionView::at(new, self.now);
        let kind = EventKind::SubscriptionCreated;
        self.record((kind, self.now), new, &view).await?;
        Ok(Some(view))
    }

    /// Writes down what a subscription has become. If it had passed its end and nobody had written that down, that is
    /// an event of its own, of that earlier instant.
    pub async fn save(
        &self,
        kind: EventKind,
        before: &Subscription,
        after: &Subscription,
    ) -> Result<SubscriptionView, Error> {
        let settled = before.settled(self.now);
        let [was, is] = [&settled, after].map(|one| SubscriptionView::at(one, self.now));
        if settled.status != before.status {
            let step = Step {
                turn: Turn::Expired,
                at: settled.updated_at,
                after: settled,
            };
            self.record_step(before, &step).await?;
        }
        table::save(self.tx, self.tenant, after).await?;
        // What nobody can see, such as a period that is paid ahead, is no event.
        if was != is {
            self.record((kind, self.now), after, &events::changed(&was, &is)?)
                .await?;
        }
        Ok(is)
    }
}

/// Why a change was refused.
fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Fields(wrong) => Problem::wrong(wrong),
        Refused::Transition { from, to } => {
            let allowed: Vec<&str> = from.may_become().iter().map(|to| to.as_str()).collect();
            let detail = match from {
                Status::Expired => format!(
                    "from {from} it becomes active, and only together with a renews_at or ends_at in the future"
                ),
                _ => format!(
                    "from {from} it does not become {to}; it can become {}",
                    allowed.join(", ")
                ),
            };
            Problem::new(Code::InvalidTransition, detail).allowing(allowed)
        }
    }
}

/// Another subscription has this external id; which, the engine knows.
async fn duplicate(
    engine: &Engine,
    tenant: TenantId,
    external_id: Option<&ExternalId>,
) -> Result<Problem, db::Error> {
    let existing = match external_id {
        Some(external_id) => table::find_by_external_id(engine, tenant, external_id).await?,
        None => None,
    };
    let detail = "another subscription has this external_subscription_id";
    Ok(Problem::new(Code::DuplicateExternalId, detail).existing(existing))
}
