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
use perennial_domain::{
    ClientId, EventId, EventKind, EventTypes, PaymentAccountId, TenantId, UserId,
};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::db::{Error, PooledConnection};

mod copied_events_sql;
mod log_retention;
mod log_watch;
mod numbering_sql;
pub mod sequencer;
mod table;

pub use log_retention::remove_old_entries;
pub use log_watch::{AllLogsSubscription, GrownLogs, LogSubscription, LogWatch};
pub use numbering_sql::{CHANNEL, is_backfilled, seconds_behind};
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
    /// The client that made the change.
    pub client: Option<ClientId>,
    /// The user on whose behalf the client called.
    pub user: Option<UserId>,
    /// The operator whose command made the change.
    pub operator: Option<String>,
    /// The account whose payment provider reported the change.
    pub payment_account: Option<PaymentAccountId>,
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
    /// In the order of positions.
    pub events: Vec<LoggedEvent>,
    /// The position after which the next page starts. Not before that of the last event, and ahead of it if no further
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

/// The number of times that an entry is read whose event is not found.
const MAX_READS: usize = 3;
