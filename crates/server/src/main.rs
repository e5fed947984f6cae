//! The `perennial` binary: parses the command line and runs the command.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;
use perennial::commands::{self, Cli};

/// Replaces the system allocator, which took a sixth of the time of a request that reads a plan; see
/// docs/decisions/0007.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit status that a shell reports for a process ended by SIGPIPE.
const EXIT_SIGPIPE: i32 = 128 + 13;

/// Exits without a message when the reader of standard output has closed it, as in `perennial user
/// show … | head`.
///
/// Rust ignores SIGPIPE, so `println!` panics instead.
fn exit_quietly_on_closed_stdout() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>();
        let is_closed_stdout = |message: &String| {
            message.starts_with("failed printing to stdout") && message.contains("Broken pipe")
        };
        if message.is_some_and(is_closed_stdout) {
            std::process::exit(EXIT_SIGPIPE);
        }
        default_hook(panic);
    }));
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !cli.command.is_service() {
        exit_quietly_on_closed_stdout();
    }
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not `eprintln!`, which panics if standard error is closed: the exit code must still
            // be the error's.
            let _ = writeln!(stderr(), "{}", commands::format_error(&error));
            ExitCode::from(commands::exit_code(&error))
        }
    }
}
