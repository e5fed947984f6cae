//! Changes made without a calling client: from the command line, or by the service itself.

use jiff::Timestamp;
use perennial_domain::{EventKind, TenantId};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    clock::IdGenerator,
    db::{Error, Transaction},
    events::{self, Actor, Event},
};

/// The context of a change without a calling client: the id generator, the current time and, for a
/// command, its operator.
#[derive(Debug, Clone, Copy)]
pub struct SystemContext {
    pub ids: IdGenerator,
    pub now: Timestamp,
    /// See [`Actor::operator`].
    pub operator: Option<&'static str>,
}

impl SystemContext {
    /// Returns the author of changes, as recorded in events.
    pub fn actor(self) -> Actor {
        Actor {
            operator: self.operator,
            ..Actor::default()
        }
    }

    /// Records an event for a change to a tenant or one of its clients.
    pub async fn record<T: Serialize>(
        self,
        tx: &Transaction<'_>,
        tenant: TenantId,
        subject: Uuid,
        kind: EventKind,
        data: &T,
    ) -> Result<(), Error> {
        let event = Event {
            id: self.ids.generate(self.now),
            at: self.now,
            tenant,
            kind,
            subject,
            actor: self.actor(),
            data,
        };
        events::record(tx, &event).await
    }
}
