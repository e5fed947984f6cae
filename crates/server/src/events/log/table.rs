//! The SQL that reads the log, and the one that appends to it.

use perennial_domain::{EventId, EventKind, Id, TenantId};
use serde_json::value::RawValue;
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};

use super::{super::table::read_actor, Epoch, EventFilter, LogHead, LogPage, LoggedEvent};
use crate::db::{Error, PooledConnection, RowReader, Sql};

/// How many entries one statement reads at most, for a filter that few of them match.
pub(super) const MAX_SCANNED_ENTRIES: i64 = 5_000;

/// A page of the log: its head, and the entries that `$entries` selects with their events, in the order `$order`.
/// Parameters: the tenant, the position to start at, the number of entries to read, the types of operators, the types
/// and the subject to select, and the limit.
///
/// The patterns of types are compared here, because a newer version may have recorded a type that this one does not know.
macro_rules! page {
    ($entries:literal, $order:literal) => {
        concat!(
            "SELECT epoch, last_position, removed_to, entry.position, entry.recorded_at, entry.event_id, entry.at, entry.kind,
                entry.subject_id, event.client_id, event.user_id, event.staff_id, event.operator, event.payment_account_id,
                event.request_id, event.data
             FROM event_log_state
             LEFT JOIN event_log_tenants ON event_log_tenants.tenant_id = $1
             LEFT JOIN LATERAL (
                SELECT position, recorded_at, event_id, at, kind, subject_id FROM event_log
                WHERE tenant_id = $1 AND ", $entries, " AND split_part(kind, '.', 1) <> ALL ($4)
                  AND (cardinality($5::text[]) = 0 OR kind = ANY ($5) OR split_part(kind, '.', 1) || '.*' = ANY ($5))
                ORDER BY ", $order, " LIMIT $7
             ) AS entry ON true
             LEFT JOIN LATERAL (
                SELECT client_id, user_id, staff_id, operator, payment_account_id, request_id, data FROM events
                WHERE tenant_id = $1 AND events.at = entry.at AND id = entry.event_id LIMIT 1
             ) AS event ON true
             ORDER BY entry.", $order
        )
    };
}
pub(super) use page;

// Positions are consecutive, so a range of them limits the number of entries.
static READ: Sql = Sql::new(page!(
    "position > greatest($2, removed_to) AND position <= greatest($2, removed_to) + $3
     AND ($6::uuid IS NULL OR subject_id = $6)",
    "position"
));

/// Reads a page. Returns `None` if an entry's event is not found.
pub(super) async fn read(
    connection: &PooledConnection,
    tenant: TenantId,
    after: i64,
    filter: &EventFilter,
    limit: i64,
) -> Result<Option<LogPage>, Error> {
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        &after,
        &MAX_SCANNED_ENTRIES,
        &EventKind::OPERATOR_RECORD_TYPES.as_slice(),
        &filter.types.names(),
        &filter.subject,
        &limit,
    ];
    let rows = connection.query(&READ, &params).await?;
    let LogHead {
        last_position,
        removed_to,
        epoch,
    } = read_head(rows.first())?;
    let mut page = LogPage {
        events: Vec::with_capacity(rows.len()),
        read_to: after,
        last_position,
        removed_to,
        epoch,
    };
    for row in &rows {
        // Without a matching entry, there is one row without a position.
        let Some(position) = row.try_get::<_, Option<i64>>("position")? else {
            break;
        };
        let Ok(kind) = row.try_get::<_, &str>("kind")?.parse() else {
            // Recorded by a newer version, which can return it: this page ends before it.
            page.read_to = position - 1;
            return Ok(Some(page));
        };
        match read_event(row, position, kind)? {
            Some(event) => page.events.push(event),
            None => return Ok(None),
        }
    }
    let is_full = i64::try_from(page.events.len()).is_ok_and(|count| count >= limit);
    page.read_to = match page.events.last() {
        Some(last) if is_full => last.position,
        _ => (after.max(removed_to) + MAX_SCANNED_ENTRIES).min(last_position.max(after)),
    };
    Ok(Some(page))
}

