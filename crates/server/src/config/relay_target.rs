//! The message broker of `perennial relay`.

use secrecy::SecretString;

use super::env::{EnvReader, EnvVar};

static TO: EnvVar = EnvVar {
    name: "PERENNIAL_RELAY_TO",
    doc: "URL of the NATS server to which `perennial relay` publishes events, such as \
          `nats://user:password@nats.example.com:4222`. `tls://` requires TLS. Separate the servers of a cluster by \
          commas. `--to` replaces it.",
    default: None,
    secret: true,
};

pub static VARIABLES: &[&EnvVar] = &[&TO];

/// Reads the URLs of the servers.
pub(super) fn read(reader: &mut EnvReader) -> Option<SecretString> {
    reader.get(&TO).map(SecretString::from)
}
