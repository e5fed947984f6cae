//! `perennial backup`, `restore` and `verify`: verified backups with `pg_dump` and `pg_restore`.
//!
//! A backup is a directory with a manifest and one dump per cell (one of the databases over which
//! tenants are spread). The manifest has the row count and checksum of every table, read in the same
//! snapshot as the dump, so that a restored database can be verified. It also has the size and hash
//! of each dump, to detect damaged files. The master key is not part of a backup, so encrypted data
//! in it stays unreadable.

use std::{fs, os::unix::fs::DirBuilderExt, path::PathBuf, time::Instant};

use anyhow::{Context, bail};
use clap::Args;

use super::{bootstrap, pluralize};
use crate::{
    config::StorageConfig,
    db::{self, ConnectOptions, migrate},
};

mod dump;
mod manifest;
mod program;

use dump::DumpChecksum;
use manifest::Manifest;
use program::{postgres_command, run};

#[derive(Debug, Args)]
#[command(after_help = "Example:
  perennial backup /var/backups/perennial/2026-11-15

Can run while the service runs. The backup does not contain the master key:
store that separately (see docs/runbooks/backup).")]
pub struct BackupArgs {
    /// The directory to create
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  export DATABASE_URL=postgres://…/empty
  perennial restore /var/backups/perennial/2026-11-15

Verifies the dump files, restores them, and compares every table with the
backup. Users that were erased after the backup are in it: erase them again
(see docs/runbooks/restored-backup).")]
pub struct RestoreArgs {
    /// The backup's directory
    directory: PathBuf,
    /// Only check whether the backup can be restored
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Also verifies the dump files. Exits with 1 if a file is damaged or a table
differs. The tables of a running service change, and so differ."
)]
pub struct VerifyArgs {
    /// The backup's directory
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl BackupArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let started = Instant::now();
        let storage = StorageConfig::from_env()?;
        let (db, _) = bootstrap::open().await?;
        let directory = self.directory.display();
        if self.directory.exists() {
            bail!("{directory} already exists; a backup creates its directory");
        }
        // Private, because a backup contains email addresses.
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&self.directory)
            .with_context(|| format!("cannot create the directory {directory}"))?;
        let mut manifest = Manifest::new();
        for (cell, url) in db::cell_urls(&storage.database) {
            let mut connection = db.cell(cell)?.connection().await?;
            let tx = connection.begin();
            let snapshot = manifest::export_snapshot(&tx).await?;
            let mut pg_dump = postgres_command("pg_dump", url)?;
            let path = dump::path(&self.directory, cell);
            pg_dump
                .args(["--format=custom", "--no-owner", "--no-privileges"])
                .arg(format!("--snapshot={snapshot}"))
                .arg("--file")
                .arg(&path);
            eprintln!("{cell}: dumping …");
            tokio::task::block_in_place(|| run(pg_dump, "pg_dump"))?;
            eprintln!("{cell}: computing checksums …");
            let tables = manifest::checksum_tables(&tx).await?;
            let dump = tokio::task::block_in_place(|| DumpChecksum::compute(&path))?;
            manifest.add(cell, tables, dump);
        }
        // Written last, so that a directory with a manifest is a complete backup.
        manifest.write(&self.directory)?;
        if self.json {
            println!("{}", manifest.summary());
        } else {
            println!(
                "{directory}: {}, {:.1} s. The master key is not included.",
                manifest.describe_contents(),
                started.elapsed().as_secs_f64()
            );
        }
        Ok(())
    }
}

impl RestoreArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let started = Instant::now();
        let storage = StorageConfig::from_env()?;
        let manifest = Manifest::read(&self.directory)?;
        let cells: Vec<_> = db::cell_urls(&storage.database).collect();
        let backed_up = manifest.cells().join(", ");
        for (cell, url) in &cells {
            if !manifest.has_cell(cell) {
                bail!("the backup has no cell {cell}; it has {backed_up}");
            }
            let state = migrate::state(&ConnectOptions::parse(url)?, migrate::MIGRATIONS).await?;
            if state != migrate::SchemaState::Empty {
                bail!("the database of cell {cell} is not empty; restore into an empty one");
            }
        }
        if manifest.cells().len() != cells.len() {
            bail!("the backup has the cells {backed_up}; set all of them in PERENNIAL_CELLS");
        }
        manifest.verify_dumps(&self.directory)?;
        if !self.dry_run {
            for (cell, url) in cells {
                let mut pg_restore = postgres_command("pg_restore", url)?;
                pg_restore
                    .args([
                        "--no-owner",
                        "--no-privileges",
                        "--exit-on-error",
                        "--jobs=2",
                    ])
                    .arg(dump::path(&self.directory, cell));
                eprintln!("{cell}: restoring …");
                tokio::task::block_in_place(|| run(pg_restore, "pg_restore"))?;
            }
            let differences = differences(&storage, &manifest).await?;
            if let Some(first) = differences.first() {
                let tables = pluralize(differences.len(), "table");
                bail!("restored, but the databases differ from the backup in {tables}: {first}");
            }
        }
        let contents = manifest.describe_contents();
        if self.json {
            println!("{}", manifest.summary());
        } else if self.dry_run {
            println!("would restore {contents}, created {}", manifest.made_at());
        } else {
            println!(
                "restored {contents}, identical to the backup, {:.1} s",
                started.elapsed().as_secs_f64()
            );
        }
        Ok(())
    }
}

impl VerifyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let storage = StorageConfig::from_env()?;
        let manifest = Manifest::read(&self.directory)?;
        manifest.verify_dumps(&self.directory)?;
        let differences = differences(&storage, &manifest).await?;
        if self.json {
            let (tables, rows) = (manifest.count_tables(), manifest.count_rows());
            println!(
                "{}",
                serde_json::json!({"tables": tables, "rows": rows, "differences": differences})
            );
        } else if differences.is_empty() {
            println!("{}, identical to the backup", manifest.describe_contents());
        } else {
            for line in &differences {
                println!("{line}");
            }
        }
        if !differences.is_empty() {
            let tables = pluralize(differences.len(), "table");
            bail!("the databases differ from the backup in {tables}");
        }
        Ok(())
    }
}

/// Describes each table that differs from the backup.
async fn differences(storage: &StorageConfig, manifest: &Manifest) -> anyhow::Result<Vec<String>> {
    let db = bootstrap::connect(&storage.database)?;
    let mut differences = Vec::new();
    for (cell, _) in db::cell_urls(&storage.database) {
        let mut connection = db.cell(cell)?.connection().await?;
        let tx = connection.begin();
        // Makes the transaction read all tables in one snapshot. Only `pg_dump` needs its name.
        manifest::export_snapshot(&tx).await?;
        let tables = manifest::checksum_tables(&tx).await?;
        differences.extend(manifest.differences(cell, &tables));
    }
    Ok(differences)
}
