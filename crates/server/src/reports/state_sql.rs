//! SQL of the table `report_state`: which generation of a tenant's sums is current, and how far a rebuild is.

use perennial_domain::{Id, PaymentId, TenantId, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::sums_sql::Target;
use crate::db::{Error, RowReader, Sql, Transaction};

/// The state of a tenant's reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportState {
    /// The current generation of the sums.
    pub generation: i32,
    /// The rebuild in progress.
    pub rebuild: Option<Rebuild>,
}

/// How far a rebuild is.
#[derive(Debug, Clone, Copy)]
pub struct Rebuild {
    /// The generation that it writes.
    pub generation: i32,
    /// The last user in it.
    pub users_to: Uuid,
    /// The last payment in it.
    pub payments_to: Uuid,
}

impl ReportState {
    /// Returns the sums that a change of a user belongs to.
    pub(super) fn targets_of_user(&self, tenant: TenantId, user: UserId) -> Vec<Target> {
        self.targets(tenant, |rebuild| user.uuid() <= rebuild.users_to)
    }

    /// Returns the sums that a change of a payment belongs to.
    pub(super) fn targets_of_payment(&self, tenant: TenantId, payment: PaymentId) -> Vec<Target> {
        self.targets(tenant, |rebuild| payment.uuid() <= rebuild.payments_to)
    }

    fn targets(&self, tenant: TenantId, is_rebuilt: impl Fn(&Rebuild) -> bool) -> Vec<Target> {
        let rebuild = self.rebuild.filter(is_rebuilt);
        let generations = [
            Some(self.generation),
            rebuild.map(|rebuild| rebuild.generation),
        ];
        let target = |generation| Target { tenant, generation };
        generations.into_iter().flatten().map(target).collect()
    }
}

/// The columns of [`read`].
macro_rules! columns {
    () => {
        "tenant_id, generation, rebuild_generation, rebuilt_users_to, rebuilt_payments_to"
    };
}

static FIND: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM report_state WHERE tenant_id = ANY ($1)"
));

fn read(row: &Row) -> Result<(TenantId, ReportState), Error> {
    let row = RowReader::new(row);
    let tenant = TenantId::new(row.get("tenant_id")?);
    let generation = row.get("generation")?;
    let rebuild_generation: Option<i32> = row.get("rebuild_generation")?;
    let users_to: Option<Uuid> = row.get("rebuilt_users_to")?;
    let payments_to: Option<Uuid> = row.get("rebuilt_payments_to")?;
    let state = ReportState {
        generation,
        rebuild: rebuild_generation.map(|generation| Rebuild {
            generation,
            users_to: users_to.unwrap_or_default(),
            payments_to: payments_to.unwrap_or_default(),
        }),
    };
    Ok((tenant, state))
}

/// Returns the states of these tenants. A tenant without a row is not returned.
pub(super) async fn find_many(
    tx: &Transaction<'_>,
    tenants: &[Uuid],
) -> Result<Vec<(TenantId, ReportState)>, Error> {
    let rows = tx.query(&FIND, &[&tenants]).await?;
    rows.iter().map(read).collect()
}

/// Returns the state of a tenant's reports.
pub(super) async fn find(tx: &Transaction<'_>, tenant: TenantId) -> Result<ReportState, Error> {
    let found = find_many(tx, &[tenant.uuid()]).await?;
    Ok(found.first().map(|(_, state)| *state).unwrap_or_default())
}

static SAVE: Sql = Sql::new(concat!(
    "INSERT INTO report_state (",
    columns!(),
    ") VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant_id) DO UPDATE SET generation = excluded.generation, rebuild_generation = excluded.rebuild_generation,
        rebuilt_users_to = excluded.rebuilt_users_to, rebuilt_payments_to = excluded.rebuilt_payments_to"
));

/// Stores the state of a tenant's reports. Only while the sums are locked.
pub(super) async fn save(
    tx: &Transaction<'_>,
    tenant: TenantId,
    state: &ReportState,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &tenant.uuid(),
        &state.generation,
        &state.rebuild.map(|rebuild| rebuild.generation),
        &state.rebuild.map(|rebuild| rebuild.users_to),
        &state.rebuild.map(|rebuild| rebuild.payments_to),
    ];
    tx.enqueue(&SAVE, &params).await
}
