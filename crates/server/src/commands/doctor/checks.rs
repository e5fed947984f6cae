//! The checks of `perennial doctor`: schema, database, identity providers and the service. Other files have the rest.

use std::time::Instant;

use jiff::SignedDuration;
use tokio::time::timeout;

use super::{CHECK_TIMEOUT, Finding, key_checks, payment_checks, worker_checks};
use crate::{
    auth::tenants,
    clock::Clock,
    commands::{
        bootstrap::{self, is_unavailable},
        dev::is_ready,
        pluralize,
        security_warnings::{self, SecurityWarning},
    },
    config::{Config, Mode},
    crypto::DerivedKeys,
    db::{
        self, ConnectOptions, PooledConnection, instance, migrate,
        roles::{self, SchemaPrivilege},
    },
    identity_providers::{self, DiscoveryTiming, IdentityVerifier},
};

/// The largest accepted difference between the database's clock and ours.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(2);
/// The oldest PostgreSQL major version that the tests cover.
const OLDEST_TESTED_VERSION: i32 = 15;

/// Runs all checks. Those that query the database are skipped if the schema of a cell is not current.
pub(super) async fn run_all(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut all_current = true;
    for (cell, url) in db::cell_urls(&config.database) {
        let state = match ConnectOptions::parse(url) {
            Ok(address) => timeout(CHECK_TIMEOUT, migrate::state(&address)).await,
            Err(error) => Ok(Err(error)),
        };
        all_current &= matches!(state, Ok(Ok(migrate::SchemaState::Current)));
        let total = migrate::MIGRATIONS.len();
        findings.push(match state {
            Ok(Ok(migrate::SchemaState::Current)) => {
                Finding::ok(format!("{cell}: schema {total}/{total}"))
            }
            Ok(Ok(state)) => {
                let done = match state {
                    migrate::SchemaState::Behind { done } => done,
                    _ => 0,
                };
                Finding::problem(
                    format!("{cell}: schema {done}/{total}"),
                    "run `perennial migrate`, or start `perennial serve`, which also migrates",
                )
            }
            Ok(Err(error)) => {
                let fix = if is_unavailable(&error) {
                    "check the address (`perennial config show`) and that PostgreSQL is running"
                } else {
                    "see docs/runbooks/upgrade"
                };
                Finding::problem(format!("{cell}: {error:#}"), fix)
            }
            Err(_) => Finding::problem(
                format!("{cell}: no response in {} s", CHECK_TIMEOUT.as_secs()),
                "check the address, and that this machine may connect to it",
            ),
        });
    }
    if all_current && let Err(error) = check_database(config, &mut findings).await {
        findings.push(Finding::problem(format!("{error:#}"), "see the message"));
    }
    findings.extend(to_findings(security_warnings::check_config(config)));
    findings.push(check_service(config));
    findings.extend(check_proxies(config));
    findings
}

async fn check_database(config: &Config, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let db = bootstrap::connect(&config.database)?;
    let home = db.home()?.connection().await?;
    findings.push(check_version(&home).await?);
    if !instance::has_statement_timeout(&home).await? {
        findings.push(Finding::warning(
            "a connection pooler drops the timeouts of the service's connections",
            "set them for the database role; see docs/how-to/pgbouncer",
        ));
    }
    findings.push(check_clock_skew(&home).await?);
    for cell in db.cell_names() {
        let connection = db.cell(cell)?.connection().await?;
        findings.push(check_role(config.mode, cell, &connection).await?);
    }
    findings.push(key_checks::check_keys(config, &home).await?);
    let of_clients = security_warnings::check_clients(config.mode, &home).await?;
    findings.extend(to_findings(of_clients));
    findings.extend(check_providers(config, &home).await?);
    findings.push(worker_checks::check_worker(&home).await?);
    findings.push(worker_checks::check_backlog(&db).await?);
    findings.extend(worker_checks::check_unmanaged(&db, &home).await?);
    findings.extend(payment_checks::check_payment_accounts(&db, &home).await?);
    findings.extend(worker_checks::check_reports(&db, &home).await?);
    Ok(())
}