/// Reads the event of an entry, if it was found.
pub(super) fn read_event(
    row: &Row,
    position: i64,
    kind: EventKind,
) -> Result<Option<LoggedEvent>, Error> {
    let row = RowReader::new(row);
    let Some(Json(data)) = row.get::<Option<Json<Box<RawValue>>>>("data")? else {
        return Ok(None);
    };
    Ok(Some(LoggedEvent {
        position,
        recorded_at: row.get("recorded_at")?,
        id: EventId::new(row.get("event_id")?),
        at: row.get("at")?,
        kind,
        subject: row.get("subject_id")?,
        actor: read_actor(&row)?,
        request_id: row.get("request_id")?,
        data,
    }))
}

pub(super) fn read_head(row: Option<&Row>) -> Result<LogHead, Error> {
    let row = row.ok_or_else(|| Error::Internal("event_log_state is empty".to_owned()))?;
    Ok(LogHead {
        last_position: row.try_get::<_, Option<i64>>("last_position")?.unwrap_or(0),
        removed_to: row.try_get::<_, Option<i64>>("removed_to")?.unwrap_or(0),
        epoch: Epoch(row.try_get("epoch")?),
    })
}

static HEAD: Sql = Sql::new(
    "SELECT epoch, last_position, removed_to FROM event_log_state
     LEFT JOIN event_log_tenants ON tenant_id = $1",
);

/// Returns the extent of a tenant's log.
pub async fn head(connection: &PooledConnection, tenant: TenantId) -> Result<LogHead, Error> {
    let row = connection.query_opt(&HEAD, &[&tenant.uuid()]).await?;
    read_head(row.as_ref())
}

/// Gives positions to the events that `$fresh` selects, in the order of `seq`, and notifies readers.
macro_rules! number {
    ($fresh:literal) => {
        concat!(
            "WITH fresh AS MATERIALIZED (", $fresh, "), heads AS (
                INSERT INTO event_log_tenants AS head (tenant_id, last_position)
                SELECT tenant_id, count(*) FROM fresh GROUP BY tenant_id ORDER BY tenant_id
                ON CONFLICT (tenant_id) DO UPDATE SET last_position = head.last_position + excluded.last_position
                RETURNING tenant_id, last_position
             ), entries AS (
                INSERT INTO event_log (tenant_id, position, recorded_at, at, event_id, kind, subject_id)
                SELECT tenant_id,
                    last_position - count(*) OVER (PARTITION BY tenant_id)
                        + row_number() OVER (PARTITION BY tenant_id ORDER BY seq),
                    now(), at, id, kind, subject_id
                FROM fresh JOIN heads USING (tenant_id)
             ), months AS (
                INSERT INTO event_log_months AS known (month, last_recorded_on)
                SELECT month, last_recorded_on FROM (
                    SELECT DISTINCT date_trunc('month', at AT TIME ZONE 'UTC')::date AS month,
                        (now() AT TIME ZONE 'UTC')::date AS last_recorded_on
                    FROM fresh
                ) AS recorded
                WHERE NOT EXISTS (
                    SELECT FROM event_log_months AS known
                    WHERE known.month = recorded.month AND known.last_recorded_on >= recorded.last_recorded_on)
                ON CONFLICT (month) DO UPDATE SET last_recorded_on = excluded.last_recorded_on
             )
             SELECT count(*) AS numbered, max(seq) AS last_seq, pg_current_snapshot()::text AS snapshot,
                CASE WHEN count(*) > 0 THEN pg_notify('event_log', CASE
                    WHEN count(DISTINCT tenant_id) <= 100 THEN string_agg(DISTINCT tenant_id::text, ' ') ELSE '' END)::text
                END AS notified
             FROM fresh"
        )
    };
}
pub(super) use number;
