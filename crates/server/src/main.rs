//! The binary: hands the command line to its command.

use std::process::ExitCode;

use clap::Parser;
use perennial::commands::Command;

/// A sixth of a read's time went into the system's allocator; docs/decisions/0007.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    name = "perennial",
    version,
    about,
    max_term_width = 80,
    after_help = "Begin with:
  eval \"$(perennial dev --background)\"
  perennial seed --demo"
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// Whoever reads our answer may have read enough (`perennial user show … | head`): that is an end, not a failure.
fn end_quietly_with_the_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>();
        if said.is_some_and(|said| said.contains("Broken pipe")) {
            std::process::exit(0);
        }
        usual(panic);
    }));
}

fn main() -> ExitCode {
    end_quietly_with_the_reader();
    let line = Line::parse();
    match line.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", perennial::commands::told(&error));
            ExitCode::from(perennial::commands::exit_code(&error))
        }
    }
}
