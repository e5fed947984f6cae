//! `perennial completions`: prints a shell completion script.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::Cli;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial completions bash \\
    > ~/.local/share/bash-completion/completions/perennial
  perennial completions zsh > \"${fpath[1]}/_perennial\"
  perennial completions fish > ~/.config/fish/completions/perennial.fish")]
pub struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self) {
        // Through a buffer, because `generate` panics with its own message if standard output is
        // closed.
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "perennial", &mut script);
        print!("{}", String::from_utf8_lossy(&script));
    }
}
