//! A TCP proxy between an instance and its database that can freeze connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::reserve_port;

/// Forwards all bytes. While frozen, the connections with one `application_name` stay open but
/// forward nothing.
pub struct FreezableProxy {
    pub port: u16,
    target: Arc<AtomicU16>,
    frozen: Arc<AtomicBool>,
}

impl FreezableProxy {
    /// Starts a proxy to this port; `name` is the `application_name` of the connections to freeze.
    pub async fn start(port: u16, name: &'static str) -> Self {
        let own_port = reserve_port();
        let listener = TcpListener::bind(("127.0.0.1", own_port)).await.unwrap();
        let (target, frozen) = (
            Arc::new(AtomicU16::new(port)),
            Arc::new(AtomicBool::new(false)),
        );
        let proxy = Self {
            port: own_port,
            target: target.clone(),
            frozen: frozen.clone(),
        };
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let port = target.load(Ordering::SeqCst);
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else {
                    continue;
                };
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = far.into_split();
                let matches = Arc::new(AtomicBool::new(false));
                let (upstream, downstream) = (frozen.clone(), frozen.clone());
                tokio::spawn(forward(
                    near_in,
                    far_out,
                    matches.clone(),
                    upstream,
                    Some(name),
                ));
                tokio::spawn(forward(far_in, near_out, matches, downstream, None));
            }
        });
        proxy
    }

    /// Connects new connections to another port.
    pub fn set_target(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
    }

    pub fn set_frozen(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
    }
}

/// Forwards one direction. The client's direction finds `name` in its first message.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    matches: Arc<AtomicBool>,
    frozen: Arc<AtomicBool>,
    name: Option<&'static str>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..length];
        if name.is_some_and(|name| bytes.windows(name.len()).any(|at| at == name.as_bytes())) {
            matches.store(true, Ordering::SeqCst);
        }
        while matches.load(Ordering::SeqCst) && frozen.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
