//! `perennial health`: asks the service beside it whether it is ready.

use clap::Args;

use super::dev::answers_ready;
use crate::config::Config;

/// Ask the service on this machine whether it is ready.
#[derive(Debug, Args)]
#[command(
    after_help = "For a container's HEALTHCHECK. Exits with 0 if it is ready, with 1 if not.
Asks PERENNIAL_ADMIN_LISTEN."
)]
pub struct Health {}

impl Health {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Self {} = self;
        let address = Config::from_environment()?.http.admin_listen;
        if answers_ready(&address.to_string()) {
            println!("ready");
            Ok(())
        } else {
            anyhow::bail!("no service is ready at {address}")
        }
    }
}
