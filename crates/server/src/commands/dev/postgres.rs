//! A private PostgreSQL, from the machine's own binaries.
//!
//! It listens on loopback only, and has a password that is kept beside it: whoever may be the database's superuser may run
//! programs as its user. As root it runs as the user `postgres`, because PostgreSQL refuses root.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    folder::{Folder, is_root},
    ports,
};
use crate::randomness::Randomness;

/// The database of a sandbox.
pub enum Postgres {
    /// Somebody else's.
    Given(String),
    /// Ours.
    Private(Private),
}

impl Postgres {
    pub fn url(&self) -> String {
        match self {
            Self::Given(url) => url.clone(),
            Self::Private(private) => private.url(),
        }
    }
}

/// What holds the superuser's password.
const PASSWORD: &str = "postgres.password";

/// A cluster of our own.
pub struct Private {
    data: PathBuf,
    port: u16,
    password: String,
}

impl Private {
    /// The one that was made in this folder before.
    pub fn known(folder: &Folder) -> Option<Self> {
        let data = folder.path().join("postgres");
        let port = fs::read_to_string(folder.path().join("postgres.port")).ok();
        let port = port.and_then(|port| port.trim().parse().ok())?;
        let password = fs::read_to_string(folder.path().join(PASSWORD)).ok()?;
        Some(Self {
            data,
            port,
            password,
        })
    }

    /// Makes one.
    pub fn make(folder: &Folder) -> anyhow::Result<Self> {
        let data = folder.path().join("postgres");
        let random: [u8; 24] = Randomness.bytes();
        let private = Self {
            port: ports::free(15_432)?,
            password: BASE64_URL_SAFE_NO_PAD.encode(random),
            data,
        };
        fs::create_dir_all(&private.data)?;
        folder.write(PASSWORD, &private.password)?;
        let password = folder.path().join(PASSWORD);
        if let Some((user, group)) = owner()? {
            for path in [&private.data, &password] {
                std::os::unix::fs::chown(path, Some(user), Some(group))?;
            }
        }
        let password = format!("--pwfile={}", password.display());
        // Sorted by bytes, as the service sorts itself where it matters.
        let made = private.run(
            "initdb",
            &[
                "-U",
                "postgres",
                "-A",
                "scram-sha-256",
                &password,
                "-E",
                "UTF8",
                "--no-locale",
            ],
        );
        made.context("a private PostgreSQL cannot be made")?;
        fs::write(
            folder.path().join("postgres.port"),
            private.port.to_string(),
        )?;
        Ok(private)
    }

    pub fn url(&self) -> String {
        let (password, port) = (&self.password, self.port);
        format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres")
    }

    fn runs(&self) -> bool {
        self.data.join("postmaster.pid").exists() && self.run("pg_ctl", &["status"]).is_ok()
    }

    /// Starts it unless it runs.
    pub fn start(self) -> anyhow::Result<Postgres> {
        if !self.runs() {
            let options = format!(
                "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''",
                self.port
            );
            let log = self.data.join("log");
            let log = log.display().to_string();
            let started = self.run("pg_ctl", &["-w", "-l", &log, "-o", &options, "start"]);
            started.with_context(|| format!("PostgreSQL does not start; see {log}"))?;
        }
        Ok(Postgres::Private(self))
    }

    /// Stops it; whether it ran.
    pub fn stop(&self) -> anyhow::Result<bool> {
        let runs = self.runs();
        if runs {
            self.run("pg_ctl", &["-w", "-m", "fast", "stop"])?;
        }
        Ok(runs)
    }

    /// Runs one of PostgreSQL's own programs on the cluster.
    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(program_path(program)?);
        command.arg("-D").arg(&self.data).args(arguments);
        // The server outlives us, and must not hold on to what we write to.
        command.stdin(std::process::Stdio::null());
        if let Some((user, group)) = owner()? {
            command.uid(user).gid(group).current_dir(&self.data);
        }
        // Not `output()`, which would wait for the server that `pg_ctl start` leaves behind.
        let said = tempfile(&self.data)?;
        let status = command
            .stdout(said.try_clone()?)
            .stderr(said)
            .status()
            .with_context(|| format!("{program} cannot be run"))?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(self.data.with_extension("said")).unwrap_or_default();
        bail!("{program} failed:\n{}", said.trim())
    }
}

/// Beside the cluster, where what its programs say can be read afterwards.
fn tempfile(data: &Path) -> anyhow::Result<fs::File> {
    Ok(fs::File::create(data.with_extension("said"))?)
}

/// As whom PostgreSQL runs, if not as ourselves.
fn owner() -> anyhow::Result<Option<(u32, u32)>> {
    if !is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let line = line.context(
        "PostgreSQL refuses to run as root, and this machine has no user postgres; run this as somebody else, or set \
         DATABASE_URL",
    )?;
    let mut fields = line.split(':').skip(2).map(str::parse);
    match (fields.next(), fields.next()) {
        (Some(Ok(user)), Some(Ok(group))) => Ok(Some((user, group))),
        _ => bail!("/etc/passwd does not say who postgres is"),
    }
}

/// One of PostgreSQL's own programs: on the path, or where systems put them; the newest.
pub fn program_path(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(program));
    let mut elsewhere = Vec::new();
    for (folder, prefix) in [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql"),
    ] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(version) = name.strip_prefix(prefix) {
                let version: u32 = version.trim_start_matches('@').parse().unwrap_or(0);
                elsewhere.push((version, entry.path().join("bin").join(program)));
            }
        }
    }
    elsewhere.sort();
    let elsewhere = elsewhere.into_iter().rev().map(|(_, path)| path);
    on_path.chain(elsewhere).find(|path| path.is_file()).with_context(|| {
        format!(
            "PostgreSQL's {program} is not on this machine; install PostgreSQL (Debian: apt install postgresql), or set \
             DATABASE_URL"
        )
    })
}
