//! `perennial serve`: the service.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use tokio::net::TcpListener;

use super::prepare::{self, Expected};
use crate::{
    admin,
    app::App,
    clock::Clock,
    config::Config,
    http::{
        peer::TrustedProxies,
        serve::{Serving, serve},
    },
    logging,
    randomness::Randomness,
    router::Interface,
    work,
};

/// Serve the interface.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  export DATABASE_URL=postgres://postgres@127.0.0.1/perennial
  PERENNIAL_MODE=sandbox perennial serve
  curl http://127.0.0.1:9090/readyz

Everything is set by environment variables: perennial config show")]
pub struct Serve {}

impl Serve {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::from_environment()?;
        let _logging = logging::start(&config.log)?;
        let stop = super::stop_signal()?;

        // Both ports are ours before anything else happens, and liveness is answered while we may
        // still wait for the database.
        let interface = listen(config.http.listen).await?;
        let admin = listen(config.http.admin_listen).await?;
        let prepared = Arc::new(OnceLock::new());
        let admin_router = admin::router(&prepared, admin::collect_metrics()?, stop.clone());
        let admin_stop = tokio_util::sync::CancellationToken::new();
        let admin_serving = Serving {
            name: "admin",
            proxies: TrustedProxies::default(),
            connections: 100,
            connections_per_peer: 100,
            drain: Duration::ZERO,
        };
        let admin = tokio::spawn(serve(
            admin,
            admin_router,
            admin_serving,
            admin_stop.clone(),
        ));

        let master = config.keys.master(Randomness)?;
        let expected = Expected {
            mode: config.mode,
            master: Some(master.clone()),
        };
        let waiting = prepare::prepare_patiently(&config.database, &expected);
        let prepared_cells = tokio::select! {
            prepared = waiting => prepared?,
            () = stop.cancelled() => return Ok(()),
        };
        let app = Arc::new(App::new(&config, &master, Clock::System)?);
        let migrations_applied = prepared_cells.applied.len();
        prepared_cells.open_when_back(&app.db, &expected);
        let answers = Interface::new(&app)?;
        let work = tokio::spawn(work::run(app.clone(), config.work.workers, stop.clone()));
        app.bearers.sessions.watch();
        tokio::spawn(app.clone().follow_billing_time());
        app.db.opened().await;
        let _ = prepared.set(app);
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            mode = %config.mode,
            interface = %config.http.listen,
            admin = %config.http.admin_listen,
            public_url = config.http.public_url,
            migrations_applied,
            "serving"
        );
        let serving = Serving {
            name: "interface",
            proxies: TrustedProxies::new(&config.http.trusted_proxies),
            connections: config.limits.connections.min(open_files()),
            connections_per_peer: config.limits.connections_per_peer,
            drain: config.http.drain,
        };
        serve(interface, answers, serving, stop).await;
        work.await?;
        admin_stop.cancel();
        admin.await?;
        tracing::info!("stopped");
        Ok(())
    }
}

/// How many connections there are files for, with the soft limit raised to the hard one.
fn open_files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// For the database, the log, the listeners and the runtime.
    const OWN: u64 = 200;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    let files = if raised.is_ok() { maximum } else { current };
    files.map_or(usize::MAX, |files| {
        usize::try_from(files.saturating_sub(OWN).max(1)).unwrap_or(usize::MAX)
    })
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address} (PERENNIAL_LISTEN and PERENNIAL_ADMIN_LISTEN choose others)"
        )
    })
}
