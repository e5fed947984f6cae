//! The SQL that numbers the events of a database that was copied from another cluster.
//!
//! Each cluster has its own transaction ids, so the stored snapshot says nothing about transactions of this one. The
//! statement reads all events, once per copy.

use tokio_postgres::types::ToSql;

use super::{
    numbering_sql::{NumberedPage, SequencerState},
    table::number,
};
use crate::db::{Error, Sql, Transaction};

static DISABLE_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = 0");
static LOCK_EVENTS: Sql = Sql::new("SELECT events_lock()");
static ADVANCE_SEQUENCE: Sql = Sql::new("SELECT events_advance_sequence()");
static NUMBER_COPIED: Sql = Sql::new(number!(
    "SELECT tenant_id, at, id, kind, subject_id, seq FROM events
     WHERE xact IS NOT NULL AND seq > $1
       AND (seq > $2 OR NOT pg_visible_in_snapshot(xact, $3::text::pg_snapshot))
       AND NOT EXISTS (
        SELECT FROM event_log WHERE event_log.tenant_id = events.tenant_id AND event_log.event_id = events.id)"
));
static SAVE_COPIED: Sql = Sql::new(
    "UPDATE event_log_state SET snapshot = pg_current_snapshot(), target_snapshot = NULL, paged_to_seq = NULL,
        last_seq = (SELECT last_value FROM events_seq), copied_to_seq = (SELECT last_value FROM events_seq)",
);

/// Gives positions to all events that have none, and stores that all events up to now have positions. New events wait
/// until the end of the transaction.
pub(super) async fn number_copied(
    tx: &Transaction<'_>,
    state: &SequencerState,
) -> Result<i64, Error> {
    tx.enqueue(&DISABLE_STATEMENT_TIMEOUT, &[]).await?;
    tx.query(&LOCK_EVENTS, &[]).await?;
    tx.query(&ADVANCE_SEQUENCE, &[]).await?;
    let params: [&(dyn ToSql + Sync); 3] = [&state.copied_to_seq, &state.last_seq, &state.snapshot];
    let page = NumberedPage::from_rows(&tx.query(&NUMBER_COPIED, &params).await?)?;
    tx.execute(&SAVE_COPIED, &[]).await?;
    Ok(page.events)
}
