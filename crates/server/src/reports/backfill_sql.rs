//! SQL of the backfill: events and journal of subscriptions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{Id, RecordedState, SubscriptionId, TenantId, UserId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::journal_sql::read_state;
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

static FIRST_EVENT: Sql =
    Sql::new("SELECT at FROM events WHERE tenant_id = $1 ORDER BY at, id LIMIT 1");

/// Returns the time of the tenant's first event that was not removed.
pub(super) async fn first_event_at(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<Option<Timestamp>, Error> {
    let rows = connection.query(&FIRST_EVENT, &[&tenant.uuid()]).await?;
    Ok(rows.first().map(|row| row.try_get("at")).transpose()?)
}

/// An event of a subscription.
pub(super) struct SubscriptionEvent {
    pub at: Timestamp,
    pub kind: String,
    pub data: String,
}

static EVENTS: Sql = Sql::new(
    "SELECT subject_id, at, kind, data::text FROM events
     WHERE tenant_id = $1 AND subject_id = ANY ($2) AND kind LIKE 'subscription.%' ORDER BY at, id",
);

/// Returns the events of these subscriptions, oldest first.
pub(super) async fn events_of(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscriptions: &[Uuid],
) -> Result<BTreeMap<SubscriptionId, Vec<SubscriptionEvent>>, Error> {
    let rows = tx.query(&EVENTS, &[&tenant.uuid(), &subscriptions]).await?;
    let mut events: BTreeMap<SubscriptionId, Vec<SubscriptionEvent>> = BTreeMap::new();
    for row in rows {
        let row = RowReader::new(&row);
        let subscription = SubscriptionId::new(row.get("subject_id")?);
        let event = SubscriptionEvent {
            at: row.get("at")?,
            kind: row.get("kind")?,
            data: row.get("data")?,
        };
        events.entry(subscription).or_default().push(event);
    }
    Ok(events)
}

static JOURNAL: Sql = Sql::new(
    "SELECT user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported,
        arr_minor::text
     FROM revenue_changes WHERE tenant_id = $1 AND user_id = ANY ($2) AND subscription_id = ANY ($3) ORDER BY seq",
);

/// Returns the states in the journal of these subscriptions, in the order in which they were recorded.
pub(super) async fn journal_of(
    tx: &Transaction<'_>,
    tenant: TenantId,
    users: &[UserId],
    subscriptions: &[Uuid],
) -> Result<BTreeMap<SubscriptionId, Vec<RecordedState>>, Error> {
    let users: Vec<Uuid> = users.iter().map(|user| user.uuid()).collect();
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &users, &subscriptions];
    let mut states: BTreeMap<SubscriptionId, Vec<RecordedState>> = BTreeMap::new();
    for row in tx.query(&JOURNAL, &params).await? {
        let state = read_state(&RowReader::new(&row))?;
        states.entry(state.subscription).or_default().push(state);
    }
    Ok(states)
}
