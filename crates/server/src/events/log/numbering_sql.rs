//! The SQL of the sequencer.

use tokio_postgres::{Row, types::ToSql};

use super::table::number;
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

/// The number of events that receive their positions in one transaction at most.
pub(super) const MAX_PAGE: i64 = 20_000;

/// The channel of the notifications. A payload has the ids of the tenants whose logs have grown; an empty one means any.
pub const CHANNEL: &str = "event_log";

/// The stored state of the sequencer.
#[derive(Debug)]
pub(super) struct SequencerState {
    pub snapshot: String,
    pub last_seq: i64,
    pub copied_to_seq: i64,
    pub target_snapshot: Option<String>,
    pub paged_to_seq: Option<i64>,
    pub history: History,
    pub has_positions: bool,
}

/// Identifies a database and the history of its commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct History {
    /// Identifies the cluster.
    pub system_identifier: i64,
    /// Changes when a standby is promoted, and after a point-in-time recovery.
    pub timeline: i64,
    pub database_oid: i64,
    pub table_oid: i64,
}

impl History {
    fn from_row(row: &RowReader<'_>) -> Result<Self, Error> {
        Ok(Self {
            system_identifier: row.get("system_identifier")?,
            timeline: row.get("timeline")?,
            database_oid: row.get("database_oid")?,
            table_oid: row.get("table_oid")?,
        })
    }
}

static EXTEND_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = '60s'");
static LOCK_STATE: Sql = Sql::new(
    "SELECT snapshot::text, last_seq, copied_to_seq, target_snapshot::text, paged_to_seq, system_identifier, timeline,
        database_oid, table_oid,
        EXISTS (SELECT FROM event_log_tenants) AS has_positions
     FROM event_log_state FOR UPDATE",
);

/// Locks the state and returns it. Fails if another transaction has changed it since the snapshot of this one, so that
/// two sequencers cannot number the same events.
pub(super) async fn lock_state(tx: &Transaction<'_>) -> Result<SequencerState, Error> {
    tx.enqueue(&EXTEND_STATEMENT_TIMEOUT, &[]).await?;
    let rows = tx.query(&LOCK_STATE, &[]).await?;
    let row = RowReader::new(only_row(&rows)?);
    Ok(SequencerState {
        snapshot: row.get("snapshot")?,
        last_seq: row.get("last_seq")?,
        copied_to_seq: row.get("copied_to_seq")?,
        target_snapshot: row.get("target_snapshot")?,
        paged_to_seq: row.get("paged_to_seq")?,
        history: History::from_row(&row)?,
        has_positions: row.get("has_positions")?,
    })
}

fn only_row(rows: &[Row]) -> Result<&Row, Error> {
    rows.first()
        .ok_or_else(|| Error::Internal("a statement of the sequencer returned no row".to_owned()))
}

static CURRENT_SNAPSHOT: Sql = Sql::new("SELECT pg_current_snapshot()::text AS snapshot");
// The transactions of `$1` that were open, and those that started afterwards and are visible now. The upper bound excludes
// events that were copied from a cluster with higher transaction ids. The order makes the server read the index: EXISTS
// would make it expect a row at the start of the table.
static HAS_FRESH: Sql = Sql::new(
    "SELECT pg_current_snapshot()::text AS snapshot, coalesce((
            SELECT true FROM events WHERE seq > $2 AND xact >= pg_snapshot_xmax($1::text::pg_snapshot)
              AND xact < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xact LIMIT 1
        ), (
            SELECT true FROM events WHERE seq > $2 AND xact = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
            ORDER BY xact LIMIT 1
        ), false) AS has_fresh",
);

/// Returns the current snapshot, and whether events have become visible since `snapshot`.
///
/// Events are read in one snapshot that is older than the plan. A plan that is made while events move to another partition
/// does not contain that partition, and a newer snapshot would not contain them in the previous one.
pub(super) async fn has_fresh(
    connection: &mut PooledConnection,
    snapshot: &str,
    copied_to_seq: i64,
) -> Result<(String, bool), Error> {
    let rows = connection.query(&CURRENT_SNAPSHOT, &[]).await?;
    let current: String = only_row(&rows)?.try_get("snapshot")?;
    if current == snapshot {
        return Ok((current, false));
    }
    let tx = connection.begin_snapshot().await?;
    let rows = tx.query(&HAS_FRESH, &[&snapshot, &copied_to_seq]).await?;
    tx.commit().await?;
    let row = only_row(&rows)?;
    Ok((row.try_get("snapshot")?, row.try_get("has_fresh")?))
}

static NUMBER_FRESH: Sql = Sql::new(number!(
    "SELECT tenant_id, at, id, kind, subject_id, seq FROM (
        SELECT tenant_id, at, id, kind, subject_id, seq, xact FROM events
        WHERE seq > $2 AND xact >= pg_snapshot_xmax($1::text::pg_snapshot)
          AND xact < pg_snapshot_xmax(pg_current_snapshot())
        UNION ALL
        SELECT tenant_id, at, id, kind, subject_id, seq, xact FROM events
        WHERE seq > $2 AND xact = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
     ) AS visible
     WHERE $3::text IS NULL OR pg_visible_in_snapshot(xact, $3::text::pg_snapshot)
     ORDER BY seq LIMIT $4"
));

