//! The SQL that reads the states in the events of a database that was copied from another cluster.
//!
//! Each cluster has its own transaction ids, so the stored snapshot says nothing about transactions of this one. The
//! statements read all events, once per copy.

use crate::db::{Error, Sql, Transaction};

static IS_COPIED: Sql = Sql::new(
    "SELECT installation.system_identifier <> cluster.system_identifier
     FROM report_installation AS installation, pg_control_system() AS cluster",
);

/// Returns whether the database was copied from another cluster, and [`take_copied`] has not run since then.
pub(super) async fn is_copied(tx: &Transaction<'_>) -> Result<bool, Error> {
    let rows = tx.query(&IS_COPIED, &[]).await?;
    rows.first().map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

static DISABLE_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = 0");
static LOCK_EVENTS: Sql = Sql::new("SELECT events_lock()");
static ADVANCE_SEQUENCE: Sql = Sql::new("SELECT events_advance_sequence()");
// The roll-up has read a state exactly if one of its tables has it.
static TAKE_COPIED: Sql = Sql::new(
    "INSERT INTO pending_revenue_changes (tenant_id, user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status,
        basis, suspended, imported, arr_minor)
     SELECT tenant_id, state[1]::uuid, seq, at, subject_id, state[2]::uuid, state[3], state[4], state[5], state[6],
        state[7]::boolean, state[8]::boolean, state[9]::numeric
     FROM events AS event, string_to_array(revenue_state, ' ') AS state
     WHERE revenue_state IS NOT NULL AND NOT EXISTS (
        SELECT FROM revenue_changes AS change
        WHERE change.tenant_id = event.tenant_id AND change.user_id = state[1]::uuid AND change.seq = event.seq)
       AND NOT EXISTS (
        SELECT FROM pending_revenue_changes AS change WHERE change.tenant_id = event.tenant_id AND change.seq = event.seq)",
);
static SAVE_COPIED: Sql = Sql::new(
    "UPDATE report_installation SET snapshot = pg_current_snapshot(), copied_to_seq = (SELECT last_value FROM events_seq),
        system_identifier = (SELECT cluster.system_identifier FROM pg_control_system() AS cluster)",
);

/// Moves the states that were not read, in all events, to the pending ones. New events wait until the end of the
/// transaction.
pub(super) async fn take_copied(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.enqueue(&DISABLE_STATEMENT_TIMEOUT, &[]).await?;
    tx.query(&LOCK_EVENTS, &[]).await?;
    tx.query(&ADVANCE_SEQUENCE, &[]).await?;
    tx.execute(&TAKE_COPIED, &[]).await?;
    tx.execute(&SAVE_COPIED, &[]).await?;
    Ok(())
}
