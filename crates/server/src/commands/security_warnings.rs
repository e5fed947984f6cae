//! Settings that are allowed but weaken a live installation. `serve` logs them; `doctor` and `config
//! check` print them.

use ipnet::IpNet;

use crate::{
    auth::{clients, tenants},
    clock::Clock,
    config::{Config, Mode},
    db::{self, ConnectOptions, PooledConnection},
};

/// A weak setting.
#[derive(Debug)]
pub struct SecurityWarning {
    pub message: String,
    /// The suggested action.
    pub fix: &'static str,
}

/// Returns the weak settings of a live configuration.
pub fn check_config(config: &Config) -> Vec<SecurityWarning> {
    if config.mode != Mode::Live {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if config.http.public_url.starts_with("http://") {
        warnings.push(SecurityWarning {
            message: format!(
                "PERENNIAL_PUBLIC_URL is {}: tokens and client ids are sent without encryption",
                config.http.public_url
            ),
            fix: "terminate TLS in front of the service and use its https:// URL; see docs/how-to/behind-a-proxy",
        });
    }
    for (cell, url) in db::cell_urls(&config.database) {
        if let Ok(options) = ConnectOptions::parse(url)
            && options.may_be_unencrypted()
        {
            warnings.push(SecurityWarning {
                message: format!(
                    "{cell}: the connection to {} may be unencrypted, because sslmode is below require",
                    options.name()
                ),
                fix: "add sslmode=verify-full to the database URL; see docs/reference/configuration",
            });
        }
    }
    warnings
}

/// Returns the clients of a live installation whose allowed addresses include every address.
pub async fn check_clients(
    mode: Mode,
    home: &PooledConnection,
) -> Result<Vec<SecurityWarning>, db::Error> {
    let mut warnings = Vec::new();
    if mode != Mode::Live {
        return Ok(warnings);
    }
    let now = Clock::System.now();
    for (tenant, _) in tenants::table::list(home).await? {
        for client in clients::table::list(home, tenant.id, now).await? {
            let mut networks = client.allow_addresses.iter();
            let everywhere = networks.find(|network| allows_every_address(network));
            if let Some(network) = everywhere.filter(|_| client.disabled_at.is_none()) {
                warnings.push(SecurityWarning {
                    message: format!(
                        "client {} can be used from every address: --allow-address {network}",
                        client.id
                    ),
                    fix: "replace it by a client with the addresses of your servers; see docs/runbooks/leaked-client",
                });
            }
        }
    }
    Ok(warnings)
}

fn allows_every_address(network: &str) -> bool {
    let network = network.parse::<IpNet>();
    network.is_ok_and(|network| network.prefix_len() == 0)
}
