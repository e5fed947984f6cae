//! Free ports and readiness of local services.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    time::Duration,
};

use anyhow::Context;

const MAX_PORTS_TRIED: u16 = 50;

/// Returns the first free local port, starting at `first`.
pub fn find_free(first: u16) -> anyhow::Result<u16> {
    (first..first.saturating_add(MAX_PORTS_TRIED))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("{MAX_PORTS_TRIED} ports from {first} on are in use"))
}

/// An address to listen on.
pub struct ListenAddress {
    pub address: String,
    /// The configured or default address, if it could not be used.
    pub replaced: Option<String>,
}

/// Returns the address in the environment variable or the default one, if it is free, or else a local
/// address with a free port.
pub fn listen_address(variable: &str, default_port: u16) -> anyhow::Result<ListenAddress> {
    // An earlier `eval "$(perennial dev --background)"` may have exported an address that is in use
    // now.
    let wanted = std::env::var(variable)
        .ok()
        .filter(|given| !given.is_empty());
    let wanted = wanted.unwrap_or_else(|| format!("127.0.0.1:{default_port}"));
    if TcpListener::bind(&wanted).is_ok() {
        return Ok(ListenAddress {
            address: wanted,
            replaced: None,
        });
    }
    Ok(ListenAddress {
        address: format!("127.0.0.1:{}", find_free(default_port)?),
        replaced: Some(wanted),
    })
}

/// Returns whether `/readyz` responds with 200 on the admin listener at this address.
pub fn is_ready(address: &str) -> bool {
    let request = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response.starts_with("HTTP/1.1 200"))
    };
    request().unwrap_or(false)
}
