//! Properties of a database: the table `instance`, the server's version and time, and the delay of
//! leased tasks.
//!
//! The table `instance` stores the mode, the clock offset and the master key check. The check
//! identifies the master key without revealing it.

use jiff::Timestamp;

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

static SET_CLOCK_OFFSET: Sql = Sql::new("UPDATE instance SET clock_ahead = $1");

/// Sets how far the billing clock is ahead of real time, in microseconds.
pub async fn set_clock_offset(tx: &Transaction<'_>, micros: i64) -> Result<(), Error> {
    tx.execute(&SET_CLOCK_OFFSET, &[&micros]).await?;
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

static ACCEPTS_MASTER_KEY: Sql =
    Sql::new("SELECT master_key_check IS NULL OR master_key_check = $1 FROM instance");

/// Returns whether the database has this master key check or none.
pub async fn accepts_master_key(
    connection: &PooledConnection,
    check: &[u8; 32],
) -> Result<bool, Error> {
    let check = check.as_slice();
    let row = connection.query_opt(&ACCEPTS_MASTER_KEY, &[&check]).await?;
    Ok(row.map_or(Ok(true), |row| row.try_get(0))?)
}

static INIT_MASTER_KEY_CHECK: Sql =
    Sql::new("UPDATE instance SET master_key_check = $1 WHERE master_key_check IS NULL");
static VERIFY_MASTER_KEY: Sql = Sql::new("SELECT master_key_check = $1 FROM instance");

/// Stores the master key check if the database has none, and returns whether the stored one matches.
pub async fn verify_master_key(
    connection: &PooledConnection,
    check: &[u8; 32],
) -> Result<bool, Error> {
    let check = check.as_slice();
    connection.query(&INIT_MASTER_KEY_CHECK, &[&check]).await?;
    let row = connection.query_opt(&VERIFY_MASTER_KEY, &[&check]).await?;
    Ok(row.map_or(Ok(false), |row| row.try_get(0))?)
}
