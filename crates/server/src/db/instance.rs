//! The table `instance`: what a database was set up as.

use super::{Connection, Error, Sql};

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
