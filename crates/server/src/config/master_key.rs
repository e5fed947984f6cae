//! The master key, from which all other keys are derived, the key that it replaces, and where they are
//! stored.

use std::{
    fmt, fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Mode,
    env::{EnvReader, EnvVar, Origin, Setting},
};
use crate::randomness::Randomness;

static MASTER_KEY: EnvVar = EnvVar {
    name: "PERENNIAL_MASTER_KEY",
    doc: "The key from which all other keys are derived: 32 bytes, as printed by `perennial keys \
          generate-master`. With it and the database, an attacker can sign in as any user. Without it, the \
          encrypted secrets in the database cannot be read. Required in live mode. In sandbox mode, a key \
          is generated and stored in `PERENNIAL_STATE_DIR` unless this is set.",
    default: None,
    secret: true,
};

static MASTER_KEY_PREVIOUS: EnvVar = EnvVar {
    name: "PERENNIAL_MASTER_KEY_PREVIOUS",
    doc: "The master key that `PERENNIAL_MASTER_KEY` replaces. Set it on every instance while the key is \
          rotated. The service continues to use the previous key until `perennial keys rewrap` runs, and \
          then only reads what the previous key protects. Remove it when `keys rewrap` says so; see \
          docs/runbooks/leaked-master-key.",
    default: None,
    secret: true,
};

static STATE_DIR: EnvVar = EnvVar {
    name: "PERENNIAL_STATE_DIR",
    doc: "Directory in which sandbox mode stores its master key. Default: `perennial` in \
          `$XDG_STATE_HOME`, or in `~/.local/state`.",
    default: None,
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&MASTER_KEY, &MASTER_KEY_PREVIOUS, &STATE_DIR];

#[derive(Clone)]
pub struct MasterKey([u8; 32]);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(secret)")
    }
}

impl MasterKey {
    pub fn generate(randomness: Randomness) -> Self {
        Self(randomness.bytes())
    }

    /// Encodes the key as base64url, for a variable or a file.
    pub fn to_text(&self) -> SecretString {
        BASE64_URL_SAFE_NO_PAD.encode(self.0).into()
    }

    /// Parses the output of [`Self::to_text`]. The error never contains the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let hint = "generate one with `perennial keys generate-master`";
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(text.trim())
            .map_err(|_| format!("must be 43 characters of base64url; {hint}"))?;
        let bytes: [u8; 32] = bytes
            .try_into()
            .map_err(|_| format!("must have 32 bytes; {hint}"))?;
        // Placeholders such as "AAAA…" get copied from examples into production.
        let first = bytes.first().copied();
        if bytes.iter().all(|byte| Some(*byte) == first) {
            return Err(format!("is a placeholder, not a key; {hint}"));
        }
        Ok(Self(bytes))
    }

    /// Returns the bytes, for key derivation.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The configured master keys.
#[derive(Debug, Clone)]
pub struct MasterKeys {
    pub present: MasterKey,
    /// The key that `present` replaces, during a rotation.
    pub previous: Option<MasterKey>,
}

impl From<MasterKey> for MasterKeys {
    fn from(present: MasterKey) -> Self {
        Self {
            present,
            previous: None,
        }
    }
}

/// Where the present master key comes from.
#[derive(Debug, Clone)]
enum PresentKeySource {
    /// The configuration.
    Provided(MasterKey),
    /// A file in this directory, which a sandbox creates when it is first started.
    SandboxFile(PathBuf),
}

/// Where the master keys come from.
#[derive(Debug, Clone)]
pub struct MasterKeySource {
    present: PresentKeySource,
    previous: Option<MasterKey>,
}

impl MasterKeySource {
    /// Returns the keys. Creates the file of a sandbox if it does not exist.
    pub fn load_or_create(&self, randomness: Randomness) -> anyhow::Result<MasterKeys> {
        let present = match &self.present {
            PresentKeySource::Provided(key) => key.clone(),
            PresentKeySource::SandboxFile(dir) => {
                load_or_create(dir, randomness).with_context(|| {
                    let dir = dir.display();
                    format!("cannot store the master key of the sandbox in {dir}")
                })?
            }
        };
        Ok(self.with_previous(present))
    }

    /// Returns the keys, or `None` if the file of a sandbox does not exist.
    pub fn load(&self) -> anyhow::Result<Option<MasterKeys>> {
        let present = match &self.present {
            PresentKeySource::Provided(key) => Some(key.clone()),
            PresentKeySource::SandboxFile(dir) => load(&dir.join(SANDBOX_FILE))?,
        };
        Ok(present.map(|present| self.with_previous(present)))
    }

    fn with_previous(&self, present: MasterKey) -> MasterKeys {
        MasterKeys {
            present,
            previous: self.previous.clone(),
        }
    }

