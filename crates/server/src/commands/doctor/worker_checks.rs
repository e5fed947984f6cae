//! The checks of background tasks and of what is due.

use jiff::SignedDuration;
use perennial_domain::{Lifecycle, format_minor_units};

use super::Finding;
use crate::{
    auth::tenants,
    commands::{bootstrap, pluralize, tenant::subscriptions_sql},
    db::{Databases, PooledConnection, instance},
    reports,
    subscriptions::{self, due_sql},
    work::leased_task_names,
};

/// How long a transition may be due before it is reported.
const MAX_BACKLOG: SignedDuration = SignedDuration::from_mins(1);
/// How many seconds a background task may be overdue before it is reported.
const MAX_WORKER_DELAY: f64 = 60.0;

pub(super) async fn check_worker(home: &PooledConnection) -> anyhow::Result<Finding> {
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

pub(super) async fn check_backlog(db: &Databases) -> anyhow::Result<Finding> {
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
pub(super) async fn check_unmanaged(
    db: &Databases,
    home: &PooledConnection,
) -> anyhow::Result<Vec<Finding>> {
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

/// The most subscriptions of a tenant whose sums are compared here.
const MAX_COMPARED: usize = 20_000;

/// Compares the sums of reports with the subscriptions.
pub(super) async fn check_reports(
    db: &Databases,
    home: &PooledConnection,
) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let (mut compared, mut skipped) = (0, Vec::new());
    for (tenant, name) in tenants::table::list(home).await? {
        let scope = subscriptions::scope(&tenant);
        match reports::compare_sums(db.cell(&tenant.cell)?, scope, MAX_COMPARED).await? {
            None => skipped.push(name),
            Some(differences) => {
                compared += 1;
                findings.extend(differences.iter().map(|found| {
                    let [reported, stored] = [found.reported, found.stored]
                        .map(|value| format_minor_units(value, found.currency));
                    let currency = found.currency;
                    Finding::problem(
                        format!("tenant {name}: reports say {reported} {currency} per year, the subscriptions are worth {stored}"),
                        "`perennial report rebuild` computes the reports again; see docs/runbooks/wrong-reports",
                    )
                }));
            }
        }
    }
    if findings.is_empty() {
        let tenants = pluralize(compared, "tenant");
        findings.push(Finding::ok(format!(
            "reports of {tenants} equal the subscriptions"
        )));
    }
    if !skipped.is_empty() {
        let names = skipped.join(", ");
        findings.push(Finding::ok(format!(
            "reports not compared, because there are many subscriptions: {names} (`perennial report check` does)"
        )));
    }
    Ok(findings)
}
