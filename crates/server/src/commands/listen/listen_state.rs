//! The file in which `perennial listen` saves its cursor and its signing secret.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::{randomness::Randomness, webhooks::signature::WebhookSecret};

/// The saved state. A lock keeps a second command from forwarding the same events.
pub(super) struct ListenState {
    path: PathBuf,
    /// Where to continue; `None` before the first connection.
    pub cursor: Option<String>,
    pub secret: WebhookSecret,
    _lock: File,
}

impl ListenState {
    /// Reads the file, or creates it with a new secret.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the directory {}", folder.display()))?;
        }
        let lock = File::create(path.with_extension("lock"))
            .with_context(|| format!("cannot create a file beside {}", path.display()))?;
        if lock.try_lock().is_err() {
            bail!(
                "another `perennial listen` uses {}; stop it, or choose another file with --state",
                path.display()
            );
        }
        let saved: Value = match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is not a state file", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Value::Null,
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let text = |name: &str| saved.get(name).and_then(Value::as_str);
        let secret = match text("secret") {
            Some(secret) => WebhookSecret::parse(secret)
                .with_context(|| format!("{}: secret", path.display()))?,
            None => WebhookSecret::generate(Randomness),
        };
        let state = Self {
            path: path.to_owned(),
            cursor: text("cursor").map(str::to_owned),
            secret,
            _lock: lock,
        };
        state.save()?;
        Ok(state)
    }

    /// Saves the cursor. A killed process leaves either the old or the new file.
    pub(super) fn save_cursor(&mut self, cursor: String) -> anyhow::Result<()> {
        self.cursor = Some(cursor);
        self.save()
    }

    /// Forgets the cursor, so that the next connection starts with new events.
    pub(super) fn reset(&mut self) -> anyhow::Result<()> {
        self.cursor = None;
        self.save()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the secret as the receiver is configured with it.
    pub(super) fn secret_text(&self) -> SecretString {
        self.secret.to_text()
    }

    fn save(&self) -> anyhow::Result<()> {
        let secret = self.secret_text();
        let state = json!({"cursor": self.cursor, "secret": secret.expose_secret()});
        let new = self.path.with_extension("new");
        let write = || {
            let mut file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(state.to_string().as_bytes())?;
            fs::rename(&new, &self.path)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
