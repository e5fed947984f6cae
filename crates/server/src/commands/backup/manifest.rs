//! The manifest of a backup: row counts and checksums of every table, and the hash of each dump
//! file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::dump::{self, DumpChecksum, FIX};
use crate::{
    clock::Clock,
    commands::pluralize,
    db::{Error, Sql, Transaction},
};

const FILE_NAME: &str = "manifest.json";

/// The row count of a table and the sum of its rows' hashes. The sum does not depend on the order of
/// the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableChecksum {
    rows: i64,
    hash: String,
}

/// The tables of a cell by name.
pub type Tables = BTreeMap<String, TableChecksum>;

/// The content of `manifest.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    made_at: String,
    /// The version that made the backup.
    perennial: String,
    cells: BTreeMap<String, Tables>,
    /// By cell.
    dumps: BTreeMap<String, DumpChecksum>,
}

impl Manifest {
    pub fn new() -> Self {
        Self {
            made_at: Clock::System.now().to_string(),
            perennial: env!("CARGO_PKG_VERSION").to_owned(),
            cells: BTreeMap::new(),
            dumps: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, cell: &str, tables: Tables, dump: DumpChecksum) {
        self.cells.insert(cell.to_owned(), tables);
        self.dumps.insert(cell.to_owned(), dump);
    }

    /// Fails if a dump file is damaged, or if the manifest has no hash of it.
    pub fn verify_dumps(&self, directory: &Path) -> anyhow::Result<()> {
        for cell in self.cells.keys() {
            let path = dump::path(directory, cell);
            let dump = self.dumps.get(cell);
            let dump = dump.with_context(|| {
                let path = path.display();
                format!("{FILE_NAME} has no hash of {path}; {FIX}")
            })?;
            tokio::task::block_in_place(|| dump.verify(&path))?;
        }
        Ok(())
    }

    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        Ok(fs::write(
            directory.join(FILE_NAME),
            serde_json::to_string_pretty(self)? + "\n",
        )?)
    }

    pub fn read(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE_NAME);
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}: this is not a backup, or an incomplete one",
                path.display()
            )
        })?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    pub fn has_cell(&self, cell: &str) -> bool {
        self.cells.contains_key(cell)
    }

    pub fn cells(&self) -> Vec<&str> {
        self.cells.keys().map(String::as_str).collect()
    }

    pub fn made_at(&self) -> &str {
        &self.made_at
    }

    /// Counts the rows of all tables.
    pub fn count_rows(&self) -> i64 {
        self.cells
            .values()
            .flat_map(BTreeMap::values)
            .map(|table| table.rows)
            .sum()
    }

    /// Returns the JSON output of `backup` and `restore`.
    pub fn summary(&self) -> serde_json::Value {
        serde_json::json!({
            "made_at": self.made_at, "rows": self.count_rows(), "tables": self.count_tables(), "cells": self.cells(),
        })
    }

    /// Describes the contents, such as `8000 rows in 12 tables`.
    pub fn describe_contents(&self) -> String {
        let rows = pluralize(self.count_rows(), "row");
        let tables = pluralize(self.count_tables(), "table");
        format!("{rows} in {tables}")
    }

    pub fn count_tables(&self) -> usize {
        self.cells.values().map(BTreeMap::len).sum()
    }

    /// Describes each table of a cell that differs from the backup.
    pub fn differences(&self, cell: &str, actual: &Tables) -> Vec<String> {
        let empty = Tables::new();
        let expected = self.cells.get(cell).unwrap_or(&empty);
        let names: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
        names
            .into_iter()
            .filter(|name| expected.get(*name) != actual.get(*name))
            .map(|name| {
                let rows = |tables: &Tables| {
                    tables
                        .get(name)
                        .map_or("no such table".to_owned(), |table| {
                            pluralize(table.rows, "row")
                        })
                };
                format!(
                    "{cell}.{name}: {} in the backup, {} in the database",
                    rows(expected),
                    rows(actual)
                )
            })
            .collect()
    }
}

static REPEATABLE_READ: Sql =
    Sql::new("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
static WITHOUT_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = 0");
static WITHOUT_IDLE_TIMEOUT: Sql = Sql::new("SET LOCAL idle_in_transaction_session_timeout = 0");
// A row's text must not depend on the time zone of the session.
static IN_UTC: Sql = Sql::new("SET LOCAL TimeZone = 'UTC'");
static EXPORT_SNAPSHOT: Sql = Sql::new("SELECT pg_export_snapshot()");

/// Makes the transaction read one snapshot and returns the name under which `pg_dump` can read the
/// same one.
pub async fn export_snapshot(tx: &Transaction<'_>) -> Result<String, Error> {
    for statement in [
        &REPEATABLE_READ,
        &WITHOUT_STATEMENT_TIMEOUT,
        &WITHOUT_IDLE_TIMEOUT,
        &IN_UTC,
    ] {
        tx.execute(statement, &[]).await?;
    }
    let rows = tx.query(&EXPORT_SNAPSHOT, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Error::Internal("pg_export_snapshot returned no row".to_owned()))?;
    Ok(row.try_get(0)?)
}

// One static statement for all tables: PostgreSQL builds and runs the inner query for each.
static CHECKSUM_TABLES: Sql = Sql::new(
    "SELECT relname::text,
        substring(result FROM '<count>([0-9]+)</count>')::bigint AS rows,
        coalesce(substring(result FROM '<sum>(-?[0-9]+)</sum>'), '0') AS hash
     FROM pg_class, LATERAL (SELECT query_to_xml(format(
        'SELECT count(*), sum(hashtextextended(entry::text, 0)::numeric) FROM %I AS entry', relname), false, false, '')::text AS result) AS query
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
     ORDER BY relname",
);

/// Counts the rows of each table and computes its checksum.
pub async fn checksum_tables(tx: &Transaction<'_>) -> Result<Tables, Error> {
    let rows = tx.query(&CHECKSUM_TABLES, &[]).await?;
    rows.iter()
        .map(|row| {
            let checksum = TableChecksum {
                rows: row.try_get("rows")?,
                hash: row.try_get("hash")?,
            };
            Ok((row.try_get("relname")?, checksum))
        })
        .collect()
}
