//! The path and checksum of a dump file. The checksum detects damage before the file is used.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What to do about a damaged backup.
pub const FIX: &str = "use another copy of this backup, or an earlier one";

/// Returns the path of a cell's dump in a backup directory.
pub fn path(directory: &Path, cell: &str) -> PathBuf {
    directory.join(format!("{cell}.dump"))
}

/// The size and hash of a dump file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpChecksum {
    bytes: u64,
    sha256: String,
}

impl DumpChecksum {
    /// Computes the checksum of a file. Reads the whole file.
    pub fn compute(path: &Path) -> anyhow::Result<Self> {
        let compute = || {
            let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
            let bytes = file.get_ref().metadata()?.len();
            let mut hasher = Sha256::new();
            loop {
                let chunk = file.fill_buf()?;
                let length = chunk.len();
                if length == 0 {
                    break;
                }
                hasher.update(chunk);
                file.consume(length);
            }
            let sha256 = hex::encode(hasher.finalize());
            io::Result::Ok(Self { bytes, sha256 })
        };
        compute().with_context(|| format!("cannot read {}", path.display()))
    }

    /// Returns an error if the file does not have this size and hash.
    pub fn verify(&self, path: &Path) -> anyhow::Result<()> {
        let name = path.display();
        let bytes = fs::metadata(path)
            .with_context(|| format!("cannot read {name}, which is part of this backup; {FIX}"))?
            .len();
        // The size is checked first, because it does not require reading the file.
        if bytes != self.bytes {
            let expected = self.bytes;
            bail!("{name} is damaged: it has {bytes} bytes instead of {expected}; {FIX}");
        }
        if Self::compute(path)? != *self {
            bail!("{name} is damaged: its content has changed; {FIX}");
        }
        Ok(())
    }
}
