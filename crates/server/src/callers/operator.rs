//! Somebody at the command line, or the service itself: changes the directory for no caller.

use jiff::Timestamp;
use perennial_domain::{EventKind, TenantId};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    clock::Ids,
    db::{Error, Transaction},
    events::{self, By, Event},
};

/// Whoever changes the directory, now.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    /// New identifiers.
    pub ids: Ids,
    /// The instant of the change.
    pub now: Timestamp,
}

impl Operator {
    /// Records what was done to a tenant or a client of it.
    pub async fn record<T: Serialize>(
        self,
        tx: &Transaction<'_>,
        tenant: TenantId,
        subject: Uuid,
        kind: EventKind,
        data: &T,
    ) -> Result<(), Error> {
        let event = Event {
            id: self.ids.next(self.now),
            at: self.now,
            tenant,
            kind,
            subject,
            by: By::default(),
            data,
        };
        events::record(tx, &event).await
    }
}
