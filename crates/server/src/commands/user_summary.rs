//! What `perennial user show --json` prints.

use super::event_lines::MAX_EVENTS;
use crate::{
    db::Databases,
    events,
    timeline::{ActorNames, EventAuthor},
    user_export::{EventJson, UserExport, UserRecord},
};

impl UserRecord {
    /// Exports the user like [`Self::summary`], with the latest events, oldest first.
    pub async fn summary_with_events(&self, db: &Databases) -> anyhow::Result<UserExport> {
        let (connection, tenant) = (&self.connection, self.tenant.id);
        let events = events::list_for_subjects(connection, tenant, &self.event_subjects()).await?;
        let omitted = events.len().saturating_sub(MAX_EVENTS);
        let names = ActorNames::load(db, tenant, &events).await?;
        let events = events.into_iter().skip(omitted).map(|event| {
            let author = EventAuthor::new(&names, &event);
            EventJson::new(event, Some(author))
        });
        let mut summary = self.summary();
        summary.events = Some(events.collect());
        Ok(summary)
    }
}
