//! The checks of `perennial doctor`.

use std::time::Instant;

use jiff::SignedDuration;
use perennial_domain::{Lifecycle, NotificationState};
use tokio::time::timeout;

use super::{CHECK_TIMEOUT, Finding};
use crate::{
    auth::{tenants, tokens},
    clock::Clock,
    commands::{
        bootstrap::{self, is_unavailable},
        dev::is_ready,
        pluralize,
        security_warnings::{self, SecurityWarning},
        tenant::subscriptions_sql,
    },
    config::{Config, Mode},
    crypto::DerivedKeys,
    db::{
        self, ConnectOptions, Databases, PooledConnection, instance, migrate,
        roles::{self, SchemaPrivilege},
    },
    identity_providers::{self, DiscoveryTiming, IdentityVerifier},
    payment_accounts::{self, notifications_sql},
    subscriptions::due_sql,
    work::leased_task_names,
};

/// The largest accepted difference between the database's clock and ours.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(2);
/// How long a transition may be due before it is reported.
const MAX_BACKLOG: SignedDuration = SignedDuration::from_mins(1);
/// How many seconds a background task may be overdue before it is reported.
const MAX_WORKER_DELAY: f64 = 60.0;
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
    findings.push(check_keys(config, &home).await?);
    let of_clients = security_warnings::check_clients(config.mode, &home).await?;
    findings.extend(to_findings(of_clients));
    findings.extend(check_providers(config, &home).await?);
    findings.push(check_worker(&home).await?);
    findings.push(check_backlog(&db).await?);
    findings.extend(check_unmanaged(&db, &home).await?);
    findings.extend(check_payment_accounts(&db, &home).await?);
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

async fn check_keys(config: &Config, home: &PooledConnection) -> anyhow::Result<Finding> {
    let masters = match config.master_key.load() {
        Ok(Some(masters)) => masters,
        Ok(None) => {
            let fix = "the first `perennial serve` creates one";
            return Ok(Finding::warning("this sandbox has no master key yet", fix));
        }
        Err(error) => {
            let fix = "set PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE";
            return Ok(Finding::problem(format!("master key: {error:#}"), fix));
        }
    };
    let keys = DerivedKeys::new(&masters);
    let state = instance::master_key_state(home).await?;
    if let Err((message, fix)) = bootstrap::check_master_keys(&keys, &state) {
        let fix = format!("{fix}; see docs/runbooks/backup");
        return Ok(Finding::problem(format!("the database {message}"), fix));
    }
    if keys.previous().is_some() {
        return Ok(check_rotation(&keys, &state));
    }
    let now = Clock::System.now();
    let signing_keys = tokens::table::list(home).await?;
    Ok(
        if signing_keys.iter().any(|key| key.validity.can_sign(now)) {
            Finding::ok("master key, signing key")
        } else {
            let fix = "`perennial keys rotate` creates one; see docs/runbooks/rotate-signing-keys";
            Finding::problem("there is no key to sign access tokens", fix)
        },
    )
}

/// Reports the next step of a rotation of the master key.
fn check_rotation(keys: &DerivedKeys, state: &instance::MasterKeyState) -> Finding {
    let is_in_use = state.check.as_deref() == Some(keys.present().check.as_slice());
    if is_in_use && state.previous_check.is_none() {
        Finding::warning(
            "PERENNIAL_MASTER_KEY_PREVIOUS is set, but nothing in the database needs it",
            "remove it and restart; see docs/runbooks/leaked-master-key",
        )
    } else {
        Finding::warning(
            "the master key is being replaced",
            "when every instance has both keys, run `perennial keys rewrap`; see docs/runbooks/leaked-master-key",
        )
    }
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

async fn check_worker(home: &PooledConnection) -> anyhow::Result<Finding> {
    let overdue = instance::max_task_delay(home, &leased_task_names()).await?;
    let fix = "run `perennial serve` with PERENNIAL_WORKERS above 0, or `perennial work`; see docs/runbooks/late-worker";
    Ok(match overdue {
        Some(seconds) if seconds < MAX_WORKER_DELAY => Finding::ok("worker"),
        Some(seconds) => Finding::problem(
            format!("background tasks are overdue by {seconds:.0} s"),
            fix,
        ),
        None => Finding::warning("no worker has run yet", fix),
    })
}

async fn check_backlog(db: &Databases) -> anyhow::Result<Finding> {
    let now = bootstrap::clocks(db).await?.billing.now();
    let mut oldest = None;
    for cell in db.cell_names() {
        let connection = db.cell(cell)?.connection().await?;
        let oldest_in_cell = due_sql::oldest_due_at(db.home()?, &connection, now).await?;
        oldest = [oldest, oldest_in_cell].into_iter().flatten().min();
    }
    Ok(match oldest {
        Some(due) if now.duration_since(due) > MAX_BACKLOG => Finding::problem(
            format!("a subscription transition has been due since {due:.0}"),
            "see docs/runbooks/late-worker",
        ),
        _ => Finding::ok("no overdue subscriptions"),
    })
}

/// Counts the subscriptions of managed tenants that an external id keeps unmanaged.
async fn check_unmanaged(db: &Databases, home: &PooledConnection) -> anyhow::Result<Vec<Finding>> {
    let now = bootstrap::clocks(db).await?.billing.now();
    let mut findings = Vec::new();
    for (tenant, name) in tenants::table::list(home).await? {
        if tenant.lifecycle == Lifecycle::Recorded {
            continue;
        }
        let connection = db.cell(&tenant.cell)?.connection().await?;
        let count = subscriptions_sql::count_external(&connection, tenant.id, now).await?;
        if count > 0 {
            let subscriptions = pluralize(count, "subscription");
            findings.push(Finding::warning(
                format!("tenant {name}: {subscriptions} with an external_subscription_id, not managed"),
                "their payment provider charges them; to let the service do it, set the field to null",
            ));
        }
    }
    Ok(findings)
}

/// Reports payment accounts that receive nothing, and what a person must look at.
async fn check_payment_accounts(
    db: &Databases,
    home: &PooledConnection,
) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (tenant, _) in tenants::table::list(home).await? {
        let connection = db.cell(&tenant.cell)?.connection().await?;
        for account in payment_accounts::list_all(&connection, tenant.id).await? {
            let id = account.id;
            let fix = format!("see `perennial payment-account check {id}`");
            if !account.has_secret {
                let message = format!("payment account {id} has no secret, so it receives nothing");
                findings.push(Finding::warning(message, fix.clone()));
            }
            let states = [NotificationState::Waiting, NotificationState::Failed];
            let counts = notifications_sql::count_by_state(&connection, tenant.id, id, &states);
            for (state, count) in counts.await? {
                let notifications = pluralize(count, "notification");
                let message = format!("payment account {id}: {notifications} {state}");
                findings.push(Finding::warning(message, fix.clone()));
            }
            if account.pending_commands > 0 {
                let commands = pluralize(account.pending_commands, "command");
                let message = format!("payment account {id}: {commands} not acknowledged");
                findings.push(Finding::warning(message, fix));
            }
        }
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
