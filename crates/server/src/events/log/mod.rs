//! The event log in commit order.
//!
//! Events are recorded in the transactions of their changes, so neither their times nor their ids tell the order in
//! which they become visible. The [`sequencer`] gives each event a **position** in the log of its tenant, after its
//! transaction is committed. Positions of a tenant are consecutive, start at 1 and never change, so a reader that
//! continues after the last position it has read misses no event.
//!
//! The **epoch** identifies the history of positions. It changes when a position may have been assigned to another event
//! before: after a restore, or after a failover that may have lost commits. A position is valid in its epoch only.

use jiff::Timestamp;
use perennial_domain::{EventId, EventKind, EventTypes, TenantId};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::RecordedActor;
use crate::db::{Error, PooledConnection};

mod copied_events_sql;
mod log_retention;
mod log_watch;
mod newest_first_sql;
mod numbering_sql;
pub mod sequencer;
mod table;

pub use log_retention::remove_old_entries;
pub use log_watch::{AllLogsSubscription, GrownLogs, LogSubscription, LogWatch};
pub use numbering_sql::{CHANNEL, seconds_behind};
pub use table::head;

/// Identifies the history of positions of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(pub Uuid);

/// An event with its position in the tenant's log.
#[derive(Debug)]
pub struct LoggedEvent {
    pub position: i64,
    /// When the event received its position.
    pub recorded_at: Timestamp,
    pub id: EventId,
    pub at: Timestamp,
    pub kind: EventKind,
    /// The id of the changed record.
    pub subject: Uuid,
    pub actor: RecordedActor,
    pub request_id: Option<String>,
    /// The record after the change.
    pub data: Box<RawValue>,
}

/// Selects events of a tenant. Only public events can be selected.
#[derive(Debug, Default, Clone)]
pub struct EventFilter {
    pub types: EventTypes,
    /// The id of a record.
    pub subject: Option<Uuid>,
}

/// A part of a tenant's log.
#[derive(Debug)]
pub struct LogPage {
    /// In the order of positions, or in the reverse order.
    pub events: Vec<LoggedEvent>,
    /// The position after which the next page starts, or before which it starts if the page was read backwards. Not before that of the last event, and ahead of it if no further
    /// event up to there matches the filter.
    pub read_to: i64,
    /// The position of the newest event of the tenant; 0 if there is none.
    pub last_position: i64,
    /// Retention has removed the events up to this position.
    pub removed_to: i64,
    pub epoch: Epoch,
}

/// The extent of a tenant's log.
#[derive(Debug, Clone, Copy)]
pub struct LogHead {
    /// The position of the newest event of the tenant; 0 if there is none.
    pub last_position: i64,
    /// Retention has removed the events up to this position.
    pub removed_to: i64,
    pub epoch: Epoch,
}

/// Reads up to `limit` events after the position `after`, or after those that retention has removed. Reads a limited
/// part of the log, so a page can be empty although later events match: the next one starts after
/// [`LogPage::read_to`].
///
/// Must not be called in a transaction: an event can move to another partition, and only a new statement finds it there.
pub async fn read_after(
    connection: &mut PooledConnection,
    tenant: TenantId,
    after: i64,
    filter: &EventFilter,
    limit: i64,
) -> Result<LogPage, Error> {
    for _ in 0..MAX_READS {
        if let Some(page) = table::read(connection, tenant, after, filter, limit).await? {
            return Ok(page);
        }
    }
    Err(Error::Internal(format!(
        "the log of {tenant} has an entry without an event after position {after}"
    )))
}

/// Reads up to `limit` events before the position `before`, the newest first. Reads a limited part of the log, so a page
/// can be empty although earlier events match: the next one starts before [`LogPage::read_to`].
///
/// Must not be called in a transaction, like [`read_after`].
pub async fn read_before(
    connection: &PooledConnection,
    tenant: TenantId,
    before: i64,
    filter: &EventFilter,
    limit: i64,
) -> Result<LogPage, Error> {
    for _ in 0..MAX_READS {
        if let Some(page) =
            newest_first_sql::read(connection, tenant, before, filter, limit).await?
        {
            return Ok(page);
        }
    }
    Err(Error::Internal(format!(
        "the log of {tenant} has an entry without an event before position {before}"
    )))
}

/// Returns a public event of a tenant. `None` if it does not exist, was removed, or has no position yet.
pub async fn find(
    connection: &PooledConnection,
    tenant: TenantId,
    id: EventId,
) -> Result<Option<LoggedEvent>, Error> {
    newest_first_sql::find(connection, tenant, id).await
}

/// The number of times that an entry is read whose event is not found.
const MAX_READS: usize = 3;
