//! Prints the events of some records, one line each, and who recorded them.

use perennial_domain::TenantId;
use uuid::Uuid;

use super::{explain::date, terminal::print_wrapped};
use crate::{
    db::{Databases, PooledConnection},
    events,
    timeline::{ActorNames, EventAuthor, summarize},
};

/// How many of the latest events are printed.
pub const MAX_EVENTS: usize = 25;

/// Prints the latest events of the given records, oldest first.
pub async fn print(
    db: &Databases,
    connection: &PooledConnection,
    tenant: TenantId,
    subjects: &[Uuid],
) -> anyhow::Result<()> {
    let events = events::list_for_subjects(connection, tenant, subjects).await?;
    let names = ActorNames::load(db, tenant, &events).await?;
    if !events.is_empty() {
        println!("events (UTC):");
    }
    let omitted = events.len().saturating_sub(MAX_EVENTS);
    if omitted > 0 {
        println!("  … {omitted} earlier (all: perennial user export)");
    }
    for event in events.iter().skip(omitted) {
        let at = date(event.at);
        let author = EventAuthor::new(&names, event);
        let mut line = format!("  {at}  {:24} {}", event.kind, summarize(event));
        line.truncate(line.trim_end().len());
        print_wrapped(&format!("{line}  {author}"));
    }
    Ok(())
}
