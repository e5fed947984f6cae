//! The reference of all commands, in Markdown: what `docs/commands.md` holds.

use clap::{Command, CommandFactory, Parser};

/// The whole command line.
#[derive(Parser)]
#[command(name = "perennial")]
pub(super) struct Line {
    #[command(subcommand)]
    _command: super::Command,
}

/// The whole command line, as wide as its help is on the narrowest usual terminal, and on every other.
fn line() -> Command {
    let mut line = Line::command().max_term_width(80).term_width(80);
    line.build();
    line
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
    let mut line = line();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a line may be that we break ourselves.
    const OURS: usize = 78;

    /// Examples are broken by hand, where a shell allows it; so they stay as they are on 80 columns.
    fn assert_narrow(command: &mut Command, above: &str) {
        let name = format!("{above} {}", command.get_name());
        let own = [command.get_after_help(), command.get_after_long_help()];
        for text in own.into_iter().flatten().map(ToString::to_string) {
            for line in text.lines() {
                assert!(line.chars().count() <= OURS, "{name}: {line}");
            }
        }
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
        for inner in command.get_subcommands_mut() {
            assert_narrow(inner, &name);
        }
    }

    #[test]
    fn every_help_fits_on_eighty_columns() {
        assert_narrow(&mut line(), "");
    }
}
