//! The table `instance`: what a database was set up as.

use jiff::Timestamp;

use super::{Connection, Engine, Error, Sql, Transaction};

static STAMP: Sql = Sql::new("INSERT INTO instance (mode) VALUES ($1) ON CONFLICT DO NOTHING");
static MODE: Sql = Sql::new("SELECT mode FROM instance");

/// Stamps the mode into a database that has none, and answers the one that it has.
pub async fn stamp(connection: &Connection, mode: &str) -> Result<String, Error> {
    connection.query(&STAMP, &[&mode]).await?;
    let rows = connection.query(&MODE, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Error::Failed("the table instance is empty".to_owned()))?;
    Ok(row.try_get(0)?)
}

static CLOCK_AHEAD: Sql = Sql::new("SELECT clock_ahead FROM instance");

/// By how many microseconds billing time is ahead of the real one; 0 but in a sandbox.
pub async fn clock_ahead(home: &Engine) -> Result<i64, Error> {
    let row = home.read(&CLOCK_AHEAD, &[]).await?;
    row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
}

static SET_CLOCK_AHEAD: Sql = Sql::new("UPDATE instance SET clock_ahead = $1");

/// Moves billing time.
pub async fn set_clock_ahead(tx: &Transaction<'_>, micros: i64) -> Result<(), Error> {
    tx.execute(&SET_CLOCK_AHEAD, &[&micros]).await?;
    Ok(())
}

static SERVER: Sql = Sql::new(
    "SELECT current_setting('server_version_num')::integer, current_setting('server_version'), clock_timestamp()",
);

/// Which PostgreSQL it is, as a number and as it calls itself, and what time it is there.
pub async fn server(connection: &Connection) -> Result<(i32, String, Timestamp), Error> {
    let rows = connection.query(&SERVER, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Error::Failed("no answer".to_owned()))?;
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

static OVERDUE: Sql = Sql::new(
    "SELECT extract(epoch FROM max(now() - next_run_at) FILTER (WHERE held_until IS NULL OR held_until < now()))::float8
     FROM task_leases",
);

/// For how many seconds the work of a task has waited for somebody to take it up; `None` if nobody ever has.
pub async fn overdue(connection: &Connection) -> Result<Option<f64>, Error> {
    let rows = connection.query(&OVERDUE, &[]).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

static KNOWS: Sql =
    Sql::new("SELECT master_key_check IS NULL OR master_key_check = $1 FROM instance");

/// Whether the database was set up with the master key of this check value, or with none yet.
pub async fn knows(connection: &Connection, check: &[u8; 32]) -> Result<bool, Error> {
    let rows = connection.query(&KNOWS, &[&check.as_slice()]).await?;
    Ok(rows.first().map_or(Ok(true), |row| row.try_get(0))?)
}

static LEARN: Sql =
    Sql::new("UPDATE instance SET master_key_check = $1 WHERE master_key_check IS NULL");
static RECOGNISE: Sql = Sql::new("SELECT master_key_check = $1 FROM instance");

/// Whether the database was set up with the master key of this check value; learns it if it has
/// seen none.
pub async fn recognise(connection: &Connection, check: &[u8; 32]) -> Result<bool, Error> {
    let check = check.as_slice();
    connection.query(&LEARN, &[&check]).await?;
    let rows = connection.query(&RECOGNISE, &[&check]).await?;
    Ok(rows.first().map_or(Ok(false), |row| row.try_get(0))?)
}
