//! The master key, from which all other keys are derived.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Mode,
    key::{Key, Reader},
};
use crate::randomness::Randomness;

static MASTER_KEY: Key = Key {
    name: "PERENNIAL_MASTER_KEY",
    doc: "The key from which all others are derived: 32 bytes, as `perennial keys generate-master` \
          prints them. Whoever has it and the database can sign in as anybody; without it the \
          database's keys cannot be read. Required in live mode; in sandbox mode one is made and \
          kept in `PERENNIAL_STATE_DIR` unless set.",
    default: None,
    secret: true,
};

static STATE_DIR: Key = Key {
    name: "PERENNIAL_STATE_DIR",
    doc: "Where sandbox mode keeps its master key. Default: `perennial` in `$XDG_STATE_HOME`, or in \
          `~/.local/state`.",
    default: None,
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[&MASTER_KEY, &STATE_DIR];

/// 32 secret bytes.
#[derive(Clone)]
pub struct MasterKey([u8; 32]);

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(secret)")
    }
}

impl MasterKey {
    /// A new one.
    pub fn generate(randomness: Randomness) -> Self {
        Self(randomness.bytes())
    }

    /// As it is written into a variable or a file.
    pub fn to_text(&self) -> SecretString {
        BASE64_URL_SAFE_NO_PAD.encode(self.0).into()
    }

    /// Reads what [`Self::to_text`] wrote. The message never quotes the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let how = "make one with `perennial keys generate-master`";
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(text.trim())
            .map_err(|_| format!("is not 43 characters of base64url; {how}"))?;
        let bytes: [u8; 32] = bytes
            .try_into()
            .map_err(|_| format!("is not 32 bytes long; {how}"))?;
        // Placeholders such as "AAAA…" get copied from examples into production.
        let first = bytes.first().copied();
        if bytes.iter().all(|byte| Some(*byte) == first) {
            return Err(format!("is a placeholder, not a key; {how}"));
        }
        Ok(Self(bytes))
    }

    /// The bytes, for deriving keys from.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Where the master key is.
#[derive(Debug, Clone)]
pub enum Keys {
    /// It was given.
    Given(MasterKey),
    /// A sandbox keeps its own in this folder.
    KeptIn(PathBuf),
}

impl Keys {
    /// The key; a sandbox's is made now if it has none.
    pub fn master(&self, randomness: Randomness) -> anyhow::Result<MasterKey> {
        match self {
            Self::Given(key) => Ok(key.clone()),
            Self::KeptIn(folder) => kept_in(folder, randomness).with_context(|| {
                format!(
                    "the sandbox's master key cannot be kept in {}",
                    folder.display()
                )
            }),
        }
    }

    /// The key; `None` if a sandbox has not made its own yet.
    pub fn found(&self) -> anyhow::Result<Option<MasterKey>> {
        match self {
            Self::Given(key) => Ok(Some(key.clone())),
            Self::KeptIn(folder) => match read_kept(&folder.join(KEPT)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                found => Ok(Some(found?)),
            },
        }
    }

    pub(super) fn read(reader: &mut Reader, mode: Option<Mode>) -> Option<Self> {
        let given = reader.text(&MASTER_KEY);
        let state_dir = reader.text(&STATE_DIR).map(PathBuf::from);
        let keys = match (given, mode?) {
            (Some(text), _) => MasterKey::parse(&text).map(Self::Given),
            (None, Mode::Sandbox) => state_dir
                .or_else(default_state_dir)
                .map(Self::KeptIn)
                .ok_or_else(|| "cannot be kept: neither PERENNIAL_STATE_DIR nor HOME is set".to_owned()),
            (None, Mode::Live) => Err(
                "is required in live mode; make one with `perennial keys generate-master`, keep it \
                 safe and apart from the database, and give it here or as PERENNIAL_MASTER_KEY_FILE"
                    .to_owned(),
            ),
        };
        keys.map_err(|what| reader.wrong(&MASTER_KEY, &what)).ok()
    }
}

fn default_state_dir() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".local/state")))?;
    Some(base.join("perennial"))
}

/// What a sandbox's key is called in its folder.
const KEPT: &str = "sandbox-master.key";

fn read_kept(path: &Path) -> io::Result<MasterKey> {
    let file = fs::metadata(path)?;
    if file.permissions().mode() & 0o077 != 0 {
        let message = format!("{} can be read by others; chmod 600 it", path.display());
        return Err(io::Error::other(message));
    }
    let text = fs::read_to_string(path)?;
    MasterKey::parse(&text).map_err(io::Error::other)
}

/// The key in `folder`, made now if there is none. Several processes may do this at once: the file
/// appears whole, by a link, and whoever comes second reads what the first wrote.
fn kept_in(folder: &Path, randomness: Randomness) -> io::Result<MasterKey> {
    let path = folder.join(KEPT);
    match read_kept(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let key = MasterKey::generate(randomness);
    let draft = folder.join(format!(".sandbox-master.key.{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    writeln!(file, "{}", key.to_text().expose_secret())?;
    file.sync_all()?;
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read_kept(&path),
    }
}
