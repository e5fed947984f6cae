//! A private PostgreSQL cluster, run with the PostgreSQL binaries installed on the machine.
//!
//! The server listens on loopback only and requires a password, because a database superuser can run
//! programs as the server's operating system user. Root starts the server as the user `postgres`,
//! because PostgreSQL refuses to run as root.

use std::{fs, os::unix::process::CommandExt, path::PathBuf, process::Command};

use anyhow::{Context, bail};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    ports,
    state_dir::{StateDir, is_root},
};
use crate::randomness::Randomness;

/// The database of a sandbox.
pub enum Postgres {
    /// The one in `DATABASE_URL`.
    External(String),
    Private(PrivateCluster),
}

impl Postgres {
    pub fn url(&self) -> String {
        match self {
            Self::External(url) => url.clone(),
            Self::Private(cluster) => cluster.url(),
        }
    }

    /// Stops the private cluster; leaves an external database alone.
    pub fn stop_private(&self) -> anyhow::Result<()> {
        if let Self::Private(cluster) = self {
            cluster.stop()?;
        }
        Ok(())
    }
}

const PASSWORD_FILE: &str = "postgres.password";

pub struct PrivateCluster {
    data: PathBuf,
    port: u16,
    password: String,
}

impl PrivateCluster {
    /// Returns the cluster that was created in this directory before.
    pub fn load(state_dir: &StateDir) -> Option<Self> {
        let data = state_dir.path().join("postgres");
        let port = fs::read_to_string(state_dir.path().join("postgres.port")).ok();
        let port = port.and_then(|port| port.trim().parse().ok())?;
        let password = fs::read_to_string(state_dir.path().join(PASSWORD_FILE)).ok()?;
        Some(Self {
            data,
            port,
            password,
        })
    }

    pub fn create(state_dir: &StateDir) -> anyhow::Result<Self> {
        let data = state_dir.path().join("postgres");
        let random: [u8; 24] = Randomness.bytes();
        let cluster = Self {
            port: ports::find_free(15_432)?,
            password: BASE64_URL_SAFE_NO_PAD.encode(random),
            data,
        };
        fs::create_dir_all(&cluster.data)?;
        state_dir.write(PASSWORD_FILE, &cluster.password)?;
        let password_path = state_dir.path().join(PASSWORD_FILE);
        if let Some((user, group)) = run_as()? {
            for path in [&cluster.data, &password_path] {
                std::os::unix::fs::chown(path, Some(user), Some(group))?;
            }
        }
        let password_option = format!("--pwfile={}", password_path.display());
        // No locale, because the schema sets the collation C wherever the order matters.
        let created = cluster.run(
            "initdb",
            &[
                "-U",
                "postgres",
                "-A",
                "scram-sha-256",
                &password_option,
                "-E",
                "UTF8",
                "--no-locale",
            ],
        );
        created.context("cannot create a private PostgreSQL cluster")?;
        fs::write(
            state_dir.path().join("postgres.port"),
            cluster.port.to_string(),
        )?;
        Ok(cluster)
    }

    pub fn url(&self) -> String {
        let (password, port) = (&self.password, self.port);
        format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres")
    }

    /// Returns whether a server of this cluster is running.
    fn is_running(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.data.join("postmaster.pid")) else {
            return false;
        };
        // After a crash, the process id may belong to another process, which `pg_ctl stop` would end. The
        // working directory of a server is its data directory.
        let pid = text.lines().next().unwrap_or_default();
        let directory = fs::read_link(format!("/proc/{pid}/cwd")).ok();
        let data = fs::canonicalize(&self.data).ok();
        let is_other = directory.is_some() && directory != data;
        !is_other && self.run("pg_ctl", &["status"]).is_ok()
    }

    /// Starts the cluster if it is not running.
    pub fn start(self) -> anyhow::Result<Postgres> {
        if !self.is_running() {
            let options = format!(
                "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''",
                self.port
            );
            let log = self.data.join("log");
            let log = log.display().to_string();
            let started = self.run("pg_ctl", &["-w", "-l", &log, "-o", &options, "start"]);
            started.with_context(|| format!("cannot start PostgreSQL; see {log}"))?;
        }
        Ok(Postgres::Private(self))
    }

    /// Stops the cluster. Returns whether it was running.
    pub fn stop(&self) -> anyhow::Result<bool> {
        let was_running = self.is_running();
        if was_running {
            self.run("pg_ctl", &["-w", "-m", "fast", "stop"])?;
        }
        Ok(was_running)
    }

    /// Runs a PostgreSQL program on the cluster.
    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(program_path(program)?);
        command.arg("-D").arg(&self.data).args(arguments);
        // The server keeps running, and must not keep our standard input open.
        command.stdin(std::process::Stdio::null());
        if let Some((user, group)) = run_as()? {
            command.uid(user).gid(group).current_dir(&self.data);
        }
        // Not `output()`, which would wait until the server started by `pg_ctl` closes the pipe.
        let output_path = self.data.with_extension("output");
        let output = fs::File::create(&output_path)?;
        let status = command
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .with_context(|| format!("cannot run {program}"))?;
        if status.success() {
            return Ok(());
        }
        let output = fs::read_to_string(output_path).unwrap_or_default();
        bail!("{program} failed:\n{}", output.trim())
    }
}

/// Returns the user and group id to run PostgreSQL as, if not the current ones.
fn run_as() -> anyhow::Result<Option<(u32, u32)>> {
    if !is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let line = line.context(
        "PostgreSQL cannot run as root, and there is no user postgres on this machine; run this as another user, or set \
         DATABASE_URL",
    )?;
    let mut ids = line.split(':').skip(2).map(str::parse);
    match (ids.next(), ids.next()) {
        (Some(Ok(user)), Some(Ok(group))) => Ok(Some((user, group))),
        _ => bail!("cannot read the ids of the user postgres in /etc/passwd"),
    }
}

/// Finds a PostgreSQL program in `PATH`, or the newest version in the directories where packages
/// install it.
pub fn program_path(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|directory| directory.join(program));
    let mut installed = Vec::new();
    for (directory, prefix) in [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql"),
    ] {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(version) = name.strip_prefix(prefix) {
                let version: u32 = version.trim_start_matches('@').parse().unwrap_or(0);
                installed.push((version, entry.path().join("bin").join(program)));
            }
        }
    }
    installed.sort();
    let installed = installed.into_iter().rev().map(|(_, path)| path);
    in_path.chain(installed).find(|path| path.is_file()).with_context(|| {
        format!(
            "cannot find PostgreSQL's {program}; install PostgreSQL (Debian: apt install postgresql), or set DATABASE_URL"
        )
    })
}
