//! What the binary can be told to do, one command per file.
//!
//! Answers go to standard output, everything else to standard error.

use clap::Subcommand;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

mod backup;
mod client;
mod completions;
mod config;
mod dev;
mod doctor;
mod health;
mod keys;
mod migrate;
mod openapi;
mod prepare;
mod progress;
mod provider;
mod reference;
mod sandbox;
mod screen;
mod seed;
mod serve;
mod session;
mod story;
mod subscription;
mod table;
mod tenant;
mod timeline;
mod user;
mod who;
mod work;

pub use reference::reference;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a sandbox: finds or starts PostgreSQL, migrates, makes a client, serves
    Dev(dev::Dev),
    /// Serve the interface until told to stop (SIGTERM or Ctrl-C)
    Serve(serve::Serve),
    /// Do background work only, beside `serve` with PERENNIAL_WORKERS=0
    Work(work::Work),
    /// Bring the databases to the schema that this binary knows
    Migrate(migrate::Migrate),
    /// Write a backup
    Backup(backup::Backup),
    /// Fill an empty database from a backup
    Restore(backup::Restore),
    /// Hold the databases against a backup
    Verify(backup::Verify),
    /// Make, change and list tenants
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    /// Make, list, rotate and disable clients
    #[command(subcommand)]
    Client(client::ClientCommand),
    /// Add, list, check and remove identity providers
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Look up, export and erase users
    #[command(subcommand)]
    User(user::UserCommand),
    /// Look up and make subscriptions
    #[command(subcommand)]
    Subscription(subscription::SubscriptionCommand),
    /// List and end sessions
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Make, list and rotate keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Try things out: what only a sandbox can do
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Fill a sandbox with something to look at
    Seed(seed::Seed),
    /// Look for what is wrong, and say what to do about it
    Doctor(doctor::Doctor),
    /// Ask the service on this machine whether it is ready
    Health(health::Health),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print the OpenAPI document
    Openapi(openapi::Openapi),
    /// Print a script that completes commands in your shell
    Completions(completions::Completions),
}

impl Command {
    /// Does what was asked.
    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self {
                Self::Dev(command) => command.run().await,
                Self::Serve(command) => command.run().await,
                Self::Work(command) => command.run().await,
                Self::Migrate(command) => command.run().await,
                Self::Backup(command) => command.run().await,
                Self::Restore(command) => command.run().await,
                Self::Verify(command) => command.run().await,
                Self::Tenant(command) => command.run().await,
                Self::Client(command) => command.run().await,
                Self::Provider(command) => command.run().await,
                Self::User(command) => command.run().await,
                Self::Subscription(command) => command.run().await,
                Self::Session(command) => command.run().await,
                Self::Keys(command) => command.run().await,
                Self::Sandbox(command) => command.run().await,
                Self::Seed(command) => command.run().await,
                Self::Doctor(command) => command.run().await,
                Self::Health(command) => command.run(),
                Self::Config(command) => command.run(),
                Self::Openapi(command) => command.run(),
                Self::Completions(command) => {
                    command.run();
                    Ok(())
                }
            }
        })
    }
}

/// What went wrong, as it fits on the terminal.
pub fn told(error: &anyhow::Error) -> String {
    let wide = screen::columns(std::io::stderr());
    screen::wrapped(&format!("perennial: {error:#}"), wide)
}

/// What a script can tell from how a command ended: 0 done, 1 refused or failed, 2 the command line is wrong, 3 the
/// database cannot be reached.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if prepare::is_unavailable(error) { 3 } else { 1 }
}

/// So many of something, in words: `1 session`, `2 sessions`.
fn so_many(count: impl std::fmt::Display, one: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {one}{ending}")
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
