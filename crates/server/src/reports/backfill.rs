//! Reads the histories of subscriptions that are older than the reports from their events, and rebuilds the sums.
//!
//! Events are removed after a while, so the beginning of a history may be missing. Then the first known state counts from
//! the tenant's first event on, and the days before it are unknown.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use perennial_domain::{
    EventKind, Id, Money, RecordedState, RevenueChange, RevenueFacts, Subscription, SubscriptionId,
    SubscriptionStatus, TenantId,
};
use serde_json::{Map, Value};

use super::{
    backfill_sql::{self, SubscriptionEvent},
    journal_sql::{self, TenantUser},
    rebuild::{RebuildStep, rebuild_step},
    roll_up::roll_up_revenue,
    state_sql::{self, ReportState},
};
use crate::{
    app::App,
    auth::tenants,
    db::{CellDatabase, Error, PooledConnection, Transaction},
    revenue_journal,
    subscriptions::{self, table::Scope},
};

/// How many subscriptions are read in one transaction.
const CHUNK: i64 = 200;
/// How many states are added to the sums after each chunk. More than a chunk has, so that they do not pile up.
const MAX_STATES: i64 = 20_000;

/// The record in an event.
type EventData = Map<String, Value>;

/// Returns the facts that an event states about a subscription. Events of earlier versions lack some fields. A trial ends
/// when the subscription is to renew.
fn facts(
    data: &EventData,
    current: &RevenueFacts,
    trial_end: Option<Timestamp>,
) -> Option<RevenueFacts> {
    let text = |field: &str| data.get(field).and_then(Value::as_str);
    let time = |field: &str| text(field).and_then(|text| text.parse::<Timestamp>().ok());
    let price = match data.get("price") {
        Some(Value::Number(price)) => {
            let decimal = price.to_string().parse().ok()?;
            Some(Money::from_decimal(&decimal, current.currency).ok()?)
        }
        _ => None,
    };
    let quantity = data.get("quantity").and_then(Value::as_i64).unwrap_or(1);
    let status: SubscriptionStatus = text("status")?.parse().ok()?;
    let trial_ends_at = match status {
        SubscriptionStatus::OnTrial => time("renews_at"),
        _ => trial_end,
    };
    let suspended = data.get("suspended").and_then(Value::as_bool);
    Some(RevenueFacts {
        plan: text("subscription_plan_id")?.parse().ok()?,
        billing_cycle: text("billing_cycle")?.parse().ok()?,
        price: price.map(Money::minor_units),
        quantity: i32::try_from(quantity).ok()?,
        status,
        suspended: suspended.unwrap_or(false),
        starts_at: time("starts_at")?,
        ends_at: time("ends_at"),
        trial_ends_at,
        ..*current
    })
}

/// The history of a subscription, as far as it is known.
#[derive(Debug, Default)]
struct ReplayedHistory {
    changes: Vec<RevenueChange>,
    /// Whether its beginning is missing.
    is_truncated: bool,
}

/// Returns the history of a subscription from its events. `first_event_at` is when the tenant's events begin.
fn replay(
    current: &RevenueFacts,
    events: &[SubscriptionEvent],
    (first_event_at, now): (Option<Timestamp>, Timestamp),
) -> ReplayedHistory {
    let mut history = ReplayedHistory::default();
    let mut last: Option<RevenueFacts> = None;
    for event in events {
        let Ok(mut data) = serde_json::from_str::<EventData>(&event.data) else {
            continue;
        };
        let previous = data.remove("previous");
        let is_created = event.kind == EventKind::SubscriptionCreated.as_str();
        if last.is_none() && !is_created {
            // What it was before the first event that is left.
            let mut before = data.clone();
            if let Some(Value::Object(previous)) = previous {
                before.extend(previous);
            }
            let start = current.created_at.max(first_event_at.unwrap_or(event.at));
            if let Some(facts) = facts(&before, current, None) {
                history.is_truncated = true;
                history.changes.extend(facts.changes(None, start));
                last = Some(facts);
            }
        }
        if event.kind == EventKind::SubscriptionDeleted.as_str() {
            let deleted = last.as_ref().unwrap_or(current).deletion(event.at);
            history.changes.push(deleted);
            return history;
        }
        let trial_end = last.and_then(|last| last.trial_ends_at);
        if let Some(facts) = facts(&data, current, trial_end) {
            let changes = facts.changes(last.as_ref(), event.at);
            history.changes.extend(changes);
            last = Some(facts);
        }
    }
    if last.is_none() {
        history.is_truncated = true;
        let start = current.created_at.max(first_event_at.unwrap_or(now));
        history.changes.extend(current.changes(None, start));
    }
    history
}

