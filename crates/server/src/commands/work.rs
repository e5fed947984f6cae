//! `perennial work`: runs background tasks without serving the API.

use clap::Args;

use super::bootstrap::{self, StartedApp};
use crate::{config::Config, logging, work};

#[derive(Debug, Args)]
pub struct WorkArgs {}

impl WorkArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::from_env()?;
        let _logging = logging::init(&config.log)?;
        let stop = super::stop_signal()?;
        let started = bootstrap::start_app(&config, &stop).await?;
        let Some(StartedApp { app, .. }) = started else {
            return Ok(());
        };
        // PERENNIAL_WORKERS=0, often set for `serve` in the same environment, does not apply here.
        let workers = config.work.workers.max(1);
        tracing::info!(version = env!("CARGO_PKG_VERSION"), mode = %config.mode, workers, "working");
        work::run(app, workers, stop).await;
        tracing::info!("stopped");
        Ok(())
    }
}
