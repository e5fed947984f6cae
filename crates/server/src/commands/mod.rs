//! What the binary can be told to do, one command per file.
//!
//! Answers go to standard output, everything else to standard error.

use clap::Subcommand;
use comfy_table::{Table, presets};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

mod client;
mod config;
mod keys;
mod migrate;
mod openapi;
mod prepare;
mod provider;
mod sandbox;
mod serve;
mod session;
mod tenant;
mod user;
mod who;
mod work;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the interface until told to stop (SIGTERM or Ctrl-C)
    Serve(serve::Serve),
    /// Do background work only, beside `serve` with PERENNIAL_WORKERS=0
    Work(work::Work),
    /// Bring the databases to the schema that this binary knows
    Migrate(migrate::Migrate),
    /// Make, change and list tenants
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    /// Make, list, rotate and disable clients
    #[command(subcommand)]
    Client(client::ClientCommand),
    /// List, check and remove identity providers
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Look up, export and erase users
    #[command(subcommand)]
    User(user::UserCommand),
    /// List and end sessions
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Make, list and rotate keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Try things out: what only a sandbox can do
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print the OpenAPI document
    Openapi(openapi::Openapi),
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
                Self::Work(command) => command.run().await,
                Self::Migrate(command) => command.run().await,
                Self::Tenant(command) => command.run().await,
                Self::Client(command) => command.run().await,
                Self::Provider(command) => command.run().await,
                Self::User(command) => command.run().await,
                Self::Session(command) => command.run().await,
                Self::Keys(command) => command.run().await,
                Self::Sandbox(command) => command.run().await,
                Self::Config(command) => command.run(),
                Self::Openapi(command) => command.run(),
            }
        })
    }
}

/// A table without lines, for lists on a terminal.
fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Cancelled when the process is asked to stop.
fn stop_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
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
