//! The printed result of an import.

use std::time::Duration;

use anyhow::bail;
use perennial_domain::{Currency, Money, PaymentAccount};
use serde_json::json;

use super::plans::PlanImport;
use crate::{
    commands::{explain::money, pluralize, terminal::print_wrapped, text_table::Listing},
    payment_accounts::{ListCounts, ListReport},
};

/// Returns how many objects were read per second.
pub(super) fn rate(objects: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    objects
        .saturating_mul(1_000)
        .checked_div(millis)
        .unwrap_or(objects)
}

/// The result of an import that was read to its end.
pub(super) struct FinishedImport<'a> {
    pub account: &'a PaymentAccount,
    pub plans: &'a PlanImport,
    pub report: &'a ListReport,
    /// Objects that this run has read. An interrupted run has read the others.
    pub read: u64,
    pub elapsed: Duration,
    pub is_dry_run: bool,
}

impl FinishedImport<'_> {
    /// Prints the result. Returns an error if objects have failed, so that a script can notice it.
    pub(super) fn print(&self, is_json: bool) -> anyhow::Result<()> {
        if is_json {
            self.print_json()?;
        } else {
            self.print_text()?;
        }
        let ListReport {
            subscriptions,
            invoices,
            orders,
            ..
        } = self.report;
        let failed = subscriptions.failed + invoices.failed + orders.failed;
        if failed > 0 {
            let objects = pluralize(failed, "object");
            bail!("{objects} failed; repair the causes and run the import again");
        }
        Ok(())
    }

    fn print_json(&self) -> anyhow::Result<()> {
        let created = self.plans.created.iter();
        let created: Vec<&String> = created.map(|(slug, _)| slug).collect();
        let plans = json!({
            "created": created,
            "unchanged": self.plans.unchanged,
            "missing": self.plans.missing,
        });
        let problems: Vec<&String> = self.problems().collect();
        let object = json!({
            "payment_account_id": self.account.id.to_string(),
            "dry_run": self.is_dry_run,
            "plans": plans,
            "subscriptions": self.report.subscriptions,
            "invoices": self.report.invoices,
            "orders": self.report.orders,
            "totals": {
                "subscriptions": self.report.subscription_totals,
                "payments": self.report.payment_totals,
            },
            "problems": problems,
        });
        println!("{}", serde_json::to_string(&object)?);
        Ok(())
    }

    fn print_text(&self) -> anyhow::Result<()> {
        self.print_counts();
        self.print_totals()?;
        for problem in self.problems() {
            print_wrapped(problem);
        }
        if self.plans.missing > 0 {
            print_wrapped("some prices have no plan; add them to a plan, or use --create-plans");
        }
        let waiting = self.report.subscriptions.waiting + self.report.invoices.waiting;
        if waiting > 0 && !self.is_dry_run {
            let objects = pluralize(waiting, "object");
            let verb = if waiting == 1 { "waits" } else { "wait" };
            print_wrapped(&format!(
                "{objects} {verb}; the running service applies them when their plan, user or subscription appears"
            ));
        }
        Ok(())
    }

    fn problems(&self) -> impl Iterator<Item = &String> {
        self.plans.problems.iter().chain(&self.report.problems)
    }

    fn print_counts(&self) {
        let ListReport {
            subscriptions,
            invoices,
            orders,
            ..
        } = self.report;
        let verb = if self.is_dry_run {
            "would import"
        } else {
            "imported"
        };
        let (provider, id) = (self.account.provider, self.account.id);
        let (seconds, rate) = (self.elapsed.as_secs(), rate(self.read, self.elapsed));
        let objects = pluralize(self.read, "object");
        print_wrapped(&format!(
            "{verb} {provider} {id}: {objects} in {seconds} s, {rate}/s"
        ));
        let header = [
            "OBJECTS",
            "CREATED",
            "CHANGED",
            "UNCHANGED",
            "WAITING",
            "IGNORED",
            "FAILED",
        ];
        let plans = ListCounts {
            created: u64::try_from(self.plans.created.len()).unwrap_or(u64::MAX),
            unchanged: self.plans.unchanged,
            ..ListCounts::default()
        };
        let mut list = Listing::new(header, false);
        let orders = Some(("orders", orders)).filter(|(_, counts)| counts.total() > 0);
        let rows = [
            ("plans", &plans),
            ("subscriptions", subscriptions),
            ("invoices", invoices),
        ];
        for (noun, counts) in rows.into_iter().chain(orders) {
            let row = [
                noun.to_owned(),
                counts.created.to_string(),
                counts.changed.to_string(),
                counts.unchanged.to_string(),
                counts.waiting.to_string(),
                counts.ignored.to_string(),
                counts.failed.to_string(),
            ];
            list.add(row, &"");
        }
        list.print();
    }

    fn print_totals(&self) -> anyhow::Result<()> {
        let mut subscriptions = Listing::new(["STATUS", "SUBSCRIPTIONS"], false);
        for (status, count) in &self.report.subscription_totals {
            subscriptions.add([status.clone(), count.to_string()], &"");
        }
        println!();
        subscriptions.print_or("no subscriptions");
        let mut payments = Listing::new(["STATUS", "PAYMENTS", "AMOUNT", "REFUNDED"], false);
        for (currency, by_status) in &self.report.payment_totals {
            let currency: Currency = currency.parse()?;
            let sum = |minor| Money::from_minor_units(minor, currency).map(money);
            for (status, total) in by_status {
                let row = [
                    status.clone(),
                    total.count.to_string(),
                    sum(total.amount_minor).unwrap_or_default(),
                    sum(total.refunded_minor).unwrap_or_default(),
                ];
                payments.add(row, &"");
            }
        }
        println!();
        payments.print_or("no payments");
        Ok(())
    }
}
