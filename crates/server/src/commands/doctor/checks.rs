//! The checks of `perennial doctor`.

use std::time::Instant;

use jiff::SignedDuration;
use tokio::time::timeout;

use super::{Finding, PATIENCE};
use crate::{
    callers::{tenants, tokens},
    clock::Clock,
    commands::{dev::answers_ready, prepare::is_unavailable, so_many},
    config::{Config, Mode},
    db::{self, Address, Connection, Db, instance, migrate},
    keys::{self, SealingKey},
    providers::{self, Patience, Providers},
    subscriptions::due,
};

/// By how much the database's clock may differ from ours.
const SKEW: SignedDuration = SignedDuration::from_secs(2);
/// How long something may be due before it is late.
const LATE: SignedDuration = SignedDuration::from_mins(1);
/// The oldest PostgreSQL that the tests have seen.
const OLDEST: i32 = 15;

/// All of them; those that need the database only if it answers.
pub(super) async fn all(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut current = true;
    for (cell, url) in db::addresses(&config.database) {
        let state = match Address::parse(url) {
            Ok(address) => timeout(PATIENCE, migrate::state(&address)).await,
            Err(error) => Ok(Err(error)),
        };
        let steps = migrate::MIGRATIONS.len();
        findings.push(match state {
            Ok(Ok(migrate::State::Current)) => {
                Finding::fine(format!("{cell}: schema {steps}/{steps}"))
            }
            Ok(Ok(state)) => {
                current = false;
                let done = match state {
                    migrate::State::Behind { done } => done,
                    _ => 0,
                };
                Finding::wrong(
                    format!("{cell}: schema {done}/{steps}"),
                    "run `perennial migrate`, or start `perennial serve`, which does the same",
                )
            }
            Ok(Err(error)) => {
                current = false;
                let todo = if is_unavailable(&error) {
                    "is the address right (perennial config show), and does PostgreSQL run?"
                } else {
                    "→ docs/runbooks/upgrade"
                };
                Finding::wrong(format!("{cell}: {error:#}"), todo)
            }
            Err(_) => {
                current = false;
                Finding::wrong(
                    format!("{cell}: no answer in {} s", PATIENCE.as_secs()),
                    "is the address right, and may this machine reach it?",
                )
            }
        });
    }
    if current {
        match with_database(config, &mut findings).await {
            Ok(()) => {}
            Err(error) => findings.push(Finding::wrong(format!("{error:#}"), "see the message")),
        }
    }
    findings.extend(surroundings(config));
    findings
}

async fn with_database(config: &Config, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let small = crate::config::Database {
        pool: 2,
        lanes: 1,
        ..config.database.clone()
    };
    let db = Db::start(&small)?;
    let home = db.home()?.connection().await?;
    findings.push(version(&home).await?);
    findings.push(skew(&home).await?);
    findings.push(keys(config, &home).await?);
    findings.extend(providers(config, &home).await?);
    findings.push(worker(&home).await?);
    findings.push(backlog(&db).await?);
    Ok(())
}

async fn version(home: &Connection) -> anyhow::Result<Finding> {
    let (number, name, _) = instance::server(home).await?;
    Ok(if number / 10_000 < OLDEST {
        Finding::notable(
            format!("PostgreSQL {name}"),
            format!(
                "it is older than {OLDEST}, the oldest that this is tested with; plan an upgrade"
            ),
        )
    } else {
        Finding::fine(format!("PostgreSQL {name}"))
    })
}

async fn skew(home: &Connection) -> anyhow::Result<Finding> {
    let asked = Instant::now();
    let (_, _, theirs) = instance::server(home).await?;
    let way = SignedDuration::try_from(asked.elapsed() / 2)?;
    let skew = Clock::System.now().duration_since(theirs) - way;
    let shown = format!("clock skew {} ms", skew.as_millis().abs());
    Ok(if skew.abs() > SKEW {
        let todo = "this machine and the database disagree on the time; let both follow NTP";
        Finding::wrong(shown, todo)
    } else {
        Finding::fine(shown)
    })
}

