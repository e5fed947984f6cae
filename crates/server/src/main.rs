//! The binary: hands the command line to its command.

use std::process::ExitCode;

use clap::Parser;
use perennial::commands::Command;

/// A sixth of a read's time went into the system's allocator; docs/decisions/0007.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "perennial", version, about, max_term_width = 100)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let line = Line::parse();
    match line.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("perennial: {error:#}");
            ExitCode::from(perennial::commands::exit_code(&error))
        }
    }
}
