//! SQL of the journal: moves pending states to those that are in the sums, and reads both.

use std::collections::BTreeMap;

use jiff::{Timestamp, civil::Date};
use perennial_domain::{
    DayPayments, Id, PaymentId, PlanId, RecordedState, RevenueState, SubscriptionId, TenantId,
    UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::copied_states_sql::{is_copied, take_copied};
use crate::db::{Error, RowReader, Sql, Transaction};

// One roll-up at a time per database, so that the sums of a user are never computed twice. The number is the key of an
// advisory lock.
//
// The commit does not wait for the disk: after a crash of PostgreSQL, the last batches can be missing as a whole, and are
// added again. Reading a user with very many states takes longer than a request may.
static TRY_LOCK: Sql = Sql::new(
    "SELECT pg_try_advisory_xact_lock(7230511846021), set_config('synchronous_commit', 'off', true),
        set_config('statement_timeout', '60s', true)",
);

/// Locks the sums until the end of the transaction. Returns `false` if another transaction has locked them.
pub(super) async fn try_lock(tx: &Transaction<'_>) -> Result<bool, Error> {
    let rows = tx.query(&TRY_LOCK, &[]).await?;
    rows.first().map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

/// A user of a tenant.
pub(super) type TenantUser = (TenantId, UserId);

/// A state of a user, by the number that it has in the journal.
pub(super) type StateNumber = (TenantUser, i64);

/// The columns of the tables with states, except `arr_minor`, which [`read_states`] needs as text.
macro_rules! state_columns {
    () => {
        "tenant_id, user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported"
    };
}

/// All columns of the tables with states.
macro_rules! journal_columns {
    () => {
        concat!(state_columns!(), ", arr_minor")
    };
}

// Partitions of the log are not created meanwhile: a plan that was made without a new partition would not find the events that
// were moved to it.
static LOCK_PARTITIONS: Sql = Sql::new("LOCK TABLE events_default IN ACCESS SHARE MODE");

/// The columns of an event that has a state.
macro_rules! event_columns {
    () => {
        "tenant_id, seq, at, subject_id, revenue_state"
    };
}

// Like the sequencer, reads the events of transactions that were open in the stored snapshot, and of those that started
// afterwards and are visible now. Of the latter, a page, in the order of transactions; the next page starts after its last
// transaction.
static TAKE_NEW: Sql = Sql::new(concat!(
    "WITH journal AS MATERIALIZED (
        SELECT snapshot, copied_to_seq FROM report_installation
     ), started_later AS MATERIALIZED (
        SELECT ",
    event_columns!(),
    ", xact FROM events
        WHERE seq > (SELECT copied_to_seq FROM journal) AND xact >= (SELECT pg_snapshot_xmax(snapshot) FROM journal)
          AND xact < pg_snapshot_xmax(pg_current_snapshot())
        ORDER BY xact FETCH FIRST ($2) ROWS WITH TIES
     ), read AS MATERIALIZED (
        SELECT ",
    event_columns!(),
    " FROM started_later
        UNION ALL
        SELECT ",
    event_columns!(),
    " FROM events WHERE seq > (SELECT copied_to_seq FROM journal)
          AND xact = ANY (ARRAY(SELECT pg_snapshot_xip(snapshot) FROM journal))
     ), taken AS (
        DELETE FROM pending_revenue_changes WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM pending_revenue_changes WHERE at <= $1 ORDER BY at, seq LIMIT $2))
        RETURNING ",
    journal_columns!(),
    "), new AS MATERIALIZED (
        SELECT ",
    journal_columns!(),
    " FROM taken
        UNION ALL
        SELECT tenant_id, state[1]::uuid, seq, at, subject_id, state[2]::uuid, state[3], state[4], state[5], state[6],
            state[7]::boolean, state[8]::boolean, state[9]::numeric
        FROM read, string_to_array(revenue_state, ' ') AS state WHERE revenue_state IS NOT NULL
     ), moved AS (
        INSERT INTO revenue_changes (",
    journal_columns!(),
    ") SELECT ",
    journal_columns!(),
    " FROM new WHERE at <= $1 ORDER BY tenant_id, user_id, seq
     ), not_due AS (
        INSERT INTO pending_revenue_changes (",
    journal_columns!(),
    ") SELECT ",
    journal_columns!(),
    " FROM new WHERE at > $1
     ), saved AS (
        UPDATE report_installation SET snapshot = CASE
            WHEN (SELECT count(*) FROM started_later) < $2 THEN pg_current_snapshot()
            ELSE (
                SELECT format('%s:%s:%s', coalesce(min(open), last + 1), last + 1, string_agg(open::text, ',' ORDER BY open))
                FROM (SELECT max(xact::text::bigint) AS last FROM started_later) AS page
                LEFT JOIN (SELECT xip::text::bigint AS open FROM pg_snapshot_xip(pg_current_snapshot()) AS xip) AS transactions
                    ON open <= last
                GROUP BY last
            )::pg_snapshot END
        WHERE EXISTS (SELECT FROM read)
     )
     SELECT events, tenant_id, user_id, seq FROM (SELECT count(*) AS events FROM read) AS page LEFT JOIN new ON at <= $1"
));

fn read_user(row: &Row) -> Result<TenantUser, Error> {
    let tenant = TenantId::new(row.try_get("tenant_id")?);
    Ok((tenant, UserId::new(row.try_get("user_id")?)))
}

/// New states.
pub(super) struct NewStates {
    /// Those that took effect.
    pub due: Vec<StateNumber>,
    /// How many events were read to find them.
    pub events: usize,
}

/// Moves up to `limit` pending states that took effect by `now`, and the states in up to `limit` events, to those that are in
/// the sums. Only while the sums are locked.
pub(super) async fn take_new(
    tx: &Transaction<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<NewStates, Error> {
    if is_copied(tx).await? {
        take_copied(tx).await?;
    }
    tx.enqueue(&LOCK_PARTITIONS, &[]).await?;
    let rows = tx.query(&TAKE_NEW, &[&now, &limit]).await?;
    let mut new = NewStates {
        due: Vec::with_capacity(rows.len()),
        events: 0,
    };
    for row in &rows {
        new.events = usize::try_from(row.try_get::<_, i64>("events")?).unwrap_or_default();
        // Without a state, there is one row with the number of events.
        if let Some(number) = row.try_get("seq")? {
            new.due.push((read_user(row)?, number));
        }
    }
    Ok(new)
}

/// Reads a state.
fn read_state(row: &RowReader<'_>) -> Result<RecordedState, Error> {
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

/// The states of several users.
pub(super) type StatesByUser = BTreeMap<TenantUser, Vec<RecordedState>>;

static STATES: Sql = Sql::new(
    "SELECT change.tenant_id, change.user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status, basis,
        suspended, imported, arr_minor::text
     FROM unnest($1::uuid[], $2::uuid[]) AS wanted (tenant_id, user_id)
     JOIN revenue_changes AS change ON change.tenant_id = wanted.tenant_id AND change.user_id = wanted.user_id",
);

/// Returns the states of these users that are in the sums.
pub(super) async fn states_of_users(
    tx: &Transaction<'_>,
    users: &[TenantUser],
) -> Result<StatesByUser, Error> {
    let tenants: Vec<Uuid> = users.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let ids: Vec<Uuid> = users.iter().map(|(_, user)| user.uuid()).collect();
    let params: [&(dyn ToSql + Sync); 2] = [&tenants, &ids];
    read_states(&tx.query(&STATES, &params).await?)
}

static PENDING_STATES: Sql = Sql::new(concat!(
    "SELECT ",
    state_columns!(),
    ", arr_minor::text FROM all_pending_revenue_changes WHERE tenant_id = $1",
));

/// Returns the states of a tenant that are not in the sums, also those of the future. Reads those of all tenants.
pub(super) async fn pending_states(
    tx: &Transaction<'_>,
    tenant: TenantId,
) -> Result<StatesByUser, Error> {
    let rows = tx.query(&PENDING_STATES, &[&tenant.uuid()]).await?;
    read_states(&rows)
}

fn read_states(rows: &[Row]) -> Result<StatesByUser, Error> {
    let mut states = StatesByUser::new();
    for row in rows {
        let user = read_user(row)?;
        let state = read_state(&RowReader::new(row))?;
        states.entry(user).or_default().push(state);
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

static USERS_AFTER: Sql = Sql::new(
    "SELECT DISTINCT tenant_id, user_id FROM revenue_changes WHERE tenant_id = $1 AND user_id > $2 ORDER BY user_id LIMIT $3",
);

/// Returns the next users of a tenant with states in the sums, in the order of their ids.
pub(super) async fn users_after(
    tx: &Transaction<'_>,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<TenantUser>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &after, &limit];
    let rows = tx.query(&USERS_AFTER, &params).await?;
    rows.iter().map(read_user).collect()
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
