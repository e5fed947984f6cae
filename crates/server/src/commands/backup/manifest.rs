//! What a backup holds: for each table, how many rows, and what they add up to.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::dump::{self, Dump};
use crate::{
    clock::Clock,
    commands::{screen::note, so_many},
    db::{Error, Sql, Transaction},
};

const FILE: &str = "manifest.json";

/// What the rows of a table add up to. The order of rows does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    rows: i64,
    hash: String,
}

/// The tables of a cell.
pub type Tables = BTreeMap<String, Sum>;

/// A backup's own description.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    made_at: String,
    perennial: String,
    cells: BTreeMap<String, Tables>,
    /// Each cell's dump; missing from backups that were made before this was written down.
    #[serde(default)]
    dumps: BTreeMap<String, Dump>,
}

impl Manifest {
    /// An empty one.
    pub fn begin() -> Self {
        Self {
            made_at: Clock::System.now().to_string(),
            perennial: env!("CARGO_PKG_VERSION").to_owned(),
            cells: BTreeMap::new(),
            dumps: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, cell: &str, tables: Tables, dump: Dump) {
        self.cells.insert(cell.to_owned(), tables);
        self.dumps.insert(cell.to_owned(), dump);
    }

    /// Refuses a backup with a dump that is not as it was written; says so where that cannot be known.
    pub fn check_dumps(&self, folder: &Path) -> anyhow::Result<()> {
        for cell in self.cells.keys() {
            let file = dump::file(folder, cell);
            match self.dumps.get(cell) {
                Some(dump) => tokio::task::block_in_place(|| dump.check(&file))?,
                None => note(&format!(
                    "! {} cannot be checked: the manifest is of an older version, and does not say what it was",
                    file.display()
                )),
            }
        }
        Ok(())
    }

    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        Ok(fs::write(
            folder.join(FILE),
            serde_json::to_string_pretty(self)? + "\n",
        )?)
    }

    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "{} is not there: no backup, or one that was cut off",
                path.display()
            )
        })?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    pub fn has(&self, cell: &str) -> bool {
        self.cells.contains_key(cell)
    }

    pub fn cells(&self) -> Vec<&str> {
        self.cells.keys().map(String::as_str).collect()
    }

    pub fn made_at(&self) -> &str {
        &self.made_at
    }

    /// How many rows in all.
    pub fn rows(&self) -> i64 {
        self.cells
            .values()
            .flat_map(BTreeMap::values)
            .map(|sum| sum.rows)
            .sum()
    }

    /// What it is about, for a script.
    pub fn summary(&self) -> serde_json::Value {
        serde_json::json!({
            "made_at": self.made_at, "rows": self.rows(), "tables": self.count(), "cells": self.cells(),
            "dumps_can_be_checked": self.cells.keys().all(|cell| self.dumps.contains_key(cell)),
        })
    }

    /// How much it holds, in words.
    pub fn size(&self) -> String {
        let (rows, tables) = (so_many(self.rows(), "row"), so_many(self.count(), "table"));
        format!("{rows} in {tables}")
    }

    /// How many tables in all.
    pub fn count(&self) -> usize {
        self.cells.values().map(BTreeMap::len).sum()
    }

    /// In which tables a cell is otherwise.
    pub fn differences(&self, cell: &str, found: &Tables) -> Vec<String> {
        let none = Tables::new();
        let expected = self.cells.get(cell).unwrap_or(&none);
        let names: std::collections::BTreeSet<&String> =
            expected.keys().chain(found.keys()).collect();
        names
            .into_iter()
            .filter(|name| expected.get(*name) != found.get(*name))
            .map(|name| {
                let rows = |tables: &Tables| {
                    tables
                        .get(name)
                        .map_or("no such table".to_owned(), |sum| so_many(sum.rows, "row"))
                };
                format!(
                    "{cell}.{name}: {} in the backup, {} here",
                    rows(expected),
                    rows(found)
                )
            })
            .collect()
    }
}

static SNAPSHOT: Sql = Sql::new("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
static WITHOUT_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = 0");
static WITHOUT_IDLE_TIMEOUT: Sql = Sql::new("SET LOCAL idle_in_transaction_session_timeout = 0");
// So that a row's text is the same wherever it is read.
static IN_UTC: Sql = Sql::new("SET LOCAL TimeZone = 'UTC'");
static EXPORT: Sql = Sql::new("SELECT pg_export_snapshot()");

/// From now on this transaction sees one state of the database; answers the name by which others can see the same.
pub async fn hold_snapshot(tx: &Transaction<'_>) -> Result<String, Error> {
    for statement in [
        &SNAPSHOT,
        &WITHOUT_STATEMENT_TIMEOUT,
        &WITHOUT_IDLE_TIMEOUT,
        &IN_UTC,
    ] {
        tx.execute(statement, &[]).await?;
    }
    let rows = tx.query(&EXPORT, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Error::Failed("no snapshot".to_owned()))?;
    Ok(row.try_get(0)?)
}

// One statement for all tables, whatever they are called: the inner one is put together by the database.
static TABLES: Sql = Sql::new(
    "SELECT relname::text,
        substring(said FROM '<count>([0-9]+)</count>')::bigint AS rows,
        coalesce(substring(said FROM '<sum>(-?[0-9]+)</sum>'), '0') AS hash
     FROM pg_class, LATERAL (SELECT query_to_xml(format(
        'SELECT count(*), sum(hashtextextended(one::text, 0)::numeric) FROM %I AS one', relname), false, false, '')::text AS said) AS asked
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
     ORDER BY relname",
);

/// What each table adds up to.
pub async fn tables(tx: &Transaction<'_>) -> Result<Tables, Error> {
    let rows = tx.query(&TABLES, &[]).await?;
    rows.iter()
        .map(|row| {
            let sum = Sum {
                rows: row.try_get("rows")?,
                hash: row.try_get("hash")?,
            };
            Ok((row.try_get("relname")?, sum))
        })
        .collect()
}
