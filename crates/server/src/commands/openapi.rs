//! `perennial openapi`: the interface's description, without a running service.

use clap::Args;

use crate::router;

/// Print the OpenAPI document.
#[derive(Debug, Args)]
pub struct Openapi {
    /// The address to put into it
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    public_url: String,
}

impl Openapi {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        println!(
            "{}",
            serde_json::to_string_pretty(&router::openapi(&self.public_url))?
        );
        Ok(())
    }
}
