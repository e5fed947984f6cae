//! `perennial relay`: publishes events to a message broker.

use std::net::SocketAddr;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial relay --to nats://127.0.0.1:4222
  PERENNIAL_RELAY_TO_FILE=/run/secrets/nats perennial relay --stream BILLING

Only in binaries that were built with the feature `relay-nats`. You can run
several; one of them publishes.")]
pub struct RelayArgs {
    /// The NATS server, such as nats://127.0.0.1:4222. Default: PERENNIAL_RELAY_TO,
    /// which other users of this machine cannot read
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The JetStream stream, created if it does not exist. The stream of another
    /// cell has the cell's name appended
    #[arg(long, value_name = "NAME", default_value = "PERENNIAL")]
    stream: String,
    /// The first part of all subjects, followed by the tenant and the type of the
    /// event. That of another cell has the cell's name appended
    #[arg(long, value_name = "PREFIX", default_value = "perennial")]
    subject: String,
    /// Serve /livez, /readyz and /metrics at this address; without it, the relay has no
    /// listener
    #[arg(long, value_name = "ADDRESS:PORT")]
    admin_listen: Option<SocketAddr>,
}

impl RelayArgs {
    #[cfg(not(feature = "relay-nats"))]
    #[expect(
        clippy::unused_async,
        reason = "the signature of the command with the feature"
    )]
    pub(super) async fn run(self) -> anyhow::Result<()> {
        anyhow::bail!(
            "this binary was built without the relay; build one with `cargo build --release -p perennial --features relay-nats`"
        )
    }

    #[cfg(feature = "relay-nats")]
    pub(super) async fn run(self) -> anyhow::Result<()> {
        use anyhow::Context;
        use secrecy::SecretString;
        use tokio::task::JoinSet;

        use super::{
            admin_server::AdminServer,
            bootstrap::{self, StartedApp},
        };
        use crate::{
            config::Config,
            db::HOME,
            logging,
            relay::{self, NatsStream},
        };

        let config = Config::from_env()?;
        let _logging = logging::init(&config.log)?;
        let servers = { self.to.map(SecretString::from) }
            .or(config.relay_to.clone())
            .context("set --to or PERENNIAL_RELAY_TO to the URL of a NATS server")?;
        let stop = super::stop_signal()?;
        let admin_server = match self.admin_listen {
            Some(address) => Some(AdminServer::bind(address, &stop).await?),
            None => None,
        };
        let started = bootstrap::start_app(&config, &stop).await?;
        let Some(StartedApp { app, .. }) = started else {
            return Ok(());
        };
        if let Some(admin_server) = &admin_server {
            admin_server.set_ready(&app);
        }
        let mut running = JoinSet::new();
        for cell in app.db.cell_names() {
            let (stream, subject) = match cell {
                HOME => (self.stream.clone(), self.subject.clone()),
                cell => (
                    format!("{}_{cell}", self.stream),
                    format!("{}-{cell}", self.subject),
                ),
            };
            let stream = NatsStream::new(servers.clone(), stream, subject);
            let (app, cell, stop) = (app.clone(), cell.to_owned(), stop.clone());
            running.spawn(async move { relay::run(&app, &cell, stream, stop).await });
        }
        while let Some(ended) = running.join_next().await {
            ended?;
        }
        if let Some(admin_server) = admin_server {
            admin_server.stop().await?;
        }
        tracing::info!("stopped");
        Ok(())
    }
}
