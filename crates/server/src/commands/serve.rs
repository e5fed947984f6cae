//! `perennial serve`: the service.

use anyhow::Context;
use clap::Args;
use tokio::net::TcpListener;

use crate::{config::Config, http, logging};

/// Serve the interface.
#[derive(Debug, Args)]
pub struct Serve {}

impl Serve {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::from_environment()?;
        logging::start(&config.log);
        let stop = super::stop_signal()?;
        let admin = TcpListener::bind(config.http.admin_listen)
            .await
            .with_context(|| format!("cannot listen on {}", config.http.admin_listen))?;
        http::serve::serve(admin, http::admin::router(), stop).await;
        Ok(())
    }
}
