//! What plans, subscriptions and payments share: locking a record for an update, "not found" and
//! duplicate errors, soft delete, and recording events.
//!
//! Depends on the HTTP toolkit, authentication and the event log, but on no feature.

use std::fmt::Display;

use jiff::Timestamp;
use perennial_domain::{EventKind, ExternalId, Id, TenantId};
use serde::Serialize;

use crate::{
    auth::{Caller, Tenant},
    clock::{Clock, IdGenerator},
    db::{CellDatabase, Error, Sql, Transaction},
    events::{self, Actor, Event},
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
};

/// A kind of record that clients create, read, update and delete through the API.
pub trait Record {
    type Id: Id + Display;
    type View: Serialize;

    /// The singular noun in error messages.
    const NOUN: &'static str;
    /// The field in the path that identifies a record.
    const KEY: &'static str;
    const NOT_FOUND: Code;
    const DELETED: EventKind;
    /// Sets `deleted_at`. Parameters: tenant, id, time.
    const SOFT_DELETE: &'static Sql;

    fn id(&self) -> Self::Id;
    fn updated_at(&self) -> Timestamp;
    /// Returns the JSON representation at `now`.
    fn view(&self, now: Timestamp) -> Self::View;
}

/// A record that may also have a payment provider's id, unique within the tenant.
pub trait ExternalRecord: Record {
    /// The request field with the payment provider's id.
    const EXTERNAL_ID: &'static str;
    /// The name of the unique constraint.
    const EXTERNAL_ID_UNIQUE: &'static str;
    /// Selects the record's id. Parameters: tenant, external id.
    const FIND_BY_EXTERNAL_ID: &'static Sql;
}

/// Returns the 404 for a key that is malformed, unknown, deleted, or of another user's record.
pub fn not_found<R: Record>(key: impl Display) -> Problem {
    let detail = format!("no {} has this {}: {key}", R::NOUN, R::KEY);
    Problem::new(R::NOT_FOUND, detail)
}

/// A record locked until the end of the transaction.
pub struct Locked<R: Record> {
    pub record: R,
    /// The representation that GET returns.
    pub view: R::View,
    /// The time of the change. It is read under the lock, so the order of events is the order of
    /// changes.
    pub now: Timestamp,
}

impl<R: Record> Locked<R> {
    /// Checks that the locked row exists and matches `If-Match`.
    pub fn new(
        row: Option<R>,
        key: impl Display,
        clock: Clock,
        if_match: &IfMatch,
    ) -> Result<Self, Problem> {
        let record = row.ok_or_else(|| not_found::<R>(key))?;
        let now = clock.now_after(record.updated_at());
        let view = record.view(now);
        if_match.check(&view)?;
        Ok(Self { record, view, now })
    }
}

/// Where a change comes from: its tenant, who makes it, and the sources of ids and times.
pub struct ChangeOrigin<'a> {
    pub tenant: &'a Tenant,
    pub actor: Actor,
    pub ids: IdGenerator,
    pub clock: Clock,
}

impl<'a> ChangeOrigin<'a> {
    /// Creates the origin of a change that an API request makes.
    pub fn new<P>(caller: &'a Caller<P>, ids: IdGenerator, clock: Clock) -> Self {
        Self {
            tenant: caller.tenant(),
            actor: caller.actor(),
            ids,
            clock,
        }
    }

    /// Returns the context of a change at `now` in a transaction.
    pub fn context<'t>(&self, now: Timestamp, tx: &'t Transaction<'t>) -> ChangeContext<'t> {
        ChangeContext {
            tenant: self.tenant.id,
            actor: self.actor.clone(),
            ids: self.ids,
            now,
            tx,
        }
    }
}

/// The transaction of a change and what its events need.
pub struct ChangeContext<'a> {
    pub tenant: TenantId,
    pub actor: Actor,
    pub ids: IdGenerator,
    /// The time of the change.
    pub now: Timestamp,
    pub tx: &'a Transaction<'a>,
}

impl<'a> ChangeContext<'a> {
    /// Creates the context of a change that an API request makes.
    pub fn new<P>(
        caller: &Caller<P>,
        ids: IdGenerator,
        now: Timestamp,
        tx: &'a Transaction<'a>,
    ) -> Self {
        Self {
            tenant: caller.tenant().id,
            actor: caller.actor(),
            ids,
            now,
            tx,
        }
    }

    /// Records an event at `now`.
    pub async fn record_event(
        &self,
        kind: EventKind,
        subject: impl Id,
        data: &impl Serialize,
    ) -> Result<(), Error> {
        self.record_event_at(self.now, kind, subject, data).await
    }

    /// Records an event at another time than the change's.
    pub async fn record_event_at(
        &self,
        at: Timestamp,
        kind: EventKind,
        subject: impl Id,
        data: &impl Serialize,
    ) -> Result<(), Error> {
        let event = self.event(at, kind, subject, data);
        events::record(self.tx, &event).await
    }

    /// Returns an event of this change.
    pub fn event<'d, T>(
        &self,
        at: Timestamp,
        kind: EventKind,
        subject: impl Id,
        data: &'d T,
    ) -> Event<'d, T> {
        Event {
            id: self.ids.generate(at),
            at,
            tenant: self.tenant,
            kind,
            subject: subject.uuid(),
            actor: self.actor.clone(),
            data,
        }
    }

    /// Marks a locked record as deleted and records the event.
    pub async fn soft_delete<R: Record>(&self, record: &R, view: &R::View) -> Result<(), Error> {
        self.soft_delete_with(record, view).await
    }

    /// Marks a locked record as deleted and records the event with other data than the record's representation.
    pub async fn soft_delete_with<R: Record>(
        &self,
        record: &R,
        data: &impl Serialize,
    ) -> Result<(), Error> {
        let id = record.id();
        self.tx
            .enqueue(
                R::SOFT_DELETE,
                &[&self.tenant.uuid(), &id.uuid(), &self.now],
            )
            .await?;
        self.record_event(R::DELETED, id, data).await
    }
}

/// Returns the 409 for an external id that another record has, with that record's id.
pub async fn duplicate_external_id<R: ExternalRecord>(
    database: &CellDatabase,
    tenant: TenantId,
    external_id: Option<&ExternalId>,
) -> Result<Problem, Error> {
    let existing = match external_id {
        Some(external_id) => {
            let sql = R::FIND_BY_EXTERNAL_ID;
            let row = database
                .read(sql, &[&tenant.uuid(), &external_id.as_str()])
                .await?;
            row.map(|row| row.try_get("id").map(R::Id::new))
                .transpose()?
        }
        None => None,
    };
    let detail = format!("another {} has this {}", R::NOUN, R::EXTERNAL_ID);
    Ok(Problem::new(Code::DuplicateExternalId, detail).with_existing_id(existing))
}

/// Commits an update. Returns the 409 for a duplicate external id, because a deferred UPDATE may fail
/// only at the commit.
pub async fn commit_update<R: ExternalRecord>(
    tx: Transaction<'_>,
    database: &CellDatabase,
    tenant: TenantId,
    external_id: Option<&ExternalId>,
) -> Result<(), Problem> {
    match tx.commit().await {
        Err(error) if error.constraint() == Some(R::EXTERNAL_ID_UNIQUE) => {
            Err(duplicate_external_id::<R>(database, tenant, external_id).await?)
        }
        committed => Ok(committed?),
    }
}
