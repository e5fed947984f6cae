//! Computes a tenant's sums again, from the journal and from the payments.
//!
//! The rebuild writes the next generation of the sums, in chunks of users and then of payments. Reports show the current
//! generation until the next one is complete. The roll-up continues meanwhile and also adds the changes of users and
//! payments that the rebuild has passed. A rebuild that was interrupted continues where it stopped.

use perennial_domain::{Contribution, Id, TenantId};
use uuid::Uuid;

use super::{
    journal_sql,
    roll_up::{TenantStates, add_contributions, add_payment_changes, add_payment_total},
    state_sql::{self, Rebuild, ReportState},
    sums_sql::{self, PaymentSums, Target},
};
use crate::{
    db::{CellDatabase, Error, Transaction},
    subscription_payments,
};

/// How many users or payments a chunk has.
const CHUNK: i64 = 2_000;

/// What a step of a rebuild did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildStep {
    /// Another transaction has locked the sums.
    Waiting,
    /// Added so many users.
    Users(usize),
    /// Added so many payments.
    Payments(usize),
    /// The new generation is complete and shown.
    Complete,
}

/// Starts a rebuild, continues it, or completes it.
pub async fn rebuild_step(database: &CellDatabase, tenant: TenantId) -> Result<RebuildStep, Error> {
    match try_step(database, tenant).await {
        // A roll-up ended between the snapshot and the lock, so its changes were not seen.
        Err(error) if error.is_serialization_failure() => Ok(RebuildStep::Waiting),
        result => result,
    }
}

async fn try_step(database: &CellDatabase, tenant: TenantId) -> Result<RebuildStep, Error> {
    let mut connection = database.connection().await?;
    // Payments and the changes of payments are read as of the same instant.
    let tx = connection.begin_snapshot().await?;
    if !journal_sql::try_lock(&tx).await? {
        return Ok(RebuildStep::Waiting);
    }
    let mut state = state_sql::find(&tx, tenant).await?;
    let Some(mut rebuild) = state.rebuild else {
        state.rebuild = Some(Rebuild {
            generation: state.generation + 1,
            users_to: Uuid::nil(),
            payments_to: Uuid::nil(),
        });
        state_sql::save(&tx, tenant, &state).await?;
        tx.commit().await?;
        return Ok(RebuildStep::Users(0));
    };
    let step = match add_users(&tx, tenant, &mut rebuild).await? {
        0 => match add_payments(&tx, tenant, &state, &mut rebuild).await? {
            0 => RebuildStep::Complete,
            count => RebuildStep::Payments(count),
        },
        count => RebuildStep::Users(count),
    };
    if step == RebuildStep::Complete {
        state.generation = rebuild.generation;
        state.rebuild = None;
        let target = Target {
            tenant,
            generation: rebuild.generation,
        };
        sums_sql::delete_earlier(&tx, target).await?;
    } else {
        state.rebuild = Some(rebuild);
    }
    state_sql::save(&tx, tenant, &state).await?;
    tx.commit().await?;
    Ok(step)
}

/// Adds the contributions of the next users. Pending states are left to the roll-up.
async fn add_users(
    tx: &Transaction<'_>,
    tenant: TenantId,
    rebuild: &mut Rebuild,
) -> Result<usize, Error> {
    let users = journal_sql::users_after(tx, tenant, rebuild.users_to, CHUNK).await?;
    let Some((_, last)) = users.last() else {
        return Ok(0);
    };
    rebuild.users_to = last.uuid();
    let states = journal_sql::states_of_users(tx, &users).await?;
    let target = Target {
        tenant,
        generation: rebuild.generation,
    };
    let contributions = states
        .values()
        .map(|states| (vec![target], Contribution::of_user(states)));
    add_contributions(tx, contributions).await?;
    Ok(users.len())
}

/// Adds the next payments, after all changes of payments that were waiting.
async fn add_payments(
    tx: &Transaction<'_>,
    tenant: TenantId,
    state: &ReportState,
    rebuild: &mut Rebuild,
) -> Result<usize, Error> {
    let changes = journal_sql::take_payment_changes_of(tx, tenant).await?;
    if !changes.is_empty() {
        let before = ReportState {
            rebuild: Some(*rebuild),
            ..*state
        };
        add_payment_changes(tx, &TenantStates::from([(tenant, before)]), &changes).await?;
    }
    let after = rebuild.payments_to;
    let payments = subscription_payments::table::list_after(tx, tenant, after, CHUNK).await?;
    let Some(last) = payments.last() else {
        return Ok(0);
    };
    rebuild.payments_to = last.id.uuid();
    let mut sums = PaymentSums::new();
    for payment in &payments {
        for total in payment.totals() {
            add_payment_total(&mut sums, &total);
        }
    }
    let target = Target {
        tenant,
        generation: rebuild.generation,
    };
    sums_sql::add_payments(tx, target, &sums).await?;
    Ok(payments.len())
}
