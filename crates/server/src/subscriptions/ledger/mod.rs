//! The ledger of a managed subscription: an append-only list of entries.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /subscriptions/{id}/ledger` | `list.rs` | clients with `payments:read`; users see their own |

use perennial_domain::{LedgerEntry, Subscription, TenantId};

use crate::{clock::IdGenerator, events::Actor};

pub mod list;
pub mod table;
mod view;

pub use list::ENTRIES;
pub use view::LedgerEntryView;

/// Returns the rows of entries that a change of `subscription` posted.
pub fn rows(
    tenant: TenantId,
    subscription: &Subscription,
    entries: &[LedgerEntry],
    ids: IdGenerator,
    actor: &Actor,
) -> Vec<table::NewRow> {
    let row = |entry: &LedgerEntry| table::NewRow {
        tenant,
        subscription: subscription.id,
        stored: table::StoredEntry {
            id: ids.generate(entry.at),
            currency: subscription.plan.price.currency(),
            entry: entry.clone(),
            client: actor.client,
            user: actor.user,
            request_id: actor.request_id.clone(),
        },
    };
    entries.iter().map(row).collect()
}
