//! The event log: one row per change, written in the transaction that makes the change.
//!
//! A change and its event are committed together or not at all. The log is the audit trail: who made
//! which change, when, and by which request. An event must never contain an email address or a
//! credential. [`log`] reads the events of a tenant in the order in which they were committed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{ClientId, EventId, EventKind, PaymentAccountId, StaffId, TenantId, UserId};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::db::Error;

pub mod log;
pub mod partitions;
mod subjects_sql;
mod table;
pub mod view;

pub use subjects_sql::{StatusChange, list_for_subjects, list_latest, list_status_changes};
pub use table::{count_by_kind, record, record_all, record_system_events, record_with_state};

/// Who made a change. All fields are `None` for background tasks.
#[derive(Debug, Clone, Default)]
pub struct Actor {
    pub client: Option<ClientId>,
    /// The user on whose behalf the client called.
    pub user: Option<UserId>,
    /// The staff member who called, with a session of the console instead of a client.
    pub staff: Option<StaffId>,
    pub request_id: Option<String>,
    /// The operating system's user and host that ran a command, as `ada@db-1`.
    pub operator: Option<&'static str>,
    /// The account whose payment provider reported the change.
    pub payment_account: Option<PaymentAccountId>,
}

/// An event to record. `T` is the JSON representation of the changed record.
#[derive(Debug)]
pub struct Event<'a, T> {
    pub id: EventId,
    pub at: Timestamp,
    pub tenant: TenantId,
    pub kind: EventKind,
    /// The id of the changed record.
    pub subject: Uuid,
    pub actor: Actor,
    /// The record after the change.
    pub data: &'a T,
}

/// One of several events of the same kind, time and actor.
#[derive(Debug)]
pub struct BulkEvent {
    pub id: EventId,
    /// The id of the changed record.
    pub subject: Uuid,
    /// The record after the change.
    pub data: serde_json::Value,
}

/// An event read from the log.
#[derive(Debug)]
pub struct RecordedEvent {
    pub at: Timestamp,
    pub kind: String,
    /// The id of the changed record.
    pub subject: Uuid,
    pub actor: RecordedActor,
    pub request_id: Option<String>,
    /// The record after the change.
    pub data: Box<RawValue>,
}

/// Who made the change of an event read from the log. All fields are `None` for background tasks.
#[derive(Debug, Default)]
pub struct RecordedActor {
    pub client: Option<ClientId>,
    /// The user on whose behalf the client called.
    pub user: Option<UserId>,
    pub staff: Option<StaffId>,
    /// The operator whose command made the change.
    pub operator: Option<String>,
    /// The account whose payment provider reported the change.
    pub payment_account: Option<PaymentAccountId>,
}

/// Returns the data of an update event: the record after the change, plus a field `previous` with
/// the old values of the changed fields.
pub fn diff<T: Serialize>(before: &T, after: &T) -> Result<impl Serialize + use<T>, Error> {
    type Fields = BTreeMap<String, Box<RawValue>>;
    // Raw JSON text keeps amounts exactly as in the API's responses.
    let fields = |record: &T| -> serde_json::Result<Fields> {
        serde_json::from_str(&serde_json::to_string(record)?)
    };
    let diff = || {
        let (mut before, mut after) = (fields(before)?, fields(after)?);
        before.retain(|name, old| after.get(name).is_none_or(|new| new.get() != old.get()));
        after.insert(
            "previous".to_owned(),
            serde_json::value::to_raw_value(&before)?,
        );
        Ok(after)
    };
    diff().map_err(|error: serde_json::Error| Error::Internal(error.to_string()))
}