/// The result of numbering a page of events.
pub(super) struct NumberedPage {
    pub events: i64,
    /// The highest `seq` of the page.
    pub last_seq: Option<i64>,
    /// The snapshot of the transaction.
    pub snapshot: String,
}

impl NumberedPage {
    pub(super) fn from_rows(rows: &[Row]) -> Result<Self, Error> {
        let row = only_row(rows)?;
        Ok(Self {
            events: row.try_get("numbered")?,
            last_seq: row.try_get("last_seq")?,
            snapshot: row.try_get("snapshot")?,
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.events >= MAX_PAGE
    }
}

/// Gives positions to a page of events that became visible since the stored snapshot.
pub(super) async fn number_fresh(
    tx: &Transaction<'_>,
    state: &SequencerState,
) -> Result<NumberedPage, Error> {
    let after = state.copied_to_seq.max(state.paged_to_seq.unwrap_or(0));
    let params: [&(dyn ToSql + Sync); 4] =
        [&state.snapshot, &after, &state.target_snapshot, &MAX_PAGE];
    NumberedPage::from_rows(&tx.query(&NUMBER_FRESH, &params).await?)
}

static SAVE_CAUGHT_UP: Sql = Sql::new(
    "UPDATE event_log_state SET snapshot = pg_current_snapshot(), last_seq = (SELECT last_value FROM events_seq),
        caught_up_at = now()",
);

/// Stores that all events that this transaction sees have positions.
pub(super) async fn save_caught_up(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.enqueue(&SAVE_CAUGHT_UP, &[]).await
}

static SAVE_PAGE: Sql = Sql::new(
    "UPDATE event_log_state SET target_snapshot = coalesce(target_snapshot, pg_current_snapshot()), paged_to_seq = $1",
);

/// Stores that a page has positions. The first page fixes the snapshot up to which the following ones read.
pub(super) async fn save_page(tx: &Transaction<'_>, to_seq: Option<i64>) -> Result<(), Error> {
    tx.enqueue(&SAVE_PAGE, &[&to_seq]).await
}

static SAVE_LAST_PAGE: Sql = Sql::new(
    "UPDATE event_log_state SET snapshot = target_snapshot, target_snapshot = NULL, paged_to_seq = NULL",
);

/// Stores that the last page has positions.
pub(super) async fn save_last_page(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.enqueue(&SAVE_LAST_PAGE, &[]).await
}

static CONFIRM_CAUGHT_UP: Sql = Sql::new("UPDATE event_log_state SET caught_up_at = now()");

/// Stores that no event waits for a position.
pub(super) async fn confirm_caught_up(connection: &PooledConnection) -> Result<(), Error> {
    connection.query(&CONFIRM_CAUGHT_UP, &[]).await?;
    Ok(())
}

static HISTORY: Sql = Sql::new(
    "SELECT system_identifier, timeline, database_oid, table_oid FROM event_log_history()",
);

/// Returns the history of the database that the transaction uses.
pub(super) async fn history(tx: &Transaction<'_>) -> Result<History, Error> {
    let rows = tx.query(&HISTORY, &[]).await?;
    History::from_row(&RowReader::new(only_row(&rows)?))
}

static SAVE_HISTORY: Sql = Sql::new(
    "UPDATE event_log_state SET system_identifier = $1, timeline = $2, database_oid = $3, table_oid = $4,
        epoch = CASE WHEN $5 THEN gen_random_uuid() ELSE epoch END",
);

/// Stores the history, with a new epoch if `is_new_epoch`.
pub(super) async fn save_history(
    tx: &Transaction<'_>,
    history: History,
    is_new_epoch: bool,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &history.system_identifier,
        &history.timeline,
        &history.database_oid,
        &history.table_oid,
        &is_new_epoch,
    ];
    tx.enqueue(&SAVE_HISTORY, &params).await
}

static SECONDS_BEHIND: Sql = Sql::new(
    "SELECT CASE WHEN coalesce((
            SELECT true FROM events WHERE seq > copied_to_seq AND xact >= pg_snapshot_xmax(snapshot)
              AND xact < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xact LIMIT 1
        ), (
            SELECT true FROM events WHERE seq > copied_to_seq AND xact = ANY (ARRAY(SELECT pg_snapshot_xip(snapshot)))
            ORDER BY xact LIMIT 1
        ), false) THEN extract(epoch FROM now() - caught_up_at)::float8 ELSE 0 END
     FROM event_log_state",
);

/// Returns for how many seconds events have been waiting for a position, or 0 if none waits.
pub async fn seconds_behind(connection: &PooledConnection) -> Result<f64, Error> {
    let rows = connection.query(&SECONDS_BEHIND, &[]).await?;
    Ok(only_row(&rows)?.try_get(0)?)
}
