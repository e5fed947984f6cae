//! Properties of a database: the table `instance`, the server's version and time, and the delay of
//! leased tasks.
//!
//! The table `instance` stores the mode, the clock offset and the check values of master keys. A check
//! value identifies a master key without revealing it.

use jiff::Timestamp;
use tokio_postgres::Row;

use super::{CellDatabase, Error, PooledConnection, Sql, Transaction};

static INIT_MODE: Sql = Sql::new("INSERT INTO instance (mode) VALUES ($1) ON CONFLICT DO NOTHING");
static MODE: Sql = Sql::new("SELECT mode FROM instance");

/// Stores the mode if the database has none, and returns the stored mode.
pub async fn get_or_init_mode(connection: &PooledConnection, mode: &str) -> Result<String, Error> {
    connection.query(&INIT_MODE, &[&mode]).await?;
    let row = connection.query_opt(&MODE, &[]).await?;
    let row = row.ok_or_else(|| Error::Internal("the table instance is empty".to_owned()))?;
    Ok(row.try_get(0)?)
}

static CLOCK_OFFSET: Sql = Sql::new("SELECT clock_ahead FROM instance");

/// Returns how far the billing clock is ahead of real time, in microseconds. Always 0 in live mode.
pub async fn clock_offset(home: &CellDatabase) -> Result<i64, Error> {
    let row = home.read(&CLOCK_OFFSET, &[]).await?;
    row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
}

static ADVANCE_CLOCK_OFFSET: Sql =
    Sql::new("UPDATE instance SET clock_ahead = greatest(clock_ahead, $1)");

/// Sets how far the billing clock is ahead of real time, in microseconds, unless it is further ahead.
pub async fn advance_clock_offset(tx: &Transaction<'_>, micros: i64) -> Result<(), Error> {
    tx.execute(&ADVANCE_CLOCK_OFFSET, &[&micros]).await?;
    Ok(())
}

static RESET_CLOCK_OFFSET: Sql = Sql::new("UPDATE instance SET clock_ahead = 0");

/// Sets the billing clock to real time.
pub async fn reset_clock_offset(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.execute(&RESET_CLOCK_OFFSET, &[]).await?;
    Ok(())
}

static SERVER_INFO: Sql = Sql::new(
    "SELECT current_setting('server_version_num')::integer, current_setting('server_version'), clock_timestamp()",
);

/// Returns PostgreSQL's version as a number, its version as text, and its current time.
pub async fn server_info(connection: &PooledConnection) -> Result<(i32, String, Timestamp), Error> {
    let row = connection.query_opt(&SERVER_INFO, &[]).await?;
    let row = row.ok_or_else(|| Error::Internal("the query returned no row".to_owned()))?;
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

static HAS_STATEMENT_TIMEOUT: Sql = Sql::new("SELECT current_setting('statement_timeout') <> '0'");

/// Returns whether the timeouts that the service sends when it connects are in effect. A connection
/// pooler may drop them.
pub async fn has_statement_timeout(connection: &PooledConnection) -> Result<bool, Error> {
    let row = connection.query_opt(&HAS_STATEMENT_TIMEOUT, &[]).await?;
    Ok(row.map_or(Ok(false), |row| row.try_get(0))?)
}

static MAX_TASK_DELAY: Sql = Sql::new(
    "SELECT extract(epoch FROM max(now() - next_run_at) FILTER (WHERE held_until IS NULL OR held_until < now()))::float8
     FROM task_leases WHERE task = ANY ($1)",
);

/// Returns for how many seconds the most overdue of these leased tasks has been due without a worker
/// running it. `None` if no worker has ever run one.
pub async fn max_task_delay(
    connection: &PooledConnection,
    tasks: &[&str],
) -> Result<Option<f64>, Error> {
    let row = connection.query_opt(&MAX_TASK_DELAY, &[&tasks]).await?;
    row.map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

static INIT_MASTER_KEY: Sql =
    Sql::new("UPDATE instance SET master_key_check = $1 WHERE master_key_check IS NULL");

/// Stores the check value of the master key if the database has none.
pub async fn init_master_key(connection: &PooledConnection, check: &[u8; 32]) -> Result<(), Error> {
    let check = check.as_slice();
    connection.query(&INIT_MASTER_KEY, &[&check]).await?;
    Ok(())
}

/// Which master key the values in a database need.
#[derive(Debug, Clone)]
pub struct MasterKeyState {
    /// The check value of the master key in use; `None` if none has been used yet.
    pub check: Option<Vec<u8>>,
    /// The check value of the replaced master key, until `perennial keys rewrap` has finished.
    pub previous_check: Option<Vec<u8>>,
}

fn read_master_key_state(row: Option<&Row>) -> Result<MasterKeyState, Error> {
    let row = row.ok_or_else(|| Error::Internal("the table instance is empty".to_owned()))?;
    Ok(MasterKeyState {
        check: row.try_get("master_key_check")?,
        previous_check: row.try_get("previous_master_key_check")?,
    })
}

static MASTER_KEY_STATE: Sql =
    Sql::new("SELECT master_key_check, previous_master_key_check FROM instance");

pub async fn master_key_state(connection: &PooledConnection) -> Result<MasterKeyState, Error> {
    let row = connection.query_opt(&MASTER_KEY_STATE, &[]).await?;
    read_master_key_state(row.as_ref())
}

/// Reads the state on a pipelined connection, for polling.
pub async fn poll_master_key_state(database: &CellDatabase) -> Result<MasterKeyState, Error> {
    let row = database.read(&MASTER_KEY_STATE, &[]).await?;
    read_master_key_state(row.as_ref())
}

static REPLACE_MASTER_KEY: Sql = Sql::new(
    "UPDATE instance SET previous_master_key_check = master_key_check, master_key_check = $1
     WHERE master_key_check IS DISTINCT FROM $1",
);

/// Puts the master key with this check value into use.
pub async fn replace_master_key(
    connection: &PooledConnection,
    check: &[u8; 32],
) -> Result<(), Error> {
    let check = check.as_slice();
    connection.query(&REPLACE_MASTER_KEY, &[&check]).await?;
    Ok(())
}

static FORGET_PREVIOUS_MASTER_KEY: Sql = Sql::new(
    "UPDATE instance SET previous_master_key_check = NULL WHERE previous_master_key_check IS NOT NULL",
);

/// Stores that no value in the database needs the replaced master key.
pub async fn forget_previous_master_key(connection: &PooledConnection) -> Result<(), Error> {
    connection.query(&FORGET_PREVIOUS_MASTER_KEY, &[]).await?;
    Ok(())
}