async fn check_version(home: &PooledConnection) -> anyhow::Result<Finding> {
    let (version_number, name, _) = instance::server_info(home).await?;
    Ok(if version_number / 10_000 < OLDEST_TESTED_VERSION {
        Finding::warning(
            format!("PostgreSQL {name}"),
            format!(
                "older than {OLDEST_TESTED_VERSION}, the oldest tested version; plan an upgrade"
            ),
        )
    } else {
        Finding::ok(format!("PostgreSQL {name}"))
    })
}

async fn check_clock_skew(home: &PooledConnection) -> anyhow::Result<Finding> {
    let started_at = Instant::now();
    let (_, _, database_now) = instance::server_info(home).await?;
    let latency = SignedDuration::try_from(started_at.elapsed() / 2)?;
    let skew = Clock::System.now().duration_since(database_now) - latency;
    let message = format!("clock skew {} ms", skew.as_millis().abs());
    Ok(if skew.abs() > MAX_CLOCK_SKEW {
        let fix = "the clocks of this machine and the database differ; synchronize both with NTP";
        Finding::problem(message, fix)
    } else {
        Finding::ok(message)
    })
}

/// Reports whether the role of `DATABASE_URL` can change the schema, which serving does not need.
async fn check_role(
    mode: Mode,
    cell: &str,
    connection: &PooledConnection,
) -> anyhow::Result<Finding> {
    let SchemaPrivilege { role, reason } = roles::own_schema_privilege(connection).await?;
    Ok(match reason {
        None => Finding::ok(format!("{cell}: role {role}, cannot change the schema")),
        Some(reason) if mode == Mode::Live => Finding::warning(
            format!("{cell}: role {role} {reason}, so it can change the schema"),
            "serve with a second role: `perennial migrate --grant-to ROLE`; see docs/how-to/database-roles",
        ),
        Some(_) => Finding::ok(format!("{cell}: role {role}, can change the schema")),
    })
}

async fn check_providers(config: &Config, home: &PooledConnection) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let Ok(Some(masters)) = config.master_key.load() else {
        return Ok(findings);
    };
    let verifier =
        IdentityVerifier::new(DiscoveryTiming::default(), DerivedKeys::new(&masters), None)?;
    for (tenant, _) in tenants::table::list(home).await? {
        for provider in identity_providers::table::list(home, tenant.id).await? {
            let issuer = provider.issuer;
            let fix = "run `perennial provider check`; see docs/runbooks/identity-provider-down";
            let metadata = timeout(CHECK_TIMEOUT, verifier.metadata(&issuer)).await;
            findings.push(match metadata {
                Ok(Ok(metadata)) => {
                    let keys = pluralize(metadata.keys.len(), "key");
                    Finding::ok(format!("provider {issuer}, {keys}"))
                }
                Ok(Err(error)) => Finding::problem(format!("provider {issuer}: {error:#}"), fix),
                Err(_) => {
                    let seconds = CHECK_TIMEOUT.as_secs();
                    let message = format!("provider {issuer}: no response in {seconds} s");
                    Finding::problem(message, fix)
                }
            });
        }
    }
    if findings.is_empty() && config.mode == Mode::Live {
        findings.push(Finding::warning(
            "there is no identity provider, so users cannot sign in",
            "run `perennial provider add`; see docs/how-to/connect-an-identity-provider",
        ));
    }
    Ok(findings)
}

fn to_findings(warnings: Vec<SecurityWarning>) -> impl Iterator<Item = Finding> {
    warnings
        .into_iter()
        .map(|SecurityWarning { message, fix }| Finding::warning(message, fix))
}

fn check_service(config: &Config) -> Finding {
    let admin = config.http.admin_listen.to_string();
    if is_ready(&admin) {
        Finding::ok(format!("service ready at {admin}"))
    } else {
        Finding::warning(
            format!("no service is ready at {admin}"),
            "start it with `perennial serve`; ignore this if it runs on another machine",
        )
    }
}

fn check_proxies(config: &Config) -> Option<Finding> {
    config.http.trusted_proxies.is_empty().then(|| {
        Finding::warning(
            "PERENNIAL_TRUSTED_PROXIES is empty: x-forwarded-for is accepted from secret clients only",
            "set it if there is a proxy or load balancer in front; see docs/how-to/behind-a-proxy",
        )
    })
}
