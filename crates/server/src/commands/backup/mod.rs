//! `perennial backup`, `restore` and `verify`: around PostgreSQL's own programs.
//!
//! A backup is a folder: a dump of each cell by `pg_dump`, and a manifest with how many rows each table had and what they add
//! up to, read in the very snapshot that was dumped. So a restored database can be held against it, row for row; and each
//! dump's length and hash, so that one which a disk or a copy has damaged is noticed before anybody needs it. The master
//! key is not in it: whoever finds a backup cannot use what is sealed in it.

use std::{fs, os::unix::fs::DirBuilderExt, path::PathBuf, time::Instant};

use anyhow::{Context, bail};
use clap::Args;

use super::{prepare, so_many};
use crate::{
    config::Storage,
    db::{self, Address, Db, migrate},
};

mod dump;
mod manifest;
mod program;

use dump::Dump;
use manifest::{Manifest, Tables};
use program::{program, run};

/// Write a backup.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  perennial backup /var/backups/perennial/2026-11-15

Goes on while the service runs. The master key is not in it: keep that
elsewhere → docs/runbooks/backup")]
pub struct Backup {
    /// A folder that is not there yet
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Fill an empty database from a backup.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  export DATABASE_URL=postgres://…/empty
  perennial restore /var/backups/perennial/2026-11-15

Looks first whether the dumps are as they were written; then restores, and
holds every table against the backup. Who was erased since is in it again
→ docs/runbooks/restored-backup")]
pub struct Restore {
    /// The backup's folder
    folder: PathBuf,
    /// Only look whether it could be done, and say what would be
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Hold the databases against a backup.
#[derive(Debug, Args)]
#[command(
    after_help = "Also looks whether the dumps are as they were written. Exits with 1 if one is
not, or if a table differs; one that is in use does, of course."
)]
pub struct Verify {
    /// The backup's folder
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let storage = Storage::from_environment()?;
        let (db, _) = prepare::open().await?;
        if self.folder.exists() {
            bail!(
                "{} is there already; a backup is a new folder",
                self.folder.display()
            );
        }
        // Nobody else reads it: everybody's address is in it.
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&self.folder)
            .with_context(|| format!("the folder {} cannot be made", self.folder.display()))?;
        let mut written = Manifest::begin();
        for (cell, url) in db::addresses(&storage.database) {
            let mut connection = db.cell(cell)?.connection().await?;
            let tx = connection.begin();
            let snapshot = manifest::hold_snapshot(&tx).await?;
            let mut command = program("pg_dump", url)?;
            let file = dump::file(&self.folder, cell);
            command
                .args(["--format=custom", "--no-owner", "--no-privileges"])
                .arg(format!("--snapshot={snapshot}"))
                .arg("--file")
                .arg(&file);
            eprintln!("{cell}: dumping …");
            tokio::task::block_in_place(|| run(command, "pg_dump"))?;
            eprintln!("{cell}: adding up …");
            let tables = manifest::tables(&tx).await?;
            let dump = tokio::task::block_in_place(|| Dump::of(&file))?;
            written.add(cell, tables, dump);
        }
        // Last, so that a folder with a manifest is a whole backup.
        written.write(&self.folder)?;
        if self.json {
            println!("{}", written.summary());
            return Ok(());
        }
        println!(
            "{}: {}, {:.1} s. The master key is not in it.",
            self.folder.display(),
            written.size(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

impl Restore {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let storage = Storage::from_environment()?;
        let manifest = Manifest::read(&self.folder)?;
        let cells: Vec<_> = db::addresses(&storage.database).collect();
        for (cell, url) in &cells {
            if !manifest.has(cell) {
                bail!(
                    "the backup has no cell {cell}; it has {}",
                    manifest.cells().join(", ")
                );
            }
            let state = migrate::state(&Address::parse(url)?).await?;
            if state != migrate::State::Empty {
                bail!("the database of the cell {cell} is not empty; restore into one that is");
            }
        }
        if manifest.cells().len() != cells.len() {
            bail!(
                "the backup has the cells {}; name all of them in PERENNIAL_CELLS",
                manifest.cells().join(", ")
            );
        }
        manifest.check_dumps(&self.folder)?;
        if self.dry_run && self.json {
            println!("{}", manifest.summary());
            return Ok(());
        }
        if self.dry_run {
            let (size, made_at) = (manifest.size(), manifest.made_at());
            println!("would restore {size}, of {made_at}");
            return Ok(());
        }
        for (cell, url) in cells {
            let mut restore = program("pg_restore", url)?;
            restore
                .args([
                    "--no-owner",
                    "--no-privileges",
                    "--exit-on-error",
                    "--jobs=2",
                ])
                .arg(dump::file(&self.folder, cell));
            eprintln!("{cell}: restoring …");
            tokio::task::block_in_place(|| run(restore, "pg_restore"))?;
        }
        let differences = differences(&storage, &manifest).await?;
        if let Some(first) = differences.first() {
            bail!(
                "restored, and {} not as in the backup: {first}",
                so_many(differences.len(), "table")
            );
        }
        if self.json {
            println!("{}", manifest.summary());
            return Ok(());
        }
        println!(
            "restored {}, each as in the backup, {:.1} s",
            manifest.size(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

impl Verify {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let storage = Storage::from_environment()?;
        let manifest = Manifest::read(&self.folder)?;
        manifest.check_dumps(&self.folder)?;
        let differences = differences(&storage, &manifest).await?;
        if self.json {
            println!(
                "{}",
                serde_json::json!({"tables": manifest.count(), "rows": manifest.rows(), "differences": differences})
            );
        } else {
            for one in &differences {
                println!("{one}");
            }
        }
        match differences.len() {
            0 if self.json => Ok(()),
            0 => {
                println!("{}, each as in the backup", manifest.size());
                Ok(())
            }
            count => bail!("{} not as in the backup", so_many(count, "table")),
        }
    }
}

/// In which tables the databases differ from a backup, and how.
async fn differences(storage: &Storage, manifest: &Manifest) -> anyhow::Result<Vec<String>> {
    let small = crate::config::Database {
        pool: 2,
        lanes: 0,
        ..storage.database.clone()
    };
    let db = Db::start(&small)?;
    let mut all = Vec::new();
    for (cell, _) in db::addresses(&storage.database) {
        let mut connection = db.cell(cell)?.connection().await?;
        let tx = connection.begin();
        manifest::hold_snapshot(&tx).await?;
        let found: Tables = manifest::tables(&tx).await?;
        all.extend(manifest.differences(cell, &found));
    }
    Ok(all)
}
