//! Compares the sums of the reports with the subscriptions.
//!
//! All days together, the movements must add up to what the stored subscriptions are worth. Changes that the roll-up has not
//! added yet are added here. Starts in the future count on both sides, so the result does not depend on the clock.

use std::collections::BTreeMap;

use perennial_domain::{Currency, Id, RevenueFacts, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{journal_sql, rebuild::REPEATABLE_READ, roll_up::difference, state_sql};
use crate::{
    db::{CellDatabase, Error, RowReader, Sql, Transaction},
    subscriptions::{self, table::Scope},
};

/// How many rows are read at a time.
const CHUNK: i64 = 5_000;

/// A currency in which the sums differ from the subscriptions. Annual values, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumDifference {
    pub currency: Currency,
    /// What the sums say.
    pub reported: i128,
    /// What the subscriptions are worth.
    pub stored: i128,
}

static LEVELS: Sql = Sql::new(
    "SELECT currency, sum(arr_minor)::text AS arr_minor FROM revenue_movements
     WHERE tenant_id = $1 AND generation = $2 AND span = 'day' AND plan_id = '00000000-0000-0000-0000-000000000000' AND billing_cycle = ''
     GROUP BY currency",
);

/// Compares the sums with the subscriptions. Returns `None` if there are more than `limit` subscriptions.
pub async fn compare_sums(
    database: &CellDatabase,
    scope: Scope,
    limit: usize,
) -> Result<Option<Vec<SumDifference>>, Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    tx.enqueue(&REPEATABLE_READ, &[]).await?;
    let Some(stored) = stored_levels(&tx, scope, limit).await? else {
        return Ok(None);
    };
    let (tenant, _) = scope;
    let reported = reported_levels(&tx, tenant).await?;
    let value = |levels: &BTreeMap<Currency, i128>, currency: Currency| {
        levels.get(&currency).copied().unwrap_or_default()
    };
    let mut currencies: Vec<Currency> = stored.keys().chain(reported.keys()).copied().collect();
    currencies.sort_unstable();
    currencies.dedup();
    let differences = currencies.into_iter().map(|currency| SumDifference {
        currency,
        reported: value(&reported, currency),
        stored: value(&stored, currency),
    });
    let differences = differences.filter(|found| found.reported != found.stored);
    Ok(Some(differences.collect()))
}

async fn stored_levels(
    tx: &Transaction<'_>,
    scope: Scope,
    limit: usize,
) -> Result<Option<BTreeMap<Currency, i128>>, Error> {
    let mut levels: BTreeMap<Currency, i128> = BTreeMap::new();
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

async fn reported_levels(
    tx: &Transaction<'_>,
    tenant: TenantId,
) -> Result<BTreeMap<Currency, i128>, Error> {
    let found = state_sql::find_many(tx, &[tenant.uuid()]).await?;
    let state = found.first().map(|(_, state)| *state).unwrap_or_default();
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &state.generation];
    let mut levels: BTreeMap<Currency, i128> = BTreeMap::new();
    for row in tx.query(&LEVELS, &params).await? {
        let row = RowReader::new(&row);
        levels.insert(row.parse("currency")?, row.parse("arr_minor")?);
    }
    let mut after = Uuid::nil();
    loop {
        let users = journal_sql::pending_users_after(tx, tenant, after, CHUNK).await?;
        let Some((_, last)) = users.last() else {
            return Ok(levels);
        };
        after = last.uuid();
        let rolled = journal_sql::states_of_users(tx, &users).await?;
        let pending = journal_sql::pending_states_of_users(tx, tenant, &users).await?;
        for (user, pending) in &pending {
            let rolled = rolled.get(user).map_or(&[][..], Vec::as_slice);
            let movements = difference(rolled, pending).movements;
            for (key, sums) in movements.iter().filter(|(key, _)| key.segment.is_none()) {
                *levels.entry(key.currency).or_default() += sums.annual_value;
            }
        }
    }
}
