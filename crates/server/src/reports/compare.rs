//! Compares the sums of the reports with the subscriptions.
//!
//! All days together, and all months together, the movements must add up to what the stored subscriptions are worth. Changes that
//! the roll-up has not added yet are added here. Starts in the future count on both sides, so the result does not depend on the
//! clock. Compares neither the kinds of movements nor payments.

use std::collections::BTreeMap;

use perennial_domain::{Currency, Id, RevenueFacts, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{
    copied_states_sql::is_copied,
    journal_sql::{self, TenantUser},
    roll_up::difference,
    state_sql,
};
use crate::{
    db::{CellDatabase, Error, RowReader, Sql, Transaction},
    subscriptions::{self, table::Scope},
};

/// How many subscriptions are read at a time.
const CHUNK: i64 = 5_000;
/// The states of how many users are read at a time.
const USERS_PER_CHUNK: usize = 5_000;

/// The spans of sums: each change is in a row of its day and in one of its month.
const SPANS: [&str; 2] = ["day", "month"];

/// The result of a comparison.
#[derive(Debug)]
pub enum SumComparison {
    /// There are more subscriptions than the limit.
    TooMany,
    /// The states of a copied database are still to be read.
    Incomplete,
    /// The sums differ from the subscriptions in these currencies.
    Compared(Vec<SumDifference>),
}

/// A currency in which the sums differ from the subscriptions. Annual values, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumDifference {
    pub currency: Currency,
    /// What the sums say.
    pub reported: i128,
    /// What the subscriptions are worth.
    pub stored: i128,
}

// The pending states are many if the roll-up has not run for long.
static EXTEND_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = '60s'");

static LEVELS: Sql = Sql::new(
    "SELECT currency, sum(arr_minor)::text AS arr_minor FROM revenue_movements
     WHERE tenant_id = $1 AND generation = $2 AND span = $3 AND plan_id = '00000000-0000-0000-0000-000000000000' AND billing_cycle = ''
     GROUP BY currency",
);

/// Compares the sums with the subscriptions, if there are at most `limit` subscriptions.
pub async fn compare_sums(
    database: &CellDatabase,
    scope: Scope,
    limit: usize,
) -> Result<SumComparison, Error> {
    let (tenant, _) = scope;
    let mut connection = database.connection().await?;
    let tx = connection.begin_snapshot().await?;
    tx.enqueue(&EXTEND_STATEMENT_TIMEOUT, &[]).await?;
    if is_copied(&tx).await? {
        return Ok(SumComparison::Incomplete);
    }
    let Some(stored) = stored_levels(&tx, scope, limit).await? else {
        return Ok(SumComparison::TooMany);
    };
    let pending = pending_levels(&tx, tenant).await?;
    let generation = state_sql::find(&tx, tenant).await?.generation;
    let mut differences: BTreeMap<Currency, SumDifference> = BTreeMap::new();
    for span in SPANS {
        let summed = summed_levels(&tx, (tenant, generation), span).await?;
        let value = |levels: &Levels, currency| levels.get(&currency).copied().unwrap_or_default();
        for currency in [&stored, &summed, &pending]
            .into_iter()
            .flat_map(BTreeMap::keys)
        {
            let found = SumDifference {
                currency: *currency,
                reported: value(&summed, *currency) + value(&pending, *currency),
                stored: value(&stored, *currency),
            };
            if found.reported != found.stored {
                differences.entry(*currency).or_insert(found);
            }
        }
    }
    Ok(SumComparison::Compared(differences.into_values().collect()))
}

/// Annual values by currency, in minor units.
type Levels = BTreeMap<Currency, i128>;

/// Returns what the subscriptions are worth, or `None` if there are more than `limit`.
async fn stored_levels(
    tx: &Transaction<'_>,
    scope: Scope,
    limit: usize,
) -> Result<Option<Levels>, Error> {
    let mut levels = Levels::new();
    let mut after = Uuid::nil();
    let mut count = 0;
    loop {
        let page = subscriptions::table::list_after(tx, scope, after, CHUNK).await?;
        let Some(last) = page.last() else {
            return Ok(Some(levels));
        };
        after = last.id.uuid();
        count += page.len();
        if count > limit {
            return Ok(None);
        }
        for subscription in &page {
            let state = RevenueFacts::from(subscription).started_state();
            *levels.entry(state.currency).or_default() += state.counted_value();
        }
    }
}

/// Returns what the rows of a span add up to.
async fn summed_levels(
    tx: &Transaction<'_>,
    (tenant, generation): (TenantId, i32),
    span: &str,
) -> Result<Levels, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &generation, &span];
    let rows = tx.query(&LEVELS, &params).await?;
    let level = |row| {
        let row = RowReader::new(row);
        Ok((row.parse("currency")?, row.parse("arr_minor")?))
    };
    rows.iter().map(level).collect()
}

/// Returns what the roll-up has not added yet.
async fn pending_levels(tx: &Transaction<'_>, tenant: TenantId) -> Result<Levels, Error> {
    let mut levels = Levels::new();
    let pending = journal_sql::pending_states(tx, tenant).await?;
    let pending: Vec<_> = pending.into_iter().collect();
    for page in pending.chunks(USERS_PER_CHUNK) {
        let users: Vec<TenantUser> = page.iter().map(|(user, _)| *user).collect();
        let rolled = journal_sql::states_of_users(tx, &users).await?;
        for (user, pending) in page {
            let rolled = rolled.get(user).map_or(&[][..], Vec::as_slice);
            let movements = difference(rolled, pending).movements;
            for (key, sums) in movements.iter().filter(|(key, _)| key.segment.is_none()) {
                *levels.entry(key.currency).or_default() += sums.annual_value;
            }
        }
    }
    Ok(levels)
}
