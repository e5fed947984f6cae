//! The check of clients: which allow every address explicitly.

use ipnet::IpNet;

use super::{HealthCheck, HealthChecker};
use crate::{
    auth::Tenant,
    clients,
    config::Mode,
    db::{self, PooledConnection},
};

impl HealthChecker<'_> {
    pub(super) async fn check_clients(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let home = self.db.home()?.connection().await?;
        Ok(check_clients(self.mode, &home, self.tenants).await?)
    }
}

/// Reports the clients of a live installation whose allowed addresses include every address.
pub async fn check_clients(
    mode: Mode,
    home: &PooledConnection,
    tenants: &[(Tenant, String)],
) -> Result<Vec<HealthCheck>, db::Error> {
    let mut checks = Vec::new();
    if mode != Mode::Live {
        return Ok(checks);
    }
    for (tenant, _) in tenants {
        for client in clients::table::list(home, tenant.id).await? {
            let mut networks = client.settings.allow_addresses.iter();
            let everywhere = networks.find(|network| allows_every_address(network));
            if let Some(network) = everywhere.filter(|_| client.disabled_at.is_none()) {
                let id = client.id;
                let detail = format!(
                    "client {id} can be used from every address: --allow-address {network}"
                );
                checks.push(
                    HealthCheck::warning("clients", detail)
                        .fix("replace it by a client with the addresses of your servers")
                        .see("runbooks/leaked-client"),
                );
            }
        }
    }
    Ok(checks)
}

fn allows_every_address(network: &str) -> bool {
    let network = network.parse::<IpNet>();
    network.is_ok_and(|network| network.prefix_len() == 0)
}
