//! The checks of background tasks, of what is due and of reports.

use jiff::SignedDuration;
use perennial_domain::{Lifecycle, format_minor_units};

use super::{HealthCheck, HealthChecker};
use crate::{
    db::instance,
    reports::{self, SumComparison},
    subscriptions::{self, counts_sql, due_sql},
    timeline::plain_text::pluralize,
    work::leased_task_names,
};

/// How long a transition may be due before it is reported.
const MAX_BACKLOG: SignedDuration = SignedDuration::from_mins(1);
/// How many seconds a background task may be overdue before it is reported.
const MAX_WORKER_DELAY: f64 = 60.0;
/// The most subscriptions of a tenant whose sums are compared here.
const MAX_COMPARED: usize = 20_000;
/// The most unmanaged subscriptions of a tenant that are counted.
const MAX_COUNTED: i64 = 10_000;

impl HealthChecker<'_> {
    pub(super) async fn check_worker(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let home = self.db.home()?.connection().await?;
        let overdue = instance::max_task_delay(&home, &leased_task_names()).await?;
        let check = match overdue {
            Some(seconds) if seconds < MAX_WORKER_DELAY => {
                return Ok(vec![HealthCheck::ok("worker", "worker")]);
            }
            Some(seconds) => {
                let detail = format!("background tasks are overdue by {seconds:.0} s");
                HealthCheck::failed("worker", detail)
            }
            None => HealthCheck::warning("worker", "no worker has run yet"),
        };
        let fix = "run `perennial serve` with PERENNIAL_WORKERS above 0, or `perennial work`";
        Ok(vec![check.fix(fix).see("runbooks/late-worker")])
    }

    pub(super) async fn check_backlog(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let now = self.clocks.billing.now();
        let mut oldest = None;
        for cell in self.db.cell_names() {
            let connection = self.db.cell(cell)?.connection().await?;
            let oldest_in_cell = due_sql::oldest_due_at(self.db.home()?, &connection, now).await?;
            oldest = [oldest, oldest_in_cell].into_iter().flatten().min();
        }
        let name = "subscriptions";
        Ok(vec![match oldest {
            Some(due) if now.duration_since(due) > MAX_BACKLOG => {
                let detail = format!("a subscription transition has been due since {due:.0}");
                HealthCheck::failed(name, detail).see("runbooks/late-worker")
            }
            _ => HealthCheck::ok(name, "no overdue subscriptions"),
        }])
    }

    /// Counts the subscriptions of managed tenants that an external id keeps unmanaged.
    pub(super) async fn check_unmanaged(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let now = self.clocks.billing.now();
        let mut checks = Vec::new();
        for (tenant, name) in self.tenants {
            if tenant.lifecycle == Lifecycle::Recorded {
                continue;
            }
            let connection = self.db.cell(&tenant.cell)?.connection().await?;
            let count =
                counts_sql::count_external(&connection, tenant.id, now, MAX_COUNTED).await?;
            if count > 0 {
                let at_least = if count == MAX_COUNTED {
                    "at least "
                } else {
                    ""
                };
                let subscriptions = pluralize(count, "subscription");
                let detail = format!(
                    "tenant {name}: {at_least}{subscriptions} with an external_subscription_id, not managed"
                );
                let fix = "their payment provider charges them; to let the service do it, set the field to null";
                checks.push(HealthCheck::warning("unmanaged_subscriptions", detail).fix(fix));
            }
        }
        Ok(checks)
    }

    /// Compares the sums of reports with the subscriptions.
    pub(super) async fn check_reports(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let check_name = "reports";
        let mut checks = Vec::new();
        let (mut compared, mut skipped, mut incomplete) = (0, Vec::new(), Vec::new());
        for (tenant, name) in self.tenants {
            let scope = subscriptions::scope(tenant);
            let database = self.db.cell(&tenant.cell)?;
            let differences = match reports::compare_sums(database, scope, MAX_COMPARED).await? {
                SumComparison::Compared(differences) => differences,
                SumComparison::TooMany => {
                    skipped.push(name.as_str());
                    continue;
                }
                SumComparison::Incomplete => {
                    incomplete.push(name.as_str());
                    continue;
                }
            };
            compared += 1;
            checks.extend(differences.iter().map(|found| {
                let [reported, stored] = [found.reported, found.stored]
                    .map(|value| format_minor_units(value, found.currency));
                let currency = found.currency;
                let detail = format!(
                    "tenant {name}: reports say {reported} {currency} per year, the subscriptions are worth {stored}"
                );
                HealthCheck::failed(check_name, detail)
                    .fix("`perennial report rebuild` computes the reports again")
                    .see("runbooks/wrong-reports")
            }));
        }
        if checks.is_empty() && compared > 0 {
            let tenants = pluralize(compared, "tenant");
            let detail = format!("reports of {tenants} equal the subscriptions");
            checks.push(HealthCheck::ok(check_name, detail));
        }
        if !skipped.is_empty() {
            let names = skipped.join(", ");
            let detail = format!(
                "reports not compared, because there are many subscriptions: {names} (`perennial report check` does)"
            );
            checks.push(HealthCheck::ok(check_name, detail));
        }
        if !incomplete.is_empty() {
            let names = incomplete.join(", ");
            let detail = format!(
                "reports are not complete yet, a restored database is still being read: {names}"
            );
            checks.push(HealthCheck::ok(check_name, detail).see("runbooks/wrong-reports"));
        }
        Ok(checks)
    }
}