fn day_of(at: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(at).date()
}

/// Returns the states in the journal of these users' subscriptions, in the order in which they were recorded.
async fn journal_of(
    tx: &Transaction<'_>,
    tenant: TenantId,
    users: BTreeSet<TenantUser>,
) -> Result<BTreeMap<SubscriptionId, Vec<RecordedState>>, Error> {
    let users: Vec<TenantUser> = users.into_iter().collect();
    let rolled = journal_sql::states_of_users(tx, &users).await?;
    let pending = journal_sql::pending_states(tx, tenant, Some(&users)).await?;
    let states = rolled.into_values().chain(pending.into_values());
    let mut states: Vec<RecordedState> = states.flatten().collect();
    states.sort_unstable_by_key(|state| state.sequence);
    let mut journal: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for state in states {
        journal.entry(state.subscription).or_default().push(state);
    }
    Ok(journal)
}

/// Reads the histories of the next subscriptions. Returns how many; 0 at the end.
async fn backfill_chunk(
    database: &CellDatabase,
    scope: Scope,
    now: Timestamp,
) -> Result<Option<usize>, Error> {
    let (tenant, _) = scope;
    let mut connection = database.connection().await?;
    let first_event_at = backfill_sql::first_event_at(&connection, tenant).await?;
    let tx = connection.begin();
    // The state of the reports is only changed while the sums are locked.
    if !journal_sql::try_lock(&tx).await? {
        return Ok(None);
    }
    let mut state = state_sql::find_in(&tx, tenant).await?;
    let after = state.backfilled_to.map(Id::uuid).unwrap_or_default();
    let locked = subscriptions::table::lock_next_with_deleted(&tx, scope, after, CHUNK).await?;
    let ids: Vec<_> = locked
        .iter()
        .map(|(subscription, _)| subscription.id.uuid())
        .collect();
    let users: BTreeSet<_> = locked
        .iter()
        .map(|(subscription, _)| (tenant, subscription.user))
        .collect();
    let events = backfill_sql::events_of(&tx, tenant, &ids).await?;
    let journal = journal_of(&tx, tenant, users).await?;
    let mut changes: Vec<revenue_journal::TenantChange> = Vec::new();
    for (subscription, deleted_at) in &locked {
        let recorded = journal.get(&subscription.id).map_or(&[][..], Vec::as_slice);
        let created_at = subscription.created_at;
        if recorded.iter().any(|state| state.at <= created_at) {
            continue;
        }
        let current = RevenueFacts::from(subscription);
        let events = events.get(&subscription.id).map_or(&[][..], Vec::as_slice);
        let history = replay(&current, events, (first_event_at, now));
        if history.is_truncated {
            let since = first_event_at.map_or_else(|| day_of(now), day_of);
            state.known_since = state.known_since.max(Some(since));
        }
        let mut own = history.changes;
        // States that were recorded since the upgrade are repeated, because a later record replaces an earlier one.
        own.extend(recorded.iter().map(|state| RevenueChange {
            at: state.at,
            user: subscription.user,
            subscription: subscription.id,
            state: state.state,
            imported: state.imported,
        }));
        // An instance of an earlier version may have changed the subscription after the last of them.
        own.extend(missing_end(subscription, *deleted_at, own.last()));
        changes.extend(own.into_iter().map(|change| (tenant, change)));
    }
    revenue_journal::append_many(&tx, &changes).await?;
    if let Some((last, _)) = locked.last() {
        state.backfilled_to = Some(last.id);
        state_sql::save(&tx, tenant, &state).await?;
    }
    tx.commit().await?;
    // In a transaction of its own, so that requests do not wait for the subscriptions meanwhile.
    let tx = connection.begin();
    if journal_sql::try_lock(&tx).await? {
        roll_up_revenue(&tx, now, MAX_STATES).await?;
        tx.commit().await?;
    }
    Ok(Some(locked.len()))
}

