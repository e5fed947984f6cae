//! The SQL that reads the log backwards, and one event by its id.

use jiff::{Timestamp, ToSpan};
use perennial_domain::{EventId, EventKind, Id, TenantId};
use tokio_postgres::{Row, types::ToSql};

use super::{
    EventFilter, LogHead, LogPage, LoggedEvent,
    table::{MAX_SCANNED_ENTRIES, page, read_event, read_head},
};
use crate::db::{Error, PooledConnection, Sql};

// Positions are consecutive, so a range of them limits the number of entries. The subject has its own statement.
static READ: Sql = Sql::new(page!(
    "position < least($2, last_position + 1) AND position >= least($2, last_position + 1) - $3 AND position > removed_to
     AND $6::uuid IS NULL",
    "position DESC"
));

// The index on the subject has few entries to read, so the range is not limited.
static READ_SUBJECT: Sql = Sql::new(page!(
    "subject_id = $6::uuid AND position < $2 AND position > removed_to AND $3::bigint IS NOT NULL",
    "position DESC"
));

/// Reads a page backwards. Returns `None` if an entry's event is not found.
pub(super) async fn read(
    connection: &PooledConnection,
    tenant: TenantId,
    before: i64,
    filter: &EventFilter,
    limit: i64,
) -> Result<Option<LogPage>, Error> {
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        &before,
        &MAX_SCANNED_ENTRIES,
        &EventKind::OPERATOR_RECORD_TYPES.as_slice(),
        &filter.types.names(),
        &filter.subject,
        &limit,
    ];
    let statement = match filter.subject {
        Some(_) => &READ_SUBJECT,
        None => &READ,
    };
    let rows = connection.query(statement, &params).await?;
    let head = read_head(rows.first())?;
    let mut events = Vec::with_capacity(rows.len());
    let (mut count, mut lowest) = (0, before);
    for row in &rows {
        // Without a matching entry, there is one row without a position.
        let Some(position) = row.try_get::<_, Option<i64>>("position")? else {
            break;
        };
        (count, lowest) = (count + 1, position);
        // A newer version has types that this one cannot return.
        let Ok(kind) = row.try_get::<_, &str>("kind")?.parse() else {
            continue;
        };
        match read_event(row, position, kind)? {
            Some(event) => events.push(event),
            None => return Ok(None),
        }
    }
    let LogHead {
        last_position,
        removed_to,
        epoch,
    } = head;
    let end = removed_to + 1;
    let read_to = match filter.subject {
        _ if count >= limit => lowest,
        Some(_) => end,
        None => (before.min(last_position + 1) - MAX_SCANNED_ENTRIES).max(end),
    };
    Ok(Some(LogPage {
        events,
        read_to,
        last_position,
        removed_to,
        epoch,
    }))
}

// The id of an event has the milliseconds of its time, and the index on subjects finds its entry.
static FIND: Sql = Sql::new(
    "SELECT entry.position, entry.recorded_at, entry.event_id, entry.at, entry.kind, entry.subject_id, event.client_id,
        event.user_id, event.staff_id, event.operator, event.payment_account_id, event.request_id, event.data
     FROM events AS event
     JOIN event_log AS entry ON entry.tenant_id = event.tenant_id AND entry.subject_id = event.subject_id
        AND entry.event_id = event.id
     WHERE event.tenant_id = $1 AND event.at >= $2 AND event.at < $3 AND event.id = $4
        AND split_part(event.kind, '.', 1) <> ALL ($5)",
);

/// Returns an event that has a position.
pub(super) async fn find(
    connection: &PooledConnection,
    tenant: TenantId,
    id: EventId,
) -> Result<Option<LoggedEvent>, Error> {
    let Some((from, to)) = recorded_between(id) else {
        return Ok(None);
    };
    let params: [&(dyn ToSql + Sync); 5] = [
        &tenant.uuid(),
        &from,
        &to,
        &id.uuid(),
        &EventKind::OPERATOR_RECORD_TYPES.as_slice(),
    ];
    let row = connection.query_opt(&FIND, &params).await?;
    row.as_ref().map_or(Ok(None), from_row)
}

fn from_row(row: &Row) -> Result<Option<LoggedEvent>, Error> {
    match row.try_get::<_, &str>("kind")?.parse() {
        Ok(kind) => read_event(row, row.try_get("position")?, kind),
        Err(_) => Ok(None),
    }
}

/// Returns the millisecond of an event's id. `None` for a UUID that no event has.
fn recorded_between(id: EventId) -> Option<(Timestamp, Timestamp)> {
    let (seconds, nanos) = id.uuid().get_timestamp()?.to_unix();
    let (seconds, nanos) = (i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?);
    let from = Timestamp::new(seconds, nanos).ok()?;
    Some((from, from.checked_add(1.millisecond()).ok()?))
}