async fn keys(config: &Config, home: &Connection) -> anyhow::Result<Finding> {
    let master = match config.keys.found() {
        Ok(Some(master)) => master,
        Ok(None) => {
            let todo = "the first `perennial serve` makes one";
            return Ok(Finding::notable("this sandbox has no master key yet", todo));
        }
        Err(error) => {
            let todo = "set PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE";
            return Ok(Finding::wrong(format!("master key: {error:#}"), todo));
        }
    };
    if !instance::knows(home, &keys::check_value(&master)).await? {
        return Ok(Finding::wrong(
            "the master key is not the one that the database was set up with",
            "give that one as PERENNIAL_MASTER_KEY → docs/runbooks/backup",
        ));
    }
    let now = Clock::System.now();
    let all = tokens::table::list(home).await?;
    Ok(if all.iter().any(|key| key.times.signs(now)) {
        Finding::fine("master key, signing key")
    } else {
        let todo = "perennial keys rotate makes one → docs/runbooks/rotate-signing-keys";
        Finding::wrong("no key signs access tokens", todo)
    })
}

async fn providers(config: &Config, home: &Connection) -> anyhow::Result<Vec<Finding>> {
    let mut found = Vec::new();
    let Ok(Some(master)) = config.keys.found() else {
        return Ok(found);
    };
    let asked = Providers::new(Patience::default(), SealingKey::of(&master), None)?;
    for (tenant, _) in tenants::table::list(home).await? {
        for provider in providers::table::list(home, tenant.id).await? {
            let issuer = provider.issuer.clone();
            let answer = timeout(PATIENCE, asked.published(&issuer)).await;
            found.push(match answer {
                Ok(Ok(published)) => {
                    let keys = so_many(published.keys.len(), "key");
                    Finding::fine(format!("provider {issuer}, {keys}"))
                }
                Ok(Err(error)) => Finding::wrong(
                    format!("provider {issuer}: {error:#}"),
                    "perennial provider check → docs/runbooks/provider-down",
                ),
                Err(_) => Finding::wrong(
                    format!("provider {issuer}: no answer in {} s", PATIENCE.as_secs()),
                    "perennial provider check → docs/runbooks/provider-down",
                ),
            });
        }
    }
    if found.is_empty() && config.mode == Mode::Live {
        found.push(Finding::notable(
            "no identity provider is listed, so nobody can sign in",
            "perennial provider add → docs/guides/connect-a-provider",
        ));
    }
    Ok(found)
}

async fn worker(home: &Connection) -> anyhow::Result<Finding> {
    let overdue = instance::overdue(home).await?;
    let todo = "is `perennial serve` running with PERENNIAL_WORKERS above 0, or `perennial work`? → docs/runbooks/late-worker";
    Ok(match overdue {
        Some(seconds) if seconds < 60.0 => Finding::fine("worker"),
        Some(seconds) => Finding::wrong(
            format!("no worker has taken up its work for {seconds:.0} s"),
            todo,
        ),
        None => Finding::notable("no worker has ever run here", todo),
    })
}

async fn backlog(db: &Db) -> anyhow::Result<Finding> {
    let now = crate::commands::prepare::clocks(db).await?.billing.now();
    let mut oldest = None;
    for cell in db.cells() {
        let connection = db.cell(cell)?.connection().await?;
        let found = due::oldest(db.home()?, &connection, now).await?;
        oldest = [oldest, found].into_iter().flatten().min();
    }
    Ok(match oldest {
        Some(due) if now.duration_since(due) > LATE => Finding::wrong(
            format!("a subscription was due at {due:.0} and has not been moved"),
            "→ docs/runbooks/late-worker",
        ),
        _ => Finding::fine("nothing is late"),
    })
}

/// What is around the service.
fn surroundings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let admin = config.http.admin_listen.to_string();
    findings.push(if answers_ready(&admin) {
        Finding::fine(format!("a service answers that it is ready, at {admin}"))
    } else {
        Finding::notable(
            format!("no service is ready at {admin}"),
            "perennial serve starts one; if it runs elsewhere, this is as it should be",
        )
    });
    if config.http.trusted_proxies.is_empty() {
        findings.push(Finding::notable(
            "PERENNIAL_TRUSTED_PROXIES is empty: x-forwarded-for is believed from secret clients only",
            "set it if a proxy or load balancer stands in front → docs/guides/behind-a-proxy",
        ));
    }
    findings
}
