//! Reading columns back into the types they were written from.
//!
//! What is stored was checked on its way in. If it cannot be read, somebody else wrote it, and we say
//! so instead of guessing.

use std::{fmt::Display, str::FromStr};

use tokio_postgres::Row;

use super::Error;

fn readable<T>(column: &str, read: Result<T, impl Display>) -> Result<T, Error> {
    read.map_err(|why| {
        Error::Failed(format!(
            "the column {column} holds what cannot be read: {why}"
        ))
    })
}

/// A text, parsed.
pub fn text<T: FromStr<Err: Display>>(row: &Row, column: &str) -> Result<T, Error> {
    readable(column, row.try_get::<_, &str>(column)?.parse())
}

/// A text that may be null, parsed.
pub fn optional_text<T: FromStr<Err: Display>>(
    row: &Row,
    column: &str,
) -> Result<Option<T>, Error> {
    let value: Option<&str> = row.try_get(column)?;
    readable(column, value.map(str::parse).transpose())
}

/// A list of texts, each parsed.
pub fn texts<T: FromStr<Err: Display>>(row: &Row, column: &str) -> Result<Vec<T>, Error> {
    let values: Vec<&str> = row.try_get(column)?;
    readable(column, values.into_iter().map(str::parse).collect())
}

/// An integer with bounds.
pub fn integer<T: TryFrom<i64, Error: Display>>(row: &Row, column: &str) -> Result<T, Error> {
    let value: i32 = row.try_get(column)?;
    readable(column, T::try_from(i64::from(value)))
}

/// A value that is checked by a function of its own.
pub fn checked<T>(column: &str, value: Option<T>) -> Result<T, Error> {
    readable(column, value.ok_or("out of range"))
}
