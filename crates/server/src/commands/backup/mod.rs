//! `perennial backup`, `restore` and `verify`: around PostgreSQL's own programs.
//!
//! A backup is a folder: a dump of each cell by `pg_dump`, and a manifest with how many rows each table had and what they add
//! up to, read in the very snapshot that was dumped. So a restored database can be held against it, row for row. The master
//! key is not in it: whoever finds a backup cannot use what is sealed in it.

use std::{fs, os::unix::fs::DirBuilderExt, path::PathBuf, process::Command, time::Instant};

use anyhow::{Context, bail};
use clap::Args;
use secrecy::{ExposeSecret, SecretString};

use super::{dev::program_path, prepare};
use crate::{
    config::Storage,
    db::{self, Address, Db, migrate},
};

mod manifest;

use manifest::{Manifest, Tables};

/// Write a backup.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  perennial backup /var/backups/perennial/2026-11-15

Goes on while the service runs. The master key is not in it: keep that elsewhere → docs/runbooks/backup")]
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
  DATABASE_URL=postgres://…/empty perennial restore /var/backups/perennial/2026-11-15

Then holds every table against the backup. Who was erased since is in it again → docs/runbooks/restored-backup")]
pub struct Restore {
    /// The backup's folder
    folder: PathBuf,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Hold the databases against a backup.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if a table differs. One that is in use differs from its backup, of course."
)]
pub struct Verify {
    /// The backup's folder
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One of PostgreSQL's own programs, on a database. A password goes by the environment, where nobody else on the machine
/// can read it.
fn program(name: &str, url: &SecretString) -> anyhow::Result<Command> {
    let mut command = Command::new(program_path(name)?);
    let (url, password) = without_password(url.expose_secret())?;
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    command.arg("--dbname").arg(url);
    Ok(command)
}

/// An address without its password, and the password. There may be several hosts, or none.
fn without_password(url: &str) -> anyhow::Result<(String, Option<String>)> {
    let (scheme, rest) = url.split_once("//").context("an address has //")?;
    if rest.contains("password=") {
        bail!("give the database's password as postgres://user:password@…, not as a parameter");
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, hosts)) = authority.rsplit_once('@') else {
        return Ok((url.to_owned(), None));
    };
    let (user, password) = match user.split_once(':') {
        Some((user, password)) => (user, Some(percent_decoded(password))),
        None => (user, None),
    };
    Ok((format!("{scheme}//{user}@{hosts}{path}"), password))
}

fn percent_decoded(text: &str) -> String {
    let plain = text
        .replace('+', "%2B")
        .replace('=', "%3D")
        .replace('&', "%26");
    url::form_urlencoded::parse(plain.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

fn run(mut command: Command, name: &str) -> anyhow::Result<()> {
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("{name} failed:\n{}", said.trim())
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
            let tx = connection.begin().await?;
            let snapshot = manifest::hold_snapshot(&tx).await?;
            let mut dump = program("pg_dump", url)?;
            dump.args(["--format=custom", "--no-owner", "--no-privileges"])
                .arg(format!("--snapshot={snapshot}"))
                .arg("--file")
                .arg(self.folder.join(format!("{cell}.dump")));
            eprintln!("{cell}: dumping …");
            tokio::task::block_in_place(|| run(dump, "pg_dump"))?;
            eprintln!("{cell}: adding up …");
            let tables = manifest::tables(&tx).await?;
            written.add(cell, tables);
        }
        // Last, so that a folder with a manifest is a whole backup.
        written.write(&self.folder)?;
        if self.json {
            println!("{}", written.summary());
            return Ok(());
        }
        println!(
            "{}: {} rows in {} tables, {:.1} s. The master key is not in it.",
            self.folder.display(),
            written.rows(),
            written.count(),
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
        if self.dry_run && self.json {
            println!("{}", manifest.summary());
            return Ok(());
        }
        if self.dry_run {
            println!(
                "would restore {} rows in {} tables, of {}",
                manifest.rows(),
                manifest.count(),
                manifest.made_at()
            );
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
                .arg(self.folder.join(format!("{cell}.dump")));
            eprintln!("{cell}: restoring …");
            tokio::task::block_in_place(|| run(restore, "pg_restore"))?;
        }
        let differences = differences(&storage, &manifest).await?;
        if let Some(first) = differences.first() {
            bail!(
                "restored, and {} tables differ from the backup: {first}",
                differences.len()
            );
        }
        if self.json {
            println!("{}", manifest.summary());
            return Ok(());
        }
        println!(
            "restored {} rows in {} tables, each as in the backup, {:.1} s",
            manifest.rows(),
            manifest.count(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

impl Verify {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let storage = Storage::from_environment()?;
        let manifest = Manifest::read(&self.folder)?;
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
                println!(
                    "{} rows in {} tables, each as in the backup",
                    manifest.rows(),
                    manifest.count()
                );
                Ok(())
            }
            count => bail!("{count} tables differ from the backup"),
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
        let tx = connection.begin().await?;
        manifest::hold_snapshot(&tx).await?;
        let found: Tables = manifest::tables(&tx).await?;
        all.extend(manifest.differences(cell, &found));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left_in_an_address() {
        for (url, left, password) in [
            (
                "postgres://u:p%40ss+w=&d@h/db?sslmode=require",
                "postgres://u@h/db?sslmode=require",
                Some("p@ss+w=&d"),
            ),
            (
                "postgres://u:secret@h1:5432,h2:5433/db",
                "postgres://u@h1:5432,h2:5433/db",
                Some("secret"),
            ),
            (
                "postgres://u:secret@/db?host=/run/postgresql",
                "postgres://u@/db?host=/run/postgresql",
                Some("secret"),
            ),
            ("postgres://u@h/db", "postgres://u@h/db", None),
            ("postgres://h/db", "postgres://h/db", None),
        ] {
            let (found, secret) = without_password(url).unwrap();
            assert_eq!(
                (found.as_str(), secret.as_deref()),
                (left, password),
                "{url}"
            );
        }
        assert!(without_password("postgres://h/db?user=u&password=secret").is_err());
    }
}
