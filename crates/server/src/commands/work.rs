//! `perennial work`: background work without the interface.

use std::sync::Arc;

use clap::Args;

use super::prepare::{self, Expected};
use crate::{app::App, clock::Clock, config::Config, logging, randomness::Randomness, work};

/// Do background work until told to stop.
#[derive(Debug, Args)]
pub struct Work {}

impl Work {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::from_environment()?;
        let _logging = logging::start(&config.log)?;
        let stop = super::stop_signal()?;
        let master = config.keys.master(Randomness)?;
        let expected = Expected {
            mode: config.mode,
            master: Some(master.clone()),
        };
        let waiting = prepare::prepare_patiently(&config.database, &expected);
        let prepared = tokio::select! {
            prepared = waiting => prepared?,
            () = stop.cancelled() => return Ok(()),
        };
        let app = Arc::new(App::new(&config, &master, Clock::System)?);
        prepared.open_when_back(&app.db, &expected);
        tokio::spawn(app.clone().follow_billing_time());
        // Whoever starts this wants work done, also where `serve` has it switched off.
        let workers = config.work.workers.max(1);
        tracing::info!(version = env!("CARGO_PKG_VERSION"), mode = %config.mode, workers, "working");
        work::run(app, workers, stop).await;
        tracing::info!("stopped");
        Ok(())
    }
}
