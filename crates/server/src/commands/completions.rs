//! `perennial completions`: for those who press Tab.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::reference::Line;

/// Print a script that completes commands.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial completions bash \\
    > ~/.local/share/bash-completion/completions/perennial
  perennial completions zsh > \"${fpath[1]}/_perennial\"
  perennial completions fish > ~/.config/fish/completions/perennial.fish")]
pub struct Completions {
    /// For which shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) {
        generate(
            self.shell,
            &mut Line::command(),
            "perennial",
            &mut std::io::stdout(),
        );
    }
}
