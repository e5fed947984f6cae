//! The folder of a sandbox: what is kept from one start to the next, and what runs.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Sandbox;

/// How long a service may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether we are root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Asks a process to end.
pub fn tell_to_end(id: u32) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// The folder.
pub struct Folder(PathBuf);

impl Folder {
    /// The one that is given, or the usual one; made if it is not there.
    pub fn open(given: Option<PathBuf>) -> anyhow::Result<Self> {
        let usual = || {
            let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
            // PostgreSQL's user cannot enter root's own folders.
            if is_root() && state.is_none() {
                return Ok(PathBuf::from("/var/lib/perennial-dev"));
            }
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let state = state.or_else(|| home.map(|home| home.join(".local/state")));
            state
                .map(|state| state.join("perennial/dev"))
                .context("HOME is not set; say where to keep things by --data")
        };
        let path = match given {
            Some(given) => std::path::absolute(given)?,
            None => usual()?,
        };
        fs::create_dir_all(&path)
            .with_context(|| format!("the folder {} cannot be made", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
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

    fn read(&self, name: &str) -> anyhow::Result<Option<Value>> {
        match fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| self.0.join(name).display().to_string()),
        }
    }

    /// The client that was made for a database.
    pub fn client(&self, database: &str) -> anyhow::Result<Option<String>> {
        let known = self.read("clients.json")?;
        let value = known.as_ref().and_then(|known| known.get(database));
        Ok(value.and_then(Value::as_str).map(str::to_owned))
    }

    /// Keeps it.
    pub fn keep_client(&self, database: &str, value: &str) -> anyhow::Result<()> {
        let known = self.read("clients.json")?;
        let mut known = known
            .and_then(|known| known.as_object().cloned())
            .unwrap_or_default();
        known.insert(database.to_owned(), json!(value));
        self.write("clients.json", &Value::Object(known).to_string())
    }

    /// Writes down what runs.
    pub fn note_running(
        &self,
        id: u32,
        variables: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let running = json!({"pid": id, "variables": variables});
        self.write("running.json", &running.to_string())
    }

    /// What runs, and what it is run with.
    fn noted(&self) -> anyhow::Result<Option<(u32, BTreeMap<String, String>)>> {
        let Some(noted) = self.read("running.json")? else {
            return Ok(None);
        };
        let id = noted.get("pid").and_then(Value::as_u64);
        let id = id.and_then(|id| u32::try_from(id).ok());
        let variables = noted.get("variables").cloned().unwrap_or_default();
        let variables = serde_json::from_value(variables).unwrap_or_default();
        // Numbers are given again: it must still be the service that was started with this folder.
        let mark = format!("PERENNIAL_STATE_DIR={}", self.0.display());
        let ours = |id: &u32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        };
        Ok(id.filter(ours).map(|id| (id, variables)))
    }

    /// The sandbox that runs, if one does.
    pub fn running(&self) -> anyhow::Result<Option<Sandbox>> {
        Ok(self
            .noted()?
            .map(|(_, variables)| Sandbox::known(variables)))
    }

    /// Ends what runs; whether something did.
    pub fn end_running(&self) -> anyhow::Result<bool> {
        let Some((id, _)) = self.noted()? else {
            return Ok(false);
        };
        tell_to_end(id);
        let begun = Instant::now();
        while self.noted()?.is_some() {
            if begun.elapsed() > PATIENCE {
                bail!("process {id} does not end; see {}/log", self.0.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.forget_running()?;
        Ok(true)
    }

    /// Nothing runs any more.
    pub fn forget_running(&self) -> anyhow::Result<()> {
        match fs::remove_file(self.0.join("running.json")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}
