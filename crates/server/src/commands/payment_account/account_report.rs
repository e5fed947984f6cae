//! `perennial payment-account show`: an account, what of it is not applied, and commands that are not acknowledged.

use perennial_domain::{PaymentAccount, TenantId};
use serde::Serialize;

use super::{description, notification_path, summary};
use crate::{
    commands::{
        explain::date,
        pluralize,
        provider_report::{describe_command, describe_object},
        terminal::print_wrapped,
    },
    db::PooledConnection,
    payment_accounts::{
        PaymentAccountView, notifications_sql,
        support_sql::{self, ObjectState, PendingCommand, SupportedObject, UnresolvedCounts},
    },
    user_export::{PaymentCommandJson, PaymentObjectJson},
};

/// How many objects of each state, and how many commands, are listed.
const MAX_LISTED: i64 = 10;

/// An account and what needs attention.
pub(super) struct AccountReport {
    account: PaymentAccount,
    counts: UnresolvedCounts,
    /// Notifications by state, such as `2 refused`.
    notifications: Vec<String>,
    objects: Vec<SupportedObject>,
    commands: Vec<PendingCommand>,
}

/// An account, and what needs attention, as JSON.
#[derive(Serialize)]
struct AccountReportJson {
    #[serde(flatten)]
    account: PaymentAccountView,
    waiting_objects: i64,
    failed_objects: i64,
    /// The latest failed objects, and those that have been waiting or retried the longest.
    payment_objects: Vec<PaymentObjectJson>,
    /// The oldest ones.
    payment_commands: Vec<PaymentCommandJson>,
}

impl AccountReport {
    pub(super) async fn load(
        connection: &PooledConnection,
        tenant: TenantId,
        account: PaymentAccount,
    ) -> anyhow::Result<Self> {
        let owner = (tenant, account.id);
        let states = notifications_sql::count_unresolved(connection, tenant, account.id).await?;
        Ok(Self {
            counts: support_sql::count_unresolved_objects(connection, tenant, account.id).await?,
            notifications: { states.into_iter() }
                .map(|(state, number)| format!("{number} {state}"))
                .collect(),
            objects: support_sql::list_unresolved_objects(connection, owner, MAX_LISTED).await?,
            commands: support_sql::list_pending_commands(connection, owner, MAX_LISTED).await?,
            account,
        })
    }

    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            let commands = self.commands.iter();
            let report = AccountReportJson {
                account: PaymentAccountView::from(&self.account),
                waiting_objects: self.counts.waiting,
                failed_objects: self.counts.failed,
                payment_objects: { self.objects.iter() }
                    .map(|object| PaymentObjectJson::new(object, &[]))
                    .collect(),
                payment_commands: commands.map(PaymentCommandJson::new).collect(),
            };
            println!("{}", serde_json::to_string(&report)?);
            return Ok(());
        }
        print_details(&self.account);
        if !self.notifications.is_empty() {
            let notifications = self.notifications.join(", ");
            print_wrapped(&format!("    notifications: {notifications}"));
        }
        for object in &self.objects {
            print_wrapped(&format!("    {}", describe_object(object)));
        }
        let is_retried = |object: &&SupportedObject| object.state == ObjectState::Pending;
        let listed = self.objects.iter().filter(|object| !is_retried(object));
        let listed = i64::try_from(listed.count()).unwrap_or(i64::MAX);
        print_omitted(self.counts.failed + self.counts.waiting - listed, "object");
        for command in &self.commands {
            print_wrapped(&format!("    {}", describe_command(command)));
        }
        let listed = i64::try_from(self.commands.len()).unwrap_or(i64::MAX);
        print_omitted(self.account.pending_commands - listed, "command");
        Ok(())
    }
}

fn print_omitted(number: i64, noun: &str) {
    if number > 0 {
        println!("    … {}", pluralize(number, &format!("more {noun}")));
    }
}

fn print_details(account: &PaymentAccount) {
    print_wrapped(&summary(account));
    let external = account.details.external_account_id.as_ref();
    let lines = [
        ("description", description(account)),
        (
            "external account id",
            external.map_or_else(String::new, ToString::to_string),
        ),
        (
            "API key",
            if account.has_api_key {
                "stored"
            } else {
                "none"
            }
            .to_owned(),
        ),
        ("path of notifications", notification_path(account.id)),
        (
            "last heard",
            account.last_heard_at.map_or_else(String::new, date),
        ),
        (
            "last reconciled",
            account.last_reconciled_at.map_or_else(String::new, date),
        ),
        (
            "pending commands",
            match account.pending_commands {
                0 => String::new(),
                number => number.to_string(),
            },
        ),
        ("created", date(account.created_at)),
        ("updated", date(account.updated_at)),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        print_wrapped(&format!("    {name}: {value}"));
    }
}
