//! `perennial openapi`: prints the OpenAPI document without a running service.

use clap::Args;

use crate::router;

#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// The server URL to put into the document
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    public_url: String,
}

impl OpenapiArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let document = router::openapi(&self.public_url);
        println!("{}", serde_json::to_string_pretty(&document)?);
        Ok(())
    }
}
