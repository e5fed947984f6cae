//! Events: one row per change of state, written in the transaction that makes the change.
//!
//! So there is no change without its event and no event without its change, whatever is killed or
//! lost. They are the audit trail (who, when, by which request, what) and the source of what is told
//! to others. An event never carries an e-mail address or anything that could be used as a token.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{ClientId, EventId, EventKind, Id, TenantId, UserId};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::db::{Connection, Error, Transaction};

pub mod retention;
mod table;

/// Who made a change, as far as there was somebody: background work and the command line act for
/// nobody.
#[derive(Debug, Clone, Default)]
pub struct By {
    /// The calling application.
    pub client: Option<ClientId>,
    /// The end user on whose behalf it called.
    pub user: Option<UserId>,
    /// The request.
    pub request_id: Option<String>,
}

/// A change of state.
#[derive(Debug)]
pub struct Event<'a, T> {
    /// Its own identifier.
    pub id: EventId,
    /// When it happened.
    pub at: Timestamp,
    /// Whose data was changed.
    pub tenant: TenantId,
    /// What happened.
    pub kind: EventKind,
    /// To what: the id of a plan, a client, ….
    pub subject: Uuid,
    /// Who did it.
    pub by: By,
    /// What it looks like now.
    pub data: &'a T,
}

/// What an update's event carries: the record as it now is, and under `previous` the fields that
/// were otherwise before.
pub fn changed<T: Serialize>(before: &T, after: &T) -> Result<impl Serialize + use<T>, Error> {
    type Fields = BTreeMap<String, Box<RawValue>>;
    // As text, so that amounts stay as exact as they are in the answer.
    let fields = |record: &T| -> serde_json::Result<Fields> {
        serde_json::from_str(&serde_json::to_string(record)?)
    };
    let read = || {
        let (mut before, mut after) = (fields(before)?, fields(after)?);
        before.retain(|name, old| after.get(name).is_none_or(|new| new.get() != old.get()));
        after.insert(
            "previous".to_owned(),
            serde_json::value::to_raw_value(&before)?,
        );
        Ok(after)
    };
    read().map_err(|error: serde_json::Error| Error::Failed(error.to_string()))
}

/// A change that was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub kind: String,
    /// What it looked like then.
    pub data: serde_json::Value,
}

/// What happened to several things, oldest first; at one instant, in the order in which they are given.
pub async fn of_subjects(
    connection: &Connection,
    tenant: TenantId,
    subjects: &[Uuid],
) -> Result<Vec<Recorded>, Error> {
    table::of_subjects(connection, tenant.uuid(), subjects).await
}

/// How many changes of each kind there were in some tenants' data after one instant and until another.
pub async fn count(
    connection: &Connection,
    tenants: &[TenantId],
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(String, i64)>, Error> {
    let tenants: Vec<Uuid> = tenants.iter().map(|tenant| tenant.uuid()).collect();
    table::count(connection, &tenants, from, to).await
}

/// One of many changes of one kind.
#[derive(Debug)]
pub struct Change {
    /// The event's own identifier.
    pub id: EventId,
    /// What was changed.
    pub subject: Uuid,
    /// What it looks like now.
    pub data: serde_json::Value,
}

/// Records many changes that somebody made at once, in one statement.
pub async fn record_all(
    tx: &Transaction<'_>,
    tenant: TenantId,
    kind: EventKind,
    by: &By,
    at: Timestamp,
    changes: &[Change],
) -> Result<(), Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = changes.iter().map(|change| change.id.uuid()).collect();
    let subjects: Vec<Uuid> = changes.iter().map(|change| change.subject).collect();
    let data: Vec<String> = changes
        .iter()
        .map(|change| change.data.to_string())
        .collect();
    let common = table::Common {
        tenant_id: tenant.uuid(),
        at,
        kind: kind.as_str(),
        client_id: by.client.map(Id::uuid),
        user_id: by.user.map(Id::uuid),
        request_id: by.request_id.as_deref(),
    };
    table::insert_all(tx, &common, &ids, &subjects, &data).await
}

/// Records what happened by itself, to anybody's things, in one statement.
pub async fn record_by_itself<T: Serialize>(
    tx: &Transaction<'_>,
    events: &[Event<'_, T>],
) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let mut rows = table::Rows::default();
    for event in events {
        rows.tenants.push(event.tenant.uuid());
        rows.instants.push(event.at);
        rows.ids.push(event.id.uuid());
        rows.kinds.push(event.kind.as_str());
        rows.subjects.push(event.subject);
        let data = serde_json::to_string(event.data);
        rows.data
            .push(data.map_err(|error| Error::Failed(error.to_string()))?);
    }
    table::insert_rows(tx, &rows).await
}

/// Records a change in the transaction that makes it.
pub async fn record<T: Serialize>(tx: &Transaction<'_>, event: &Event<'_, T>) -> Result<(), Error> {
    let data =
        serde_json::to_string(event.data).map_err(|error| Error::Failed(error.to_string()))?;
    let row = table::Row {
        tenant_id: event.tenant.uuid(),
        at: event.at,
        id: event.id.uuid(),
        kind: event.kind.as_str(),
        subject_id: event.subject,
        client_id: event.by.client.map(Id::uuid),
        user_id: event.by.user.map(Id::uuid),
        request_id: event.by.request_id.as_deref(),
        data: &data,
    };
    table::insert(tx, &row).await
}
