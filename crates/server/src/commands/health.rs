//! `perennial health`: checks the readiness endpoint of the service on this machine.

use clap::Args;

use super::dev::is_ready;
use crate::config::Config;

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if the service is ready and with 1 if not, for example in a
container's HEALTHCHECK. Requests /readyz at PERENNIAL_ADMIN_LISTEN."
)]
pub struct HealthArgs {}

impl HealthArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Self {} = self;
        let address = Config::from_env()?.http.admin_listen;
        if is_ready(&address.to_string()) {
            println!("ready");
            Ok(())
        } else {
            anyhow::bail!("no service is ready at {address}")
        }
    }
}
