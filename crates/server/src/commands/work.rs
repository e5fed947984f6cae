//! `perennial work`: runs background tasks without serving the API.

use std::net::SocketAddr;

use clap::Args;

use super::{
    admin_server::AdminServer,
    bootstrap::{self, StartedApp},
};
use crate::{config::Config, logging, work};

#[derive(Debug, Args)]
pub struct WorkArgs {
    /// Serve /livez, /readyz and /metrics at this address; without it, the worker has no
    /// listener. PERENNIAL_ADMIN_LISTEN is ignored: `serve` often uses it on the same host
    #[arg(long, value_name = "ADDRESS:PORT")]
    admin_listen: Option<SocketAddr>,
}

impl WorkArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::from_env()?;
        let _logging = logging::init(&config.log)?;
        let stop = super::stop_signal()?;
        // Before the database is available, as in `serve`.
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
        // PERENNIAL_WORKERS=0, often set for `serve` in the same environment, does not apply here.
        let workers = config.work.workers.max(1);
        tracing::info!(version = env!("CARGO_PKG_VERSION"), mode = %config.mode, workers, "working");
        work::run(app, workers, stop).await;
        if let Some(admin_server) = admin_server {
            admin_server.stop().await?;
        }
        tracing::info!("stopped");
        Ok(())
    }
}
