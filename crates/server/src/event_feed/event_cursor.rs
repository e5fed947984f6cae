//! Where a reader continues in the log of a tenant.

use perennial_domain::TenantId;

use crate::{
    app::App,
    events::log::{Epoch, LogHead},
    http::{
        pagination::{CursorSigner, SortKey},
        problem::{Code, Problem},
    },
};

/// The order of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventOrder {
    /// In the order of positions.
    Log,
    NewestFirst,
}

/// A position in one history of a tenant's log. It does not depend on filters, so a reader can change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventCursor {
    pub epoch: Epoch,
    /// The position after which the reader continues; in a list with the newest events first, the one before which it
    /// continues.
    pub position: i64,
}

impl SortKey for EventCursor {
    fn encode(&self) -> String {
        let Epoch(epoch) = self.epoch;
        format!("{} {}", epoch.simple(), self.position)
    }

    fn decode(text: &str) -> Option<Self> {
        let (epoch, position) = text.split_once(' ')?;
        Some(Self {
            epoch: Epoch(epoch.parse().ok()?),
            position: position.parse().ok()?,
        })
    }
}

impl EventCursor {
    /// Returns the text for the client, signed for its tenant.
    pub(super) fn to_text(self, app: &App, tenant: TenantId, order: EventOrder) -> String {
        signer(app, tenant, order).encode(&self)
    }

    pub(super) fn from_text(
        text: &str,
        app: &App,
        tenant: TenantId,
        order: EventOrder,
    ) -> Result<Self, Problem> {
        signer(app, tenant, order).decode(text)
    }

    /// Checks that the log continues after the cursor: it has the cursor's history, it is not shorter, and no event
    /// after the cursor has been removed.
    pub(super) fn check(self, log: LogHead) -> Result<(), Problem> {
        self.check_history(log)?;
        if self.position < log.removed_to {
            let detail = format!(
                "the events up to position {} were removed at the end of their retention, and this cursor is at \
                 position {}; read again without it to continue with the oldest event",
                log.removed_to, self.position
            );
            return Err(Problem::new(Code::EventsRemoved, detail));
        }
        Ok(())
    }

    /// Checks that the log has the cursor's history and is not shorter.
    pub(super) fn check_history(self, log: LogHead) -> Result<(), Problem> {
        if self.epoch != log.epoch || self.position > log.last_position {
            let detail = "the event log was restored from a backup, or lost its latest events in a failover, after this \
                          cursor was issued; read again without it and skip the events whose id you have processed";
            return Err(Problem::new(Code::CursorFromAnotherHistory, detail));
        }
        Ok(())
    }
}

fn signer(app: &App, tenant: TenantId, order: EventOrder) -> CursorSigner<'_> {
    let list = match order {
        EventOrder::Log => "GET /events",
        EventOrder::NewestFirst => "GET /events?sort=-position",
    };
    CursorSigner::new(&app.cursor_key, &[&list, &tenant])
}
