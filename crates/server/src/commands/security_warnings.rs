//! Settings that are allowed but weaken a live installation. `serve` logs them; `doctor` and `config
//! check` print them.

use crate::{
    config::{Config, Mode},
    db::{self, ConnectOptions},
    health::HealthCheck,
};

/// Reports the weak settings of a live configuration.
pub fn check_config(config: &Config) -> Vec<HealthCheck> {
    if config.mode != Mode::Live {
        return Vec::new();
    }
    let mut checks = Vec::new();
    if config.http.public_url.starts_with("http://") {
        let detail = format!(
            "PERENNIAL_PUBLIC_URL is {}: tokens and client ids are sent without encryption",
            config.http.public_url
        );
        checks.push(
            HealthCheck::warning("configuration", detail)
                .fix("terminate TLS in front of the service and use its https:// URL")
                .see("how-to/behind-a-proxy"),
        );
    }
    for (cell, url) in db::cell_urls(&config.database) {
        if let Ok(options) = ConnectOptions::parse(url)
            && options.may_be_unencrypted()
        {
            let detail = format!(
                "{cell}: the connection to {} may be unencrypted, because sslmode is below require",
                options.name()
            );
            checks.push(
                HealthCheck::warning("configuration", detail)
                    .fix("add sslmode=verify-full to the database URL")
                    .see("reference/configuration"),
            );
        }
    }
    checks
}