/// Returns the state that the record has, if it differs from the last known one.
fn missing_end(
    subscription: &Subscription,
    deleted_at: Option<Timestamp>,
    last: Option<&RevenueChange>,
) -> Option<RevenueChange> {
    let facts = RevenueFacts::from(subscription);
    let expected = match deleted_at {
        Some(at) => facts.deletion(at),
        None => facts.changes(None, subscription.updated_at).pop()?,
    };
    let is_same = last.is_some_and(|last| last.state == expected.state);
    (!is_same).then_some(RevenueChange {
        imported: false,
        ..expected
    })
}

/// Reads the histories of all subscriptions that are older than the reports, and computes the sums of their tenants.
pub async fn backfill(app: &App, database: &CellDatabase) -> Result<(), Error> {
    let tenants = tenants::table::list(&app.db.home()?.connection().await?).await?;
    for (tenant, name) in tenants {
        if !std::ptr::eq(app.database_for(&tenant)?, database) {
            continue;
        }
        let connection = database.connection().await?;
        let state = state_sql::find(&connection, tenant.id).await?;
        let is_missing = is_missing(&connection, tenant.id, &state).await?;
        drop(connection);
        if !is_missing {
            continue;
        }
        tracing::info!(
            tenant = name,
            "reading the histories of subscriptions for reports"
        );
        let mut count = 0;
        loop {
            match backfill_chunk(
                database,
                subscriptions::scope(&tenant),
                app.billing_clock.now(),
            )
            .await?
            {
                Some(0) => break,
                Some(read) => count += read,
                None => wait_for_lock().await,
            }
        }
        // Payments from before the upgrade are only added by a rebuild.
        rebuild_all(database, tenant.id).await?;
        complete(database, tenant.id, app.billing_clock.now()).await?;
        tracing::info!(tenant = name, subscriptions = count, "reports are complete");
    }
    Ok(())
}

/// Returns whether histories of a tenant's subscriptions are still to be read, or to be added to the sums.
pub(super) async fn is_missing(
    connection: &PooledConnection,
    tenant: TenantId,
    state: &ReportState,
) -> Result<bool, Error> {
    if state.backfilled_at.is_some() {
        return Ok(false);
    }
    // Once it has begun, the first subscription looks like a new one.
    Ok(state.backfilled_to.is_some()
        || state_sql::has_earlier_subscriptions(connection, tenant).await?)
}

async fn rebuild_all(database: &CellDatabase, tenant: TenantId) -> Result<(), Error> {
    loop {
        match rebuild_step(database, tenant).await? {
            RebuildStep::Complete => return Ok(()),
            RebuildStep::Waiting => wait_for_lock().await,
            RebuildStep::Users(_) | RebuildStep::Payments(_) => {}
        }
    }
}

/// Stores that a tenant's reports are complete.
async fn complete(database: &CellDatabase, tenant: TenantId, now: Timestamp) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    loop {
        let tx = connection.begin();
        if journal_sql::try_lock(&tx).await? {
            let mut state = state_sql::find_in(&tx, tenant).await?;
            state.backfilled_at = Some(now);
            state_sql::save(&tx, tenant, &state).await?;
            return tx.commit().await;
        }
        tx.rollback().await;
        wait_for_lock().await;
    }
}

async fn wait_for_lock() {
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
}
