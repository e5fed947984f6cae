//! Reading columns back into the types they were written from.
//!
//! What is stored was checked on its way in. If it cannot be read, somebody else wrote it, and we say
//! so instead of guessing.
//!
//! Columns are asked for by name. To look for a name among twenty takes longer than to read what is there, so a reader
//! first looks at the column behind the one that it read last: whoever reads in the order of the statement finds it.

use std::{cell::Cell, fmt::Display, str::FromStr};

use perennial_domain::Money;
use tokio_postgres::{Row, types::FromSql};

use super::Error;

fn readable<T>(column: &str, read: Result<T, impl Display>) -> Result<T, Error> {
    read.map_err(|why| {
        Error::Failed(format!(
            "the column {column} holds what cannot be read: {why}"
        ))
    })
}

/// Reads one row.
pub struct Reader<'a> {
    row: &'a Row,
    next: Cell<usize>,
}

impl<'a> Reader<'a> {
    /// Of this row.
    pub fn of(row: &'a Row) -> Self {
        Self {
            row,
            next: Cell::new(0),
        }
    }

    /// What stands in a column.
    pub fn get<T: FromSql<'a>>(&self, column: &str) -> Result<T, Error> {
        let at = self.next.get();
        let next = self.row.columns().get(at);
        if next.is_some_and(|next| next.name() == column) {
            self.next.set(at + 1);
            return Ok(self.row.try_get(at)?);
        }
        let columns = self.row.columns().iter();
        let at = columns.take_while(|other| other.name() != column).count();
        self.next.set(at + 1);
        Ok(self.row.try_get(column)?)
    }

    /// A text, parsed.
    pub fn text<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T, Error> {
        readable(column, self.get::<&str>(column)?.parse())
    }

    /// A text that may be null, parsed.
    pub fn optional_text<T: FromStr<Err: Display>>(
        &self,
        column: &str,
    ) -> Result<Option<T>, Error> {
        let value: Option<&str> = self.get(column)?;
        readable(column, value.map(str::parse).transpose())
    }

    /// A list of texts, each parsed.
    pub fn texts<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Vec<T>, Error> {
        let values: Vec<&str> = self.get(column)?;
        readable(column, values.into_iter().map(str::parse).collect())
    }

    /// An integer with bounds.
    pub fn integer<T: TryFrom<i64, Error: Display>>(&self, column: &str) -> Result<T, Error> {
        let value: i32 = self.get(column)?;
        readable(column, T::try_from(i64::from(value)))
    }

    /// An amount in minor units; its currency stands in the column behind it.
    pub fn money(&self, column: &str) -> Result<Money, Error> {
        let minor_units = self.get(column)?;
        let currency = self.text("currency")?;
        checked(column, Money::of_minor_units(minor_units, currency))
    }
}

/// A value that is checked by a function of its own.
pub fn checked<T>(column: &str, value: Option<T>) -> Result<T, Error> {
    readable(column, value.ok_or("out of range"))
}