    pub(super) fn read(reader: &mut EnvReader, mode: Option<Mode>) -> Option<Self> {
        let key = reader.get(&MASTER_KEY);
        require_private_file(reader, mode);
        let previous = reader.get(&MASTER_KEY_PREVIOUS);
        require_private_file(reader, mode);
        let previous = match previous.as_deref().map(MasterKey::parse) {
            Some(Err(message)) => {
                reader.push_error(&MASTER_KEY_PREVIOUS, &message);
                None
            }
            previous => Some(previous.and_then(Result::ok)),
        };
        let state_dir = reader.get(&STATE_DIR).map(PathBuf::from);
        let source = match (key, mode?) {
            (Some(key), _) => MasterKey::parse(&key).map(PresentKeySource::Provided),
            (None, Mode::Sandbox) => state_dir
                .or_else(default_state_dir)
                .inspect(|dir| {
                    reader.set_default(&STATE_DIR, dir.display());
                    let file = dir.join(SANDBOX_FILE).display().to_string();
                    reader.set_effective(&MASTER_KEY, "generated", Origin::File(file));
                })
                .map(PresentKeySource::SandboxFile)
                .ok_or_else(|| {
                    "cannot be stored: neither PERENNIAL_STATE_DIR nor HOME is set".to_owned()
                }),
            (None, Mode::Live) => Err(
                "is required in live mode; generate one with `perennial keys generate-master`, store it \
                 separately from the database, and set this or PERENNIAL_MASTER_KEY_FILE"
                    .to_owned(),
            ),
        };
        let present = source
            .map_err(|message| reader.push_error(&MASTER_KEY, &message))
            .ok()?;
        let previous = previous?;
        if let (PresentKeySource::Provided(present), Some(previous)) = (&present, &previous)
            && present.0 == previous.0
        {
            let message =
                "must differ from PERENNIAL_MASTER_KEY; remove it if no key is being replaced";
            reader.push_error(&MASTER_KEY_PREVIOUS, message);
        }
        Some(Self { present, previous })
    }
}

/// Adds an error if the last setting was read from a file that other users can read. A sandbox accepts
/// such files.
///
/// systemd lets the service's user read a credential by an access control list, which also sets the
/// group's bits of the file mode. Its credentials directory is private to the service.
fn require_private_file(reader: &mut EnvReader, mode: Option<Mode>) {
    let Some(Setting {
        var,
        origin: Origin::File(path),
        ..
    }) = reader.settings.last()
    else {
        return;
    };
    let path = PathBuf::from(path);
    let is_credential = reader
        .raw("CREDENTIALS_DIRECTORY")
        .is_some_and(|dir| path.starts_with(dir));
    let Ok(metadata) = fs::metadata(&path) else {
        return;
    };
    if mode == Some(Mode::Live) && !is_credential && is_readable_by_others(&metadata) {
        let message = format!(
            "{}_FILE: {}",
            var.name,
            describe_open_file(&path, &metadata)
        );
        reader.errors.push(message);
    }
}

fn is_readable_by_others(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o077 != 0
}

fn describe_open_file(path: &Path, metadata: &fs::Metadata) -> String {
    let (path, mode) = (path.display(), metadata.permissions().mode() & 0o777);
    format!("{path} can be read by others (mode {mode:03o}); run `chmod 600 {path}`")
}

fn default_state_dir() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = var("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&var("HOME")?).join(".local/state")))?;
    Some(base.join("perennial"))
}

const SANDBOX_FILE: &str = "sandbox-master.key";

/// Reads a key file. Returns `None` if it does not exist.
fn load(path: &Path) -> io::Result<Option<MasterKey>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    if is_readable_by_others(&metadata) {
        return Err(io::Error::other(describe_open_file(path, &metadata)));
    }
    let text = fs::read_to_string(path)?;
    MasterKey::parse(&text).map(Some).map_err(io::Error::other)
}

/// Reads the key file in `dir`, or creates it. Concurrent processes end up with the same key: the
/// complete file is linked to its final name, which fails if another process has already created it.
fn load_or_create(dir: &Path, randomness: Randomness) -> io::Result<MasterKey> {
    let path = dir.join(SANDBOX_FILE);
    if let Some(key) = load(&path)? {
        return Ok(key);
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    let key = MasterKey::generate(randomness);
    let temporary = dir.join(format!(".{SANDBOX_FILE}.{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    writeln!(file, "{}", key.to_text().expose_secret())?;
    file.sync_all()?;
    let linked = fs::hard_link(&temporary, &path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => load(&path)?.ok_or_else(|| io::ErrorKind::NotFound.into()),
    }
}
