//! What the binary can be told to do, one command per file.
//!
//! Answers go to standard output, everything else to standard error.

use clap::Subcommand;

mod serve;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the interface until told to stop (SIGTERM or Ctrl-C)
    Serve(serve::Serve),
}

impl Command {
    /// Does what was asked.
    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self {
                Self::Serve(command) => command.run().await,
            }
        })
    }
}

/// Cancelled when the process is asked to stop.
pub(crate) fn stop_signal() -> anyhow::Result<tokio_util::sync::CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = tokio_util::sync::CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        token.cancel();
    });
    Ok(stop)
}
