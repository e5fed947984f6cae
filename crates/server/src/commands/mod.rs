//! The command line: the commands, each in the module of its name, and helper modules.
//! `backup` also contains `restore` and `verify`.
//!
//! Results go to standard output; progress, hints and errors go to standard error.

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::timeline::plain_text::pluralize;

mod admin_server;
mod backup;
mod bootstrap;
mod client;
mod completions;
mod config;
mod console;
mod dev;
mod doctor;
mod event;
mod event_lines;
mod explain;
mod health;
mod import;
mod keys;
mod listen;
mod listeners;
mod man_pages;
mod migrate;
mod openapi;
mod operator;
mod payment;
mod payment_account;
mod plan;
mod progress;
mod provider;
mod provider_report;
mod reference;
mod relay;
mod report;
mod request_fields;
mod sandbox;
mod security_warnings;
mod seed;
mod serve;
mod service_client;
mod session;
mod staff;
mod subscription;
mod tenant;
mod terminal;
mod text_table;

mod trigger;
mod user;
mod user_selector;
mod user_summary;
mod webhook_endpoint;
mod work;

pub use reference::command_reference;

#[derive(Debug, Parser)]
#[command(
    name = "perennial",
    version = env!("VERSION_AND_COMMIT"),
    about,
    max_term_width = 80,
    after_help = "Get started:
  eval \"$(perennial dev --background)\"
  perennial seed --demo"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a local sandbox: finds or starts PostgreSQL, migrates, creates a client, serves the API
    Dev(dev::DevArgs),
    /// Serve the API until SIGTERM or Ctrl-C
    Serve(serve::ServeArgs),
    /// Run background tasks only, next to `serve` with PERENNIAL_WORKERS=0
    Work(work::WorkArgs),
    /// Publish events to NATS JetStream
    Relay(relay::RelayArgs),
    /// Apply pending migrations
    Migrate(migrate::MigrateArgs),
    /// Write a backup
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty database
    Restore(backup::RestoreArgs),
    /// Compare the databases with a backup
    Verify(backup::VerifyArgs),
    /// Create, change, list and delete tenants
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    /// Create, list, change, rotate and disable clients (API keys)
    #[command(subcommand)]
    Client(client::ClientCommand),
    /// List, invite and remove staff members, who work with the console
    #[command(subcommand)]
    Staff(staff::StaffCommand),
    /// Sign in to the console
    #[command(subcommand)]
    Console(console::ConsoleCommand),
    /// Add, list, check and remove identity providers
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// List, create and change plans
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Look up, export and erase users
    #[command(subcommand)]
    User(user::UserCommand),
    /// Look up and create subscriptions
    #[command(subcommand)]
    Subscription(subscription::SubscriptionCommand),
    /// List payments; record payments and refunds
    #[command(subcommand)]
    Payment(payment::PaymentCommand),
    /// List and revoke sessions
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Create, change, test and replay webhook endpoints
    #[command(subcommand)]
    WebhookEndpoint(webhook_endpoint::WebhookEndpointCommand),
    /// Add, change and remove payment accounts; list and replay their notifications
    #[command(subcommand)]
    PaymentAccount(payment_account::PaymentAccountCommand),
    /// Take over the subscriptions and payments of a payment provider
    Import(import::ImportArgs),
    /// Show recurring revenue, churn, trials and payments
    #[command(subcommand)]
    Report(report::ReportCommand),
    /// List and follow events
    #[command(subcommand)]
    Event(event::EventCommand),
    /// Forward events to a local URL as signed webhooks
    Listen(listen::ListenArgs),
    /// Sandbox only: make real API calls that cause an event
    Trigger(trigger::TriggerArgs),
    /// Generate, list and rotate keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Sandbox only: issue test tokens and move the billing clock
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Fill a sandbox with demo data
    Seed(seed::SeedArgs),
    /// Check the installation and suggest fixes
    Doctor(doctor::DoctorArgs),
    /// Check whether the service on this machine is ready
    Health(health::HealthArgs),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print the OpenAPI document
    Openapi(openapi::OpenapiArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Write the manual pages of all commands
    ManPages(man_pages::ManPagesArgs),
}

impl Command {
    /// Returns whether the command is a service. `dev` is not: it runs `serve` as a child process.
    pub fn is_service(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Work(_) | Self::Relay(_))
    }

    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self {
                Self::Dev(command) => command.run().await,
                Self::Serve(command) => command.run().await,
                Self::Work(command) => command.run().await,
                Self::Relay(command) => command.run().await,
                Self::Migrate(command) => command.run().await,
                Self::Backup(command) => command.run().await,
                Self::Restore(command) => command.run().await,
                Self::Verify(command) => command.run().await,
                Self::Tenant(command) => command.run().await,
                Self::Client(command) => command.run().await,
                Self::Staff(command) => command.run().await,
                Self::Console(command) => command.run().await,
                Self::Provider(command) => command.run().await,
                Self::Plan(command) => command.run().await,
                Self::User(command) => command.run().await,
                Self::Subscription(command) => command.run().await,
                Self::Payment(command) => command.run().await,
                Self::Session(command) => command.run().await,
                Self::WebhookEndpoint(command) => command.run().await,
                Self::PaymentAccount(command) => command.run().await,
                Self::Import(command) => command.run().await,
                Self::Report(command) => command.run().await,
                Self::Event(command) => command.run().await,
                Self::Listen(command) => command.run().await,
                Self::Trigger(command) => command.run().await,
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
                Self::ManPages(command) => command.run(),
            }
        })
    }
}

/// Formats an error for standard error, wrapped to the terminal's width.
pub fn format_error(error: &anyhow::Error) -> String {
    let width = terminal::width(std::io::stderr());
    terminal::wrap(&format!("perennial: {error:#}"), width)
}

/// Returns 3 if the database is unreachable and 1 for any other error. clap exits with 2 for an
/// invalid command line.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if bootstrap::is_unavailable(error) {
        3
    } else {
        1
    }
}
/// Returns a token that SIGTERM or SIGINT cancels.
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
