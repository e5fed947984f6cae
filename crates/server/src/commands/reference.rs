//! The command reference in Markdown: the help texts of all commands. `just reference` writes it to
//! docs/reference/commands.md.

use clap::{Command, CommandFactory};

use super::Cli;

/// Returns the command line with its help wrapped at 80 columns.
fn cli() -> Command {
    let mut cli = Cli::command().max_term_width(80).term_width(80);
    cli.build();
    cli
}

/// Returns the whole page.
pub fn command_reference() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         Every command has help: `perennial help`, `perennial COMMAND --help`. Results go to standard output; progress, \
         hints and errors go to standard error. Use `--json` in scripts.\n\n\
         | exit code | meaning |\n|---|---|\n\
         | 0 | success |\n\
         | 1 | the command failed or was refused |\n\
         | 2 | the command line is invalid |\n\
         | 3 | the database is unreachable |\n\
         | 141 | the reader of standard output closed it |\n\n\
         All settings, such as the database's URL, are environment variables: see [configuration](configuration.md).\n\n\
         This page is generated from the code by `just reference`.\n",
    );
    for command in cli().get_subcommands_mut() {
        append_help(command, "perennial", 2, &mut page);
    }
    page
}

/// Appends the help of a command and of its subcommands to the page.
fn append_help(command: &mut Command, parent: &str, level: usize, page: &mut String) {
    if command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let heading = "#".repeat(level);
    *page += &format!(
        "\n{heading} {name}\n\n```text\n{}\n```\n",
        help.join("\n").trim()
    );
    for subcommand in command.get_subcommands_mut() {
        append_help(subcommand, &name, level + 1, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap does not wrap the examples, so they are wrapped by hand.
    const MAX_EXAMPLE_WIDTH: usize = 78;

    fn assert_narrow(command: &mut Command, parent: &str) {
        let name = format!("{parent} {}", command.get_name());
        let examples = [command.get_after_help(), command.get_after_long_help()];
        for text in examples.into_iter().flatten().map(ToString::to_string) {
            for line in text.lines() {
                assert!(line.chars().count() <= MAX_EXAMPLE_WIDTH, "{name}: {line}");
            }
        }
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
        for subcommand in command.get_subcommands_mut() {
            assert_narrow(subcommand, &name);
        }
    }

    #[test]
    fn help_of_every_command_fits_80_columns() {
        assert_narrow(&mut cli(), "");
    }
}
