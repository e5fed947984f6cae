//! `perennial man-pages`: writes a manual page for each command.

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap::{Args, CommandFactory};

use super::Cli;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  perennial man-pages ~/.local/share/man/man1
  man perennial-client-create")]
pub struct ManPagesArgs {
    /// The folder to write to; created if it is missing
    folder: PathBuf,
}

impl ManPagesArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let context = || format!("cannot write to {}", self.folder.display());
        fs::create_dir_all(&self.folder).with_context(context)?;
        clap_mangen::generate_to(Cli::command(), &self.folder).with_context(context)
    }
}
