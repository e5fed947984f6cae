//! The reference of all commands, in Markdown: what `docs/commands.md` holds.

use clap::{Command, CommandFactory, Parser};

/// The whole command line.
#[derive(Parser)]
#[command(name = "perennial")]
pub(super) struct Line {
    #[command(subcommand)]
    _command: super::Command,
}

/// Each command's own help, one after the other.
pub fn reference() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         Every command explains itself: `perennial help`, `perennial COMMAND --help`. Answers go to standard output, everything \
         else to standard error; `--json` is for scripts, and what answers nothing but that it is done says so in words and by its exit \
         code. Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong, \
         3 the database cannot be reached. Where to find the database and what else can be set: \
         [configuration](configuration.md).\n\n\
         This page is made from the code by `just reference`.\n",
    );
    let mut line = Line::command().max_term_width(100).term_width(100);
    line.build();
    for command in line.get_subcommands_mut() {
        describe(command, "perennial", 2, &mut page);
    }
    page
}

fn describe(command: &mut Command, above: &str, level: usize, page: &mut String) {
    if command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let heading = "#".repeat(level);
    *page += &format!(
        "\n{heading} {name}\n\n```text\n{}\n```\n",
        help.join("\n").trim()
    );
    for inner in command.get_subcommands_mut() {
        describe(inner, &name, level + 1, page);
    }
}
