//! The admin endpoints on their own listener, as `serve`, `work` and `relay` run them.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    admin::{self, ReadyApp},
    app::App,
    http::{
        client_ip::TrustedProxies,
        serve::{ListenerConfig, serve},
    },
};

const MAX_CONNECTIONS: usize = 100;

/// Responds on the admin listener until it is stopped, also while the process stops.
pub(super) struct AdminServer {
    ready_app: ReadyApp,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl AdminServer {
    /// Starts on the address of `--admin-listen`.
    pub(super) async fn bind(
        address: SocketAddr,
        process_stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| {
            format!("cannot listen on {address}; use another address for --admin-listen")
        })?;
        Self::start(listener, process_stop)
    }

    /// Installs the metrics recorder and starts to respond. Readiness fails until
    /// [`set_ready`](Self::set_ready), and again once `process_stop` is cancelled.
    pub(super) fn start(
        listener: TcpListener,
        process_stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let ready_app = Arc::new(OnceLock::new());
        let router = admin::router(&ready_app, admin::install_metrics()?, process_stop.clone());
        let config = ListenerConfig {
            // The listener's label in metrics.
            name: "admin",
            proxies: TrustedProxies::default(),
            max_connections: MAX_CONNECTIONS,
            max_connections_per_ip: MAX_CONNECTIONS,
            drain_time: Duration::ZERO,
            closing: CancellationToken::new(),
        };
        let stop = CancellationToken::new();
        Ok(Self {
            ready_app,
            task: tokio::spawn(serve(listener, router, config, stop.clone())),
            stop,
        })
    }

    pub(super) fn set_ready(&self, app: &Arc<App>) {
        let _ = self.ready_app.set(app.clone());
    }

    /// Closes the listener and waits for running requests.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.task.await?)
    }
}
