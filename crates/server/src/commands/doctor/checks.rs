//! The checks of `perennial doctor` that a running service has no need of: configuration, schema and service. The others are
//! in `health/`.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    auth::tenants,
    commands::{
        bootstrap::{self, is_unavailable},
        dev::is_ready,
        security_warnings,
    },
    config::{Config, Mode},
    crypto::DerivedKeys,
    db::{self, ConnectOptions, migrate},
    health::{HealthCheck, HealthChecker},
    http::outbound::AddressGuard,
    identity_providers::{DiscoveryTiming, IdentityVerifier},
};

/// The time to connect to a cell.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for all checks of the data.
const CHECKS_TIMEOUT: Duration = Duration::from_mins(5);

/// Runs all checks. Those that query the database are skipped if the schema of a cell is not current.
pub(super) async fn run_all(config: &Config) -> Vec<HealthCheck> {
    let mut checks = Vec::new();
    let mut all_current = true;
    for (cell, url) in db::cell_urls(&config.database) {
        let state = match ConnectOptions::parse(url) {
            Ok(address) => {
                timeout(
                    CONNECT_TIMEOUT,
                    migrate::state(&address, migrate::MIGRATIONS),
                )
                .await
            }
            Err(error) => Ok(Err(error)),
        };
        all_current &= matches!(state, Ok(Ok(migrate::SchemaState::Current)));
        let total = migrate::MIGRATIONS.len();
        let name = "schema";
        checks.push(match state {
            Ok(Ok(migrate::SchemaState::Current)) => {
                HealthCheck::ok(name, format!("{cell}: schema {total}/{total}"))
            }
            Ok(Ok(state)) => {
                let done = match state {
                    migrate::SchemaState::Behind { done } => done,
                    _ => 0,
                };
                HealthCheck::failed(name, format!("{cell}: schema {done}/{total}")).fix(
                    "run `perennial migrate`, or start `perennial serve`, which also migrates",
                )
            }
            Ok(Err(error)) => {
                let check = HealthCheck::failed(name, format!("{cell}: {error:#}"));
                if is_unavailable(&error) {
                    check.fix("check the address (`perennial config show`) and that PostgreSQL is running")
                } else {
                    check.see("runbooks/upgrade")
                }
            }
            Err(_) => {
                let seconds = CONNECT_TIMEOUT.as_secs();
                HealthCheck::failed(name, format!("{cell}: no response in {seconds} s"))
                    .fix("check the address, and that this machine may connect to it")
            }
        });
    }
    if all_current {
        match check_data(config, &mut checks).await {
            Ok(found) => checks.extend(found),
            Err(error) => checks.push(HealthCheck::failed("database", format!("{error:#}"))),
        }
    }
    checks.extend(security_warnings::check_config(config));
    checks.push(check_service(config));
    checks.extend(check_proxies(config));
    checks
}

/// Runs the checks that a service runs too, for all tenants.
async fn check_data(
    config: &Config,
    checks: &mut Vec<HealthCheck>,
) -> anyhow::Result<Vec<HealthCheck>> {
    let name = "keys";
    let keys = match config.master_key.load() {
        Ok(Some(masters)) => Some(DerivedKeys::new(&masters)),
        Ok(None) => {
            let check = HealthCheck::warning(name, "this sandbox has no master key yet");
            checks.push(check.fix("the first `perennial serve` creates one"));
            None
        }
        Err(error) => {
            let check = HealthCheck::failed(name, format!("master key: {error:#}"));
            checks.push(check.fix("set PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE"));
            None
        }
    };
    let verifier = keys.clone().map(|keys| {
        let timing = DiscoveryTiming::default();
        let networks = &config.webhooks.networks;
        let guard = AddressGuard::new(networks, config.mode == Mode::Live);
        IdentityVerifier::new(timing, keys, None, guard)
    });
    let verifier = verifier.transpose()?;
    let db = bootstrap::connect(&config.database)?;
    let home = db.home()?.connection().await?;
    let tenants = tenants::table::list(&home).await?;
    drop(home);
    let checker = HealthChecker {
        db: &db,
        mode: config.mode,
        clocks: bootstrap::clocks(&db).await?,
        keys: keys.as_ref(),
        verifier: verifier.as_ref(),
        tenants: &tenants,
        timeout: CHECKS_TIMEOUT,
    };
    Ok(checker.run().await)
}

fn check_service(config: &Config) -> HealthCheck {
    let admin = config.http.admin_listen.to_string();
    if is_ready(&admin) {
        HealthCheck::ok("service", format!("service ready at {admin}"))
    } else {
        HealthCheck::warning("service", format!("no service is ready at {admin}"))
            .fix("start it with `perennial serve`; ignore this if it runs on another machine")
    }
}

fn check_proxies(config: &Config) -> Option<HealthCheck> {
    config.http.trusted_proxies.is_empty().then(|| {
        let detail = "PERENNIAL_TRUSTED_PROXIES is empty: x-forwarded-for is accepted from secret clients only";
        HealthCheck::warning("configuration", detail)
            .fix("set it if there is a proxy or load balancer in front")
            .see("how-to/behind-a-proxy")
    })
}
