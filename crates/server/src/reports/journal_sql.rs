//! SQL of the journal for the roll-up: which changes are new, and all states of a user.

use std::collections::BTreeMap;

use jiff::{Timestamp, civil::Date};
use perennial_domain::{
    DayPayments, Id, PaymentId, PlanId, RecordedState, RevenueState, SubscriptionId, TenantId,
    UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{Error, RowReader, Sql, Transaction};

// One roll-up at a time per database, so that the sums of a user are never computed twice. The number is the key of an
// advisory lock.
//
// Requests do not wait until the sums are on disk: after a crash of PostgreSQL, the same changes are added again.
static TRY_LOCK: Sql = Sql::new(
    "SELECT pg_try_advisory_xact_lock(7230511846021), set_config('synchronous_commit', 'off', true)",
);

/// Locks the sums until the end of the transaction. Returns `false` if another transaction has locked them.
pub(super) async fn try_lock(tx: &Transaction<'_>) -> Result<bool, Error> {
    let rows = tx.query(&TRY_LOCK, &[]).await?;
    rows.first().map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

/// A user of a tenant.
pub(super) type TenantUser = (TenantId, UserId);

static NEW_USERS: Sql = Sql::new(
    "SELECT DISTINCT tenant_id, user_id FROM (
        SELECT tenant_id, user_id FROM revenue_changes WHERE NOT rolled AND at <= $1 ORDER BY at LIMIT $2) AS change",
);

/// Returns the users of up to `limit` changes that took effect by `now` and are not in the sums.
pub(super) async fn users_with_changes(
    tx: &Transaction<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<TenantUser>, Error> {
    let rows = tx.query(&NEW_USERS, &[&now, &limit]).await?;
    let user = |row: &Row| {
        let tenant = TenantId::new(row.try_get("tenant_id")?);
        Ok((tenant, UserId::new(row.try_get("user_id")?)))
    };
    rows.iter().map(user).collect()
}

static STATES: Sql = Sql::new(
    "SELECT change.tenant_id, change.user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status, basis,
        suspended, imported, rolled, arr_minor::text
     FROM unnest($1::uuid[], $2::uuid[]) AS claimed (tenant_id, user_id)
     JOIN revenue_changes AS change ON change.tenant_id = claimed.tenant_id AND change.user_id = claimed.user_id
     WHERE rolled OR at <= $3::timestamptz",
);

/// The states of a user: those in the sums, and those that are not.
#[derive(Debug, Default)]
pub(super) struct UserStates {
    pub rolled: Vec<RecordedState>,
    pub new: Vec<RecordedState>,
}

/// Reads a state.
pub(super) fn read_state(row: &RowReader<'_>) -> Result<RecordedState, Error> {
    let sequence = row.get("seq")?;
    let at = row.get("at")?;
    let subscription = SubscriptionId::new(row.get("subscription_id")?);
    let state = RevenueState {
        plan: PlanId::new(row.get("plan_id")?),
        billing_cycle: row.parse("billing_cycle")?,
        currency: row.parse("currency")?,
        status: row.parse("status")?,
        basis: row.parse("basis")?,
        suspended: row.get("suspended")?,
        annual_value: row.parse("arr_minor")?,
    };
    Ok(RecordedState {
        at,
        sequence,
        subscription,
        state,
        imported: row.get("imported")?,
    })
}

/// Returns the states of these users that are in the sums, and those that took effect by `until`.
pub(super) async fn states_of_users(
    tx: &Transaction<'_>,
    users: &[TenantUser],
    until: Option<Timestamp>,
) -> Result<BTreeMap<TenantUser, UserStates>, Error> {
    let tenants: Vec<Uuid> = users.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let ids: Vec<Uuid> = users.iter().map(|(_, user)| user.uuid()).collect();
    let params: [&(dyn ToSql + Sync); 3] = [&tenants, &ids, &until];
    let mut states: BTreeMap<TenantUser, UserStates> = BTreeMap::new();
    for row in tx.query(&STATES, &params).await? {
        let row = RowReader::new(&row);
        let tenant = TenantId::new(row.get("tenant_id")?);
        let user = UserId::new(row.get("user_id")?);
        let state = read_state(&row)?;
        let of_user = states.entry((tenant, user)).or_default();
        if row.get("rolled")? {
            of_user.rolled.push(state);
        } else {
            of_user.new.push(state);
        }
    }
    Ok(states)
}

/// When a state of a user takes effect.
pub(super) type ChangeTime = (Timestamp, UserId);

static CHANGE_TIMES: Sql = Sql::new(
    "SELECT DISTINCT at, user_id FROM revenue_changes
     WHERE tenant_id = $1 AND at >= $2 AND (at, user_id) <= ($3, $4)
     ORDER BY at DESC, user_id DESC LIMIT $5",
);

/// Returns when states took effect, the latest first: from an instant up to another one, which is included.
pub(super) async fn change_times(
    tx: &Transaction<'_>,
    tenant: TenantId,
    (from, (until, user)): (Timestamp, ChangeTime),
    limit: i64,
) -> Result<Vec<ChangeTime>, Error> {
    let params: [&(dyn ToSql + Sync); 5] = [&tenant.uuid(), &from, &until, &user.uuid(), &limit];
    let rows = tx.query(&CHANGE_TIMES, &params).await?;
    let time = |row: &Row| Ok((row.try_get("at")?, UserId::new(row.try_get("user_id")?)));
    rows.iter().map(time).collect()
}

static MARK: Sql = Sql::new(
    "UPDATE revenue_changes SET rolled = true
     FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS new (tenant_id, user_id, seq)
     WHERE revenue_changes.tenant_id = new.tenant_id AND revenue_changes.user_id = new.user_id
       AND revenue_changes.seq = new.seq",
);

/// Marks the new states of these users as being in the sums. Returns their number.
pub(super) async fn mark_as_rolled(
    tx: &Transaction<'_>,
    states: &BTreeMap<TenantUser, UserStates>,
) -> Result<usize, Error> {
    let (mut tenants, mut users, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for ((tenant, user), states) in states {
        for state in &states.new {
            tenants.push(tenant.uuid());
            users.push(user.uuid());
            numbers.push(state.sequence);
        }
    }
    let params: [&(dyn ToSql + Sync); 3] = [&tenants, &users, &numbers];
    tx.enqueue(&MARK, &params).await?;
    Ok(numbers.len())
}

static USERS_AFTER: Sql = Sql::new(
    "SELECT DISTINCT user_id FROM revenue_changes WHERE tenant_id = $1 AND user_id > $2 ORDER BY user_id LIMIT $3",
);

/// Returns the next users of a tenant in the order of their ids.
pub(super) async fn users_after(
    tx: &Transaction<'_>,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<TenantUser>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &after, &limit];
    let rows = tx.query(&USERS_AFTER, &params).await?;
    let user = |row: &Row| Ok((tenant, UserId::new(row.try_get("user_id")?)));
    rows.iter().map(user).collect()
}

/// A change of a payment.
pub(super) struct PaymentChange {
    pub tenant: TenantId,
    pub payment: PaymentId,
    pub total: DayPayments,
}

static TAKE_PAYMENT_CHANGES: Sql = Sql::new(
    "DELETE FROM payment_changes AS change
     USING (SELECT tenant_id, seq FROM payment_changes ORDER BY tenant_id, seq LIMIT $1) AS taken
     WHERE change.tenant_id = taken.tenant_id AND change.seq = taken.seq
     RETURNING change.tenant_id, payment_id, day, currency, kind, payments, amount_minor",
);

static TAKE_PAYMENT_CHANGES_OF_TENANT: Sql = Sql::new(
    "DELETE FROM payment_changes WHERE tenant_id = $1
     RETURNING tenant_id, payment_id, day, currency, kind, payments, amount_minor",
);

fn read_payment_change(row: &Row) -> Result<PaymentChange, Error> {
    let row = RowReader::new(row);
    let tenant = TenantId::new(row.get("tenant_id")?);
    let payment = PaymentId::new(row.get("payment_id")?);
    let total = DayPayments {
        day: row.get::<Date>("day")?,
        currency: row.parse("currency")?,
        kind: row.parse("kind")?,
        payments: row.get("payments")?,
        amount: row.get("amount_minor")?,
    };
    Ok(PaymentChange {
        tenant,
        payment,
        total,
    })
}

/// Removes up to `limit` changes of payments and returns them.
pub(super) async fn take_payment_changes(
    tx: &Transaction<'_>,
    limit: i64,
) -> Result<Vec<PaymentChange>, Error> {
    let rows = tx.query(&TAKE_PAYMENT_CHANGES, &[&limit]).await?;
    rows.iter().map(read_payment_change).collect()
}

/// Removes all changes of a tenant's payments and returns them.
pub(super) async fn take_payment_changes_of(
    tx: &Transaction<'_>,
    tenant: TenantId,
) -> Result<Vec<PaymentChange>, Error> {
    let sql = &TAKE_PAYMENT_CHANGES_OF_TENANT;
    let rows = tx.query(sql, &[&tenant.uuid()]).await?;
    rows.iter().map(read_payment_change).collect()
}
