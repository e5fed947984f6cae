//! The journal that reports are computed from: the revenue states of subscriptions (in the row of an
//! event, or in `pending_revenue_changes`) and the sums of payments (`payment_changes`), written in the
//! transaction of each change.
//!
//! Knows no report. It is a module of its own because `subscriptions/` and `subscription_payments/`
//! write to it, and `reports/` is above them.

use jiff::{Timestamp, civil::Date};
use perennial_domain::{
    DayPayments, Id, PaymentId, RevenueChange, RevenueFacts, Subscription, TenantId,
};
use serde::Serialize;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::{
    db::{Error, Sql, Transaction},
    events::{self, Event},
};

/// A state, and the tenant that it belongs to.
pub type TenantChange = (TenantId, RevenueChange);

/// Returns the states that follow from a change of a subscription at `at`. `before` is `None` when it is
/// created.
pub fn changes(
    tenant: TenantId,
    before: Option<&Subscription>,
    after: &Subscription,
    at: Timestamp,
) -> Vec<TenantChange> {
    let before = before.map(RevenueFacts::from);
    let changes = RevenueFacts::from(after).changes(before.as_ref(), at);
    changes.into_iter().map(|change| (tenant, change)).collect()
}

/// The columns of a new state.
macro_rules! columns {
    () => {
        "tenant_id, user_id, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported, arr_minor"
    };
}

// In the transaction of a request, so it is the cheapest statement: one from arrays takes longer to start.
static APPEND_ONE: Sql = Sql::new(concat!(
    "INSERT INTO pending_revenue_changes (",
    columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::numeric)",
));

/// Appends the states that follow from one change, in this order.
pub async fn append(tx: &Transaction<'_>, changes: &[TenantChange]) -> Result<(), Error> {
    for (tenant, change) in changes {
        let state = &change.state;
        let params: [&(dyn ToSql + Sync); 12] = [
            &tenant.uuid(),
            &change.user.uuid(),
            &change.at,
            &change.subscription.uuid(),
            &state.plan.uuid(),
            &state.billing_cycle.as_str(),
            &state.currency.code(),
            &state.status.as_str(),
            &state.basis.as_str(),
            &state.suspended,
            &change.imported,
            &state.annual_value.to_string(),
        ];
        tx.enqueue(&APPEND_ONE, &params).await?;
    }
    Ok(())
}

/// Returns the state as the row of its event contains it.
fn in_event(change: &RevenueChange) -> String {
    let state = &change.state;
    format!(
        "{} {} {} {} {} {} {} {} {}",
        change.user.uuid().simple(),
        state.plan.uuid().simple(),
        state.billing_cycle.as_str(),
        state.currency.code(),
        state.status.as_str(),
        state.basis.as_str(),
        state.suspended,
        change.imported,
        state.annual_value,
    )
}

/// Appends the states that follow from one change, in this order, and records its event. A single state is in the row of the
/// event: a second row and index would make the request slower.
pub async fn append_with_event<T: Serialize>(
    tx: &Transaction<'_>,
    changes: &[TenantChange],
    event: &Event<'_, T>,
) -> Result<(), Error> {
    if let [(_, change)] = changes
        && change.at == event.at
    {
        return events::record_with_state(tx, event, Some(in_event(change))).await;
    }
    append(tx, changes).await?;
    events::record(tx, event).await
}

static APPEND_MANY: Sql = Sql::new(concat!(
    "INSERT INTO pending_revenue_changes (",
    columns!(),
    ") SELECT tenant_id, user_id, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported,
        arr_minor::numeric
     FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::boolean[], $11::boolean[], $12::text[]) WITH ORDINALITY
        AS change (tenant_id, user_id, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended,
            imported, arr_minor, number)
     ORDER BY number",
));

/// Appends the states of many subscriptions, in this order.
pub async fn append_many(tx: &Transaction<'_>, changes: &[TenantChange]) -> Result<(), Error> {
    fn column<T>(changes: &[TenantChange], value: impl Fn(&RevenueChange) -> T) -> Vec<T> {
        changes.iter().map(|(_, change)| value(change)).collect()
    }
    if changes.is_empty() {
        return Ok(());
    }
    let tenants: Vec<Uuid> = changes.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let params: [&(dyn ToSql + Sync); 12] = [
        &tenants,
        &column(changes, |change| change.user.uuid()),
        &column(changes, |change| change.at),
        &column(changes, |change| change.subscription.uuid()),
        &column(changes, |change| change.state.plan.uuid()),
        &column(changes, |change| change.state.billing_cycle.as_str()),
        &column(changes, |change| change.state.currency.code()),
        &column(changes, |change| change.state.status.as_str()),
        &column(changes, |change| change.state.basis.as_str()),
        &column(changes, |change| change.state.suspended),
        &column(changes, |change| change.imported),
        &column(changes, |change| change.state.annual_value.to_string()),
    ];
    tx.enqueue(&APPEND_MANY, &params).await
}

static APPEND_PAYMENT: Sql = Sql::new(
    "INSERT INTO payment_changes (tenant_id, payment_id, day, currency, kind, payments, amount_minor)
     SELECT $1, $2, day, currency, kind, payments, amount_minor
     FROM unnest($3::date[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
        AS change (day, currency, kind, payments, amount_minor)",
);

/// Appends what a change of a payment adds to the sums of days.
pub async fn append_payment(
    tx: &Transaction<'_>,
    tenant: TenantId,
    payment: PaymentId,
    totals: &[DayPayments],
) -> Result<(), Error> {
    fn column<T>(totals: &[DayPayments], value: impl Fn(&DayPayments) -> T) -> Vec<T> {
        totals.iter().map(value).collect()
    }
    if totals.is_empty() {
        return Ok(());
    }
    let days: Vec<Date> = column(totals, |total| total.day);
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        &payment.uuid(),
        &days,
        &column(totals, |total| total.currency.code()),
        &column(totals, |total| total.kind.as_str()),
        &column(totals, |total| total.payments),
        &column(totals, |total| total.amount),
    ];
    tx.enqueue(&APPEND_PAYMENT, &params).await
}
