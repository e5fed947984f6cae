//! The metrics of payment accounts: help texts, and what a scrape reads from the databases.

use crate::{
    admin::PING_TIMEOUT,
    app::App,
    payment_accounts::{self, PaymentBacklog},
};

pub(super) fn describe() {
    describe_counters();
    metrics::describe_gauge!(
        "perennial_payment_objects_unresolved",
        "Objects of payment providers that are not applied, by cell and state: waiting for a plan, user or subscription, or \
         failed in the last 7 days"
    );
    metrics::describe_gauge!(
        "perennial_payment_objects_behind_seconds",
        "Seconds for which the oldest changed object of a payment provider has not been applied, by cell, without those that wait \
         for a record; 0: none"
    );
    metrics::describe_gauge!(
        "perennial_payment_commands_pending",
        "Commands, such as cancellations, that payment providers have not acknowledged, by cell"
    );
    metrics::describe_gauge!(
        "perennial_payment_commands_behind_seconds",
        "Seconds for which the oldest command to a payment provider has not been acknowledged, by cell; 0: none"
    );
    metrics::describe_gauge!(
        "perennial_payment_reconcile_behind_seconds",
        "Seconds since the last reconcile of the payment account for which it is the longest ago, by cell; 0: no account"
    );
}

fn describe_counters() {
    metrics::describe_counter!(
        "perennial_payment_notifications_total",
        "Authentic notifications of payment providers, by outcome (new, ignored, failed, refused, duplicate)"
    );
    metrics::describe_counter!(
        "perennial_payment_objects_total",
        "Processed objects of payment providers, by outcome (applied, ignored, waiting, failed, moved, retried, fenced)"
    );
    metrics::describe_counter!(
        "perennial_payment_provider_requests_total",
        "Requests to payment providers, by provider and outcome (ok, unavailable, rate_limited, unauthorized, not_found, rejected)"
    );
    metrics::describe_counter!(
        "perennial_payment_reconciles_total",
        "Reconciles of payment accounts, by outcome (done, failed)"
    );
    metrics::describe_counter!(
        "perennial_payment_events_missed_total",
        "Changes at payment providers that a reconcile found and whose notification had not arrived"
    );
}

/// Records what payment accounts have not processed. Keeps the last values of a cell whose database is unavailable.
pub(super) async fn record(app: &App) {
    for cell in app.db.cell_names() {
        let Ok(database) = app.db.cell(cell) else {
            continue;
        };
        let backlog = async {
            let connection = database.background_connection().await?;
            payment_accounts::measure_backlog(&connection).await
        };
        if let Ok(Ok(backlog)) = tokio::time::timeout(PING_TIMEOUT, backlog).await {
            set_gauges(cell, backlog);
        }
    }
}

fn set_gauges(cell: &str, backlog: PaymentBacklog) {
    let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let cell = ("cell", cell.to_owned());
    for (state, number) in [
        ("waiting", backlog.waiting_objects),
        ("failed", backlog.failed_objects),
    ] {
        let labels = [cell.clone(), ("state", state.to_owned())];
        metrics::gauge!("perennial_payment_objects_unresolved", &labels).set(count(number));
    }
    let cell = [cell];
    metrics::gauge!("perennial_payment_objects_behind_seconds", &cell).set(backlog.objects_behind);
    metrics::gauge!("perennial_payment_commands_pending", &cell)
        .set(count(backlog.pending_commands));
    metrics::gauge!("perennial_payment_commands_behind_seconds", &cell)
        .set(backlog.commands_behind);
    metrics::gauge!("perennial_payment_reconcile_behind_seconds", &cell)
        .set(backlog.reconcile_behind);
}
