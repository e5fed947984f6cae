//! `perennial keys`: the master key.

use clap::Subcommand;
use secrecy::ExposeSecret;

use crate::{config::MasterKey, randomness::Randomness};

/// Make keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Print a new master key, for PERENNIAL_MASTER_KEY or the file of PERENNIAL_MASTER_KEY_FILE
    GenerateMaster,
}

impl KeysCommand {
    pub(super) fn run(self) {
        match self {
            Self::GenerateMaster => {
                println!(
                    "{}",
                    MasterKey::generate(Randomness).to_text().expose_secret()
                );
                eprintln!(
                    "Keep it apart from the database, and keep a copy: what is encrypted under it cannot be read without it."
                );
            }
        }
    }
}
