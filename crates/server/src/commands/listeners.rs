//! The listeners of `serve`: bound here, or passed by systemd.
//!
//! **Socket activation.** systemd can open the API's socket and pass it (`LISTEN_FDS`, see sd_listen_fds(3)). It
//! keeps the socket open while the service restarts, and the kernel queues new connections until the next
//! process accepts them. The admin listener is always bound here.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use listenfd::ListenFd;
use tokio::net::TcpListener;

/// Returns the API's socket: the one that systemd passed, or else a new one.
pub(super) async fn listen_for_api(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let mut passed = ListenFd::from_env();
    match passed.len() {
        0 => bind(address).await,
        1 => {
            let listener = passed.take_tcp_listener(0);
            let listener = listener.context(
                "systemd passed a socket that is not a TCP socket; set ListenStream= of perennial.socket to an \
                 address and a port",
            )?;
            use_passed(listener.context("systemd passed no socket")?, address)
        }
        count => bail!(
            "systemd passed {count} sockets, but the service takes one, for the API; leave one ListenStream= in \
             perennial.socket"
        ),
    }
}

fn use_passed(
    listener: std::net::TcpListener,
    expected: SocketAddr,
) -> anyhow::Result<TcpListener> {
    let address = listener.local_addr()?;
    // Other settings and commands rely on PERENNIAL_LISTEN, such as the allowed hosts.
    if address != expected {
        bail!(
            "systemd passed a socket for {address}, but PERENNIAL_LISTEN is {expected}; set ListenStream= of \
             perennial.socket and PERENNIAL_LISTEN to the same address"
        );
    }
    listener.set_nonblocking(true)?;
    tracing::info!(%address, "using the socket that systemd passed");
    Ok(TcpListener::from_std(listener)?)
}

pub(super) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; set PERENNIAL_LISTEN, PERENNIAL_ADMIN_LISTEN or PERENNIAL_CONSOLE_LISTEN to another \
             address"
        )
    })
}
