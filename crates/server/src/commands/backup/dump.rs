//! The file that `pg_dump` has written: how long it was and what it hashed to, and whether it still is and does.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where a cell's dump is in a backup.
pub fn file(folder: &Path, cell: &str) -> PathBuf {
    folder.join(format!("{cell}.dump"))
}

/// A dump as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    bytes: u64,
    sha256: String,
}

impl Dump {
    /// What this file is now.
    pub fn of(path: &Path) -> anyhow::Result<Self> {
        let read = || {
            let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
            let bytes = file.get_ref().metadata()?.len();
            let mut hash = Sha256::new();
            loop {
                let part = file.fill_buf()?;
                let length = part.len();
                if length == 0 {
                    break;
                }
                hash.update(part);
                file.consume(length);
            }
            let mut sha256 = String::new();
            for byte in hash.finalize() {
                sha256 += &format!("{byte:02x}");
            }
            io::Result::Ok(Self { bytes, sha256 })
        };
        read().with_context(|| format!("{} cannot be read", path.display()))
    }

    /// Refuses a file that is not what was written.
    pub fn check(&self, path: &Path) -> anyhow::Result<()> {
        let name = path.display();
        let todo = "use another copy of this backup, or an earlier one";
        let bytes = fs::metadata(path)
            .with_context(|| format!("{name}, a part of this backup, cannot be read; {todo}"))?
            .len();
        // Known without reading all of it.
        if bytes != self.bytes {
            let written = self.bytes;
            bail!(
                "{name} is damaged: it has {bytes} bytes, and had {written} when it was written; {todo}"
            );
        }
        if Self::of(path)? != *self {
            bail!("{name} is damaged: its content has changed since it was written; {todo}");
        }
        Ok(())
    }
}
