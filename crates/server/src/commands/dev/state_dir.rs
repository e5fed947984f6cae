//! The state directory of a sandbox: its API keys, the running process and the private PostgreSQL
//! cluster.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use perennial_domain::ClientKind;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{DevSandbox, clients::StoredClient};

const STOP_TIMEOUT: Duration = Duration::from_secs(20);

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Sends SIGTERM.
pub fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Returns the file with the clients of this kind, by database.
fn client_file(kind: ClientKind) -> &'static str {
    match kind {
        ClientKind::Secret => "clients.json",
        ClientKind::Publishable => "publishable-clients.json",
    }
}

pub struct StateDir(PathBuf);

impl StateDir {
    /// Opens the given directory or the default one, and creates it if needed.
    pub fn open(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let default_path = || {
            let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
            // The user postgres cannot read root's home directory.
            if is_root() && state.is_none() {
                return Ok(PathBuf::from("/var/lib/perennial-dev"));
            }
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let state = state.or_else(|| home.map(|home| home.join(".local/state")));
            state
                .map(|state| state.join("perennial/dev"))
                .context("HOME is not set; choose a directory with --data")
        };
        let path = match path {
            Some(path) => std::path::absolute(path)?,
            None => default_path()?,
        };
        fs::create_dir_all(&path)
            .with_context(|| format!("cannot create the directory {}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that only its owner can read.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let mut file = fs::File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(self.0.join(name))?;
        Ok(file.write_all(text.as_bytes())?)
    }

    /// Returns `None` if the file does not exist or is not valid JSON.
    fn read_json(&self, name: &str) -> anyhow::Result<Option<Value>> {
        match fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| self.0.join(name).display().to_string()),
        }
    }

    /// Returns the client of this kind that was created for a database.
    pub(super) fn client(
        &self,
        kind: ClientKind,
        database: &str,
    ) -> anyhow::Result<Option<StoredClient>> {
        let clients = self.read_json(client_file(kind))?;
        let client = clients.as_ref().and_then(|clients| clients.get(database));
        Ok(client.and_then(|client| StoredClient::deserialize(client).ok()))
    }

    pub(super) fn save_client(
        &self,
        kind: ClientKind,
        database: &str,
        client: &StoredClient,
    ) -> anyhow::Result<()> {
        let clients = self.read_json(client_file(kind))?;
        let mut clients = clients
            .and_then(|clients| clients.as_object().cloned())
            .unwrap_or_default();
        clients.insert(database.to_owned(), json!(client));
        self.write(client_file(kind), &Value::Object(clients).to_string())
    }

    pub fn save_running(
        &self,
        pid: u32,
        variables: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let running = json!({"pid": pid, "variables": variables});
        self.write("running.json", &running.to_string())
    }

    /// Returns the process id and environment of the running service, if there is one.
    fn running_process(&self) -> anyhow::Result<Option<(u32, BTreeMap<String, String>)>> {
        let Some(saved) = self.read_json("running.json")? else {
            return Ok(None);
        };
        let pid = saved.get("pid").and_then(Value::as_u64);
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        let variables = saved.get("variables").cloned().unwrap_or_default();
        let variables = serde_json::from_value(variables).unwrap_or_default();
        // Process ids are reused, so check that the process was started with this directory.
        let marker = format!("PERENNIAL_STATE_DIR={}", self.0.display());
        let is_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == marker.as_bytes())
        };
        Ok(pid.filter(is_ours).map(|pid| (pid, variables)))
    }

    /// Returns the running sandbox, if there is one.
    pub fn running(&self) -> anyhow::Result<Option<DevSandbox>> {
        let process = self.running_process()?;
        Ok(process.map(|(_, variables)| DevSandbox::new(variables)))
    }

    /// Stops the running service and waits for its end. Returns whether there was one.
    pub fn stop_running(&self) -> anyhow::Result<bool> {
        let Some((pid, _)) = self.running_process()? else {
            return Ok(false);
        };
        terminate(pid);
        let started = Instant::now();
        while self.running_process()?.is_some() {
            if started.elapsed() > STOP_TIMEOUT {
                bail!("process {pid} does not stop; see {}/log", self.0.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.clear_running()?;
        Ok(true)
    }

    /// Removes the record of the running service.
    pub fn clear_running(&self) -> anyhow::Result<()> {
        match fs::remove_file(self.0.join("running.json")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}
