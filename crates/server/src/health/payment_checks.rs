//! The check of payment accounts.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{NotificationState, PaymentAccount, TenantId};

use super::{HealthCheck, HealthChecker};
use crate::{
    db::PooledConnection,
    payment_accounts::{self, notifications_sql, support_sql},
    timeline::plain_text::{date, pluralize},
};

/// How long a change may be pending before it is reported.
const MAX_PENDING: SignedDuration = SignedDuration::from_mins(5);
/// How long a command may be pending before it is reported.
const MAX_UNACKNOWLEDGED: SignedDuration = SignedDuration::from_mins(15);
/// Accounts are reconciled every hour. A second run may fail.
const MAX_RECONCILE_AGE: SignedDuration = SignedDuration::from_hours(2);
/// A new account may wait this long for its first notification.
const MAX_SILENCE: SignedDuration = SignedDuration::from_hours(24);

const NAME: &str = "payment_accounts";

impl HealthChecker<'_> {
    /// Reports accounts that receive nothing or are not reconciled, and what a person must look at.
    pub(super) async fn check_payment_accounts(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let mut checks = Vec::new();
        for (tenant, name) in self.tenants {
            let tenant_flag = if self.tenants.len() > 1 {
                format!(" --tenant {name}")
            } else {
                String::new()
            };
            let connection = self.db.cell(&tenant.cell)?.connection().await?;
            for account in payment_accounts::list_all(&connection, tenant.id).await? {
                let check = AccountCheck {
                    connection: &connection,
                    tenant: tenant.id,
                    tenant_flag: &tenant_flag,
                    account: &account,
                    now: self.clocks.real.now(),
                };
                let found = check.run().await?;
                if found.is_empty() {
                    let (id, provider) = (account.id, account.provider);
                    let detail = format!("payment account {id}, {provider}");
                    checks.push(HealthCheck::ok(NAME, detail));
                }
                checks.extend(found);
            }
        }
        Ok(checks)
    }
}

/// The check of one account.
struct AccountCheck<'a> {
    connection: &'a PooledConnection,
    tenant: TenantId,
    /// The flag of suggested commands, with a space before it. Empty if there is one tenant.
    tenant_flag: &'a str,
    account: &'a PaymentAccount,
    now: Timestamp,
}

impl AccountCheck<'_> {
    async fn run(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let mut findings = self.check_connection();
        findings.extend(self.check_objects().await?);
        findings.extend(self.check_commands().await?);
        Ok(findings)
    }

    fn warn(&self, message: &str, fix: String) -> HealthCheck {
        let detail = format!("payment account {}: {message}", self.account.id);
        HealthCheck::warning(NAME, detail).fix(fix)
    }

    /// Suggests a command about the account.
    fn suggest(&self, command: &str) -> String {
        let (id, tenant_flag) = (self.account.id, self.tenant_flag);
        format!("run `perennial payment-account {command} {id}{tenant_flag}`")
    }

    /// Suggests `payment-account check`, which asks the payment provider.
    fn check_command(&self) -> String {
        self.suggest("check")
    }

    /// Suggests `payment-account show`, which lists reasons.
    fn show_command(&self) -> String {
        self.suggest("show")
    }

    /// Checks the secret, the last notification and the last reconcile.
    fn check_connection(&self) -> Vec<HealthCheck> {
        let account = self.account;
        let mut findings = Vec::new();
        let is_older = |since: Timestamp, max| self.now.duration_since(since) > max;
        if !account.has_secret {
            let fix = format!("{} with the secret of its webhook", self.suggest("rotate"));
            findings.push(self.warn("no secret, so it receives nothing", fix));
        } else if account.last_heard_at.is_none() && is_older(account.created_at, MAX_SILENCE) {
            let message = "no notification was ever received";
            findings.push(self.warn(message, self.check_command()));
        }
        let reconciled = account.last_reconciled_at.unwrap_or(account.created_at);
        if account.has_api_key && is_older(reconciled, MAX_RECONCILE_AGE) {
            let message = format!("not reconciled since {} UTC", date(reconciled));
            let check = self.warn(&message, self.check_command());
            findings.push(check.see("runbooks/payment-events-missed"));
        }
        findings
    }

    /// Checks what is not applied. Failed notifications stand for their objects.
    async fn check_objects(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let (tenant, id) = (self.tenant, self.account.id);
        let page = "runbooks/payment-notification-failed";
        let mut findings = Vec::new();
        let counts = notifications_sql::count_unresolved(self.connection, tenant, id).await?;
        // Waiting ones are counted by their objects below.
        let is_waiting = |state: NotificationState| state == NotificationState::Waiting;
        for (state, number) in counts.iter().filter(|(state, _)| !is_waiting(*state)) {
            let command = format!("notifications --state {state} --account");
            let message = format!("{} {state}", pluralize(number, "notification"));
            findings.push(self.warn(&message, self.suggest(&command)).see(page));
        }
        let is_failed = |(state, _): &(_, _)| *state == NotificationState::Failed;
        let has_failed = counts.iter().any(is_failed);
        let counts = support_sql::count_unresolved_objects(self.connection, tenant, id).await?;
        let failed = if has_failed { 0 } else { counts.failed };
        for (number, state) in [(failed, "failed"), (counts.waiting, "waiting")] {
            if number > 0 {
                let message = format!("{} {state}", pluralize(number, "object"));
                findings.push(self.warn(&message, self.show_command()).see(page));
            }
        }
        let pending_since = counts.pending_since;
        if let Some(since) =
            pending_since.filter(|since| self.now.duration_since(*since) > MAX_PENDING)
        {
            let message = format!("a change has been pending since {} UTC", date(since));
            let check = self.warn(&message, self.check_command());
            findings.push(check.see("runbooks/payment-provider-down"));
        }
        Ok(findings)
    }

    async fn check_commands(&self) -> anyhow::Result<Option<HealthCheck>> {
        let owner = (self.tenant, self.account.id);
        let oldest = support_sql::list_pending_commands(self.connection, owner, 1).await?;
        let oldest = oldest
            .first()
            .filter(|command| self.now.duration_since(command.created_at) > MAX_UNACKNOWLEDGED);
        Ok(oldest.map(|command| {
            let commands = pluralize(self.account.pending_commands, "command");
            let since = date(command.created_at);
            let message = format!("{commands} not acknowledged, the oldest since {since} UTC");
            let check = self.warn(&message, self.show_command());
            check.see("runbooks/payment-command-pending")
        }))
    }
}
