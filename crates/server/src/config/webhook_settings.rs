//! Which networks webhook requests may reach.

use ipnet::IpNet;

use super::{
    env::{EnvReader, EnvVar},
    listen::parse_network,
};

static WEBHOOK_NETWORKS: EnvVar = EnvVar {
    name: "PERENNIAL_WEBHOOK_NETWORKS",
    doc: "Addresses or networks that webhook requests may reach in addition to the public internet, separated \
          by commas: `10.20.0.0/16`. By default, loopback, private, link-local, carrier-grade NAT and other \
          reserved addresses are refused, so that a client cannot make the service call internal systems. \
          Everyone who can create webhook endpoints can send requests to these networks. `perennial dev` allows \
          loopback addresses, unless other machines can call its API.",
    default: Some(""),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&WEBHOOK_NETWORKS];

#[derive(Debug, Clone)]
pub struct WebhooksConfig {
    /// Networks that are allowed in addition to public addresses.
    pub networks: Vec<IpNet>,
}

impl WebhooksConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let networks = reader.parse_list(&WEBHOOK_NETWORKS, parse_network);
        Some(Self {
            networks: networks?,
        })
    }
}
