//! SQL of the backfill: events of subscriptions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{Id, SubscriptionId, TenantId};
use uuid::Uuid;

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
