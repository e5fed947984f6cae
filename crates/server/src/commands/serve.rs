//! `perennial serve`: serves the API and, on ports of their own, the admin endpoints and if configured the console, and
//! runs the background tasks.

use clap::Args;

use super::{
    admin_server::AdminServer,
    bootstrap::{self, StartedApp},
    listeners, security_warnings,
};
use crate::{
    app::App,
    auth::tenants,
    config::Config,
    health::check_clients,
    http::{
        client_ip::TrustedProxies,
        serve::{ListenerConfig, serve},
    },
    logging,
    router::ApiService,
    work,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  export DATABASE_URL=postgres://postgres@127.0.0.1/perennial
  PERENNIAL_MODE=sandbox perennial serve
  curl http://127.0.0.1:9090/readyz

All settings are environment variables: perennial config show")]
pub struct ServeArgs {}

impl ServeArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::from_env()?;
        let _logging = logging::init(&config.log)?;
        let stop = super::stop_signal()?;

        // Bind all ports first, so that a port in use is reported immediately and /livez responds
        // while the service waits for the database.
        let api_listener = listeners::listen_for_api(config.http.listen).await?;
        let admin_listener = listeners::bind(config.http.admin_listen).await?;
        let console_listener = match config.console.own_listener() {
            Some(address) => Some(listeners::bind(address).await?),
            None => None,
        };
        let admin_server = AdminServer::start(admin_listener, &stop)?;

        let started = bootstrap::start_app(&config, &stop).await?;
        let Some(StartedApp {
            app,
            migrations_applied,
        }) = started
        else {
            // A stop signal arrived while the service waited for the database.
            return Ok(());
        };
        log_security_warnings(&config, &app).await;
        let api = ApiService::new(&app)?;
        let console = ApiService::of_console(&app)?;
        let background_tasks =
            tokio::spawn(work::run(app.clone(), config.work.workers, stop.clone()));
        app.start_caches();
        // Waits at most one second per database, so an unavailable one does not prevent the start.
        app.db.wait_until_connected().await;
        admin_server.set_ready(&app);
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            mode = %config.mode,
            api = %config.http.listen,
            admin = %config.http.admin_listen,
            console = config.console.own_listener().map(tracing::field::display),
            public_url = config.http.public_url,
            migrations_applied,
            "serving"
        );
        let available_files = raise_file_limit();
        let listener_config = |name| ListenerConfig {
            // The listener's label in metrics.
            name,
            proxies: TrustedProxies::new(&config.http.trusted_proxies),
            max_connections: config.limits.connections.min(available_files),
            max_connections_per_ip: config.limits.connections_per_peer,
            drain_time: config.http.drain,
            // Requests that wait for events end: they would outlast the shutdown, and their clients continue
            // with another instance.
            closing: app.closing.clone(),
        };
        let serve_console = async {
            if let Some((listener, console)) = console_listener.zip(console) {
                serve(listener, console, listener_config("console"), stop.clone()).await;
            }
        };
        let serve_api = serve(api_listener, api, listener_config("api"), stop.clone());
        tokio::join!(serve_api, serve_console);
        app.authenticator.sessions.store_last_uses().await;
        background_tasks.await?;
        admin_server.stop().await?;
        tracing::info!("stopped");
        Ok(())
    }
}

async fn log_security_warnings(config: &Config, app: &App) {
    let mut warnings = security_warnings::check_config(config);
    // A failed read is reported by the readiness check.
    if let Ok(home) = app.db.home()
        && let Ok(home) = home.connection().await
        && let Ok(tenants) = tenants::table::list(&home).await
        && let Ok(of_clients) = check_clients(config.mode, &home, &tenants).await
    {
        warnings.extend(of_clients);
    }
    for warning in warnings {
        tracing::warn!(fix = warning.advice(), "{}", warning.detail);
    }
}

/// Raises the soft limit of open files to the hard limit, and returns how many of them are left for
/// connections.
fn raise_file_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Open files for the database, the log, the listeners and the runtime.
    const RESERVED_FILES: u64 = 200;
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
        usize::try_from(files.saturating_sub(RESERVED_FILES).max(1)).unwrap_or(usize::MAX)
    })
}
