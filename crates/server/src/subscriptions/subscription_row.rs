//! A row of the table `subscriptions`: its columns, and how a subscription is read from them and written to
//! them. Every statement that reads whole subscriptions uses it.

use perennial_domain::{
    BillingPeriod, Id, Lifecycle, Money, PlanId, PlanSnapshot, Quantity, Subscription,
    SubscriptionId, Trial, UserId,
};
use tokio_postgres::Row;

use crate::db::{Error, RowReader, check_range};

/// The columns after the key `(tenant_id, id)`. [`placeholders!`] and [`params!`] use the same order.
macro_rules! columns {
    () => {
        "user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle,
         custom_price_minor, quantity, status, suspended, starts_at, renews_at, ends_at, anchor, late_since,
         trial_plan_id, trial_ends_at, credit_minor, waived_debt_minor, period_starts_at, period_ends_at, period_cycle,
         period_cost_minor, period_given_minor, period_waived_minor, free_starts_at, free_ends_at, free_cycle,
         free_cost_minor, free_given_minor, free_waived_minor, free_until, managed_since, metadata, created_at,
         updated_at, due_at"
    };
}

macro_rules! placeholders {
    () => {
        "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
         $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39,
         coalesce($40, 'infinity'::timestamptz)"
    };
}

macro_rules! params {
    ($tenant:ident, $subscription:ident) => {
        &[
            &$tenant.uuid(),
            &$subscription.id.uuid(),
            &$subscription.user.uuid(),
            &$subscription.plan.id.uuid(),
            &$subscription.plan.price.minor_units(),
            &$subscription.plan.price.currency().code(),
            &$subscription.plan.billing_cycle.as_str(),
            &$subscription
                .external_id
                .as_ref()
                .map(perennial_domain::ExternalId::as_str),
            &$subscription.billing_cycle.as_str(),
            &$subscription
                .custom_price
                .map(perennial_domain::Money::minor_units),
            &$subscription.quantity.get(),
            &$subscription.status.as_str(),
            &$subscription.suspended,
            &$subscription.starts_at,
            &$subscription.renews_at,
            &$subscription.ends_at,
            &$subscription.anchor,
            &$subscription.late_since,
            &$subscription.trial.map(|trial| trial.plan.uuid()),
            &$subscription.trial.map(|trial| trial.ends_at),
            &$subscription.credit,
            &$subscription.waived_debt,
            &$subscription.period.map(|period| period.starts_at),
            &$subscription.period.and_then(|period| period.ends_at),
            &$subscription.period.map(|period| period.cycle.as_str()),
            &$subscription.period.map(|period| period.cost),
            &$subscription.period.map(|period| period.given),
            &$subscription.period.map(|period| period.waived),
            &$subscription.free_time.map(|period| period.starts_at),
            &$subscription.free_time.and_then(|period| period.ends_at),
            &$subscription.free_time.map(|period| period.cycle.as_str()),
            &$subscription.free_time.map(|period| period.cost),
            &$subscription.free_time.map(|period| period.given),
            &$subscription.free_time.map(|period| period.waived),
            &$subscription.free_until,
            &$subscription.managed_since,
            &tokio_postgres::types::Json($subscription.metadata.pairs()),
            &$subscription.created_at,
            &$subscription.updated_at,
            &$subscription.due_at(),
        ]
    };
}

/// What a query selects: the key, [`columns!`], and the names that other tables have for the plan and the
/// user.
macro_rules! selected {
    () => {
        concat!(
            "id, ",
            columns!(),
            ", (SELECT slug FROM subscription_plans
         WHERE subscription_plans.tenant_id = subscriptions.tenant_id AND subscription_plans.id = plan_id) AS plan_slug,
        (SELECT users.external_id FROM users
         WHERE users.tenant_id = subscriptions.tenant_id AND users.id = user_id) AS external_user_id"
        )
    };
}

/// Reads [`selected!`].
pub(super) fn from_row(row: &Row, lifecycle: Lifecycle) -> Result<Subscription, Error> {
    let row = RowReader::new(row);
    let price = row.money("price_minor")?;
    let custom_price = row
        .get::<Option<i64>>("custom_price_minor")?
        .map(|minor_units| {
            let money = Money::from_minor_units(minor_units, price.currency());
            check_range("custom_price_minor", money)
        })
        .transpose()?;
    let quantity = Quantity::try_from(i64::from(row.get::<i32>("quantity")?));
    Ok(Subscription {
        id: SubscriptionId::new(row.get("id")?),
        user: UserId::new(row.get("user_id")?),
        external_user_id: row.parse_optional("external_user_id")?,
        plan: PlanSnapshot {
            id: PlanId::new(row.get("plan_id")?),
            slug: row.parse("plan_slug")?,
            price,
            billing_cycle: row.parse("plan_billing_cycle")?,
        },
        external_id: row.parse_optional("external_id")?,
        billing_cycle: row.parse("billing_cycle")?,
        custom_price,
        quantity: check_range("quantity", quantity.ok())?,
        status: row.parse("status")?,
        suspended: row.get("suspended")?,
        starts_at: row.get("starts_at")?,
        renews_at: row.get("renews_at")?,
        ends_at: row.get("ends_at")?,
        anchor: row.get("anchor")?,
        late_since: row.get("late_since")?,
        trial: read_trial(&row)?,
        credit: row.get("credit_minor")?,
        waived_debt: row.get("waived_debt_minor")?,
        period: read_period(
            &row,
            [
                "period_starts_at",
                "period_ends_at",
                "period_cycle",
                "period_cost_minor",
                "period_given_minor",
                "period_waived_minor",
            ],
        )?,
        free_time: read_period(
            &row,
            [
                "free_starts_at",
                "free_ends_at",
                "free_cycle",
                "free_cost_minor",
                "free_given_minor",
                "free_waived_minor",
            ],
        )?,
        free_until: row.get("free_until")?,
        managed_since: row.get("managed_since")?,
        metadata: row.metadata()?,
        lifecycle,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

fn read_trial(row: &RowReader<'_>) -> Result<Option<Trial>, Error> {
    let Some(plan) = row.get("trial_plan_id")? else {
        return Ok(None);
    };
    Ok(Some(Trial {
        plan: PlanId::new(plan),
        ends_at: row.get("trial_ends_at")?,
    }))
}

fn read_period(
    row: &RowReader<'_>,
    [starts_at, ends_at, cycle, cost, given, waived]: [&'static str; 6],
) -> Result<Option<BillingPeriod>, Error> {
    let Some(starts_at) = row.get(starts_at)? else {
        return Ok(None);
    };
    Ok(Some(BillingPeriod {
        starts_at,
        ends_at: row.get(ends_at)?,
        cycle: row.parse(cycle)?,
        cost: row.get(cost)?,
        given: row.get(given)?,
        waived: row.get(waived)?,
    }))
}

/// Selects a tenant's subscriptions that are not deleted and meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT ",
            selected!(),
            " FROM subscriptions
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $($conditions)*
        )
    };
}
pub(super) use {columns, params, placeholders, select, selected};
