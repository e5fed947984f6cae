//! Addresses of this machine: which are free, and what answers there.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    time::Duration,
};

use anyhow::Context;

/// How many ports are tried, from the usual one on.
const TRIED: u16 = 50;

/// A port that nobody listens on: this one, or one of the next.
pub fn free(first: u16) -> anyhow::Result<u16> {
    (first..first.saturating_add(TRIED))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("all ports from {first} on are in use"))
}

/// Where to listen: as a variable says, else at the usual port or one of the next.
pub fn listen(variable: &str, usual: u16) -> anyhow::Result<String> {
    match std::env::var(variable) {
        // What an earlier `eval` has exported may be in use by now; what was set by hand is refused by `serve`.
        Ok(given) if TcpListener::bind(&given).is_ok() => Ok(given),
        _ => Ok(format!("127.0.0.1:{}", free(usual)?)),
    }
}

/// Whether the admin listener at this address says that the service is ready.
pub fn answers_ready(address: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}
