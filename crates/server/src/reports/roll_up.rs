//! Background task that adds changes to the sums of the reports.
//!
//! A batch takes new states from events and pending ones, computes the contributions of their users without and with them,
//! and adds the difference. So states can arrive in any order and late: they correct the days that they belong to. One
//! transaction at a time does this per database; it changes the sums and moves the states to those that are in them, so a
//! killed worker has done all of a batch or nothing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use perennial_domain::{Contribution, DayPayments, Id, RecordedState, TenantId};
use uuid::Uuid;

use super::{
    journal_sql::{self, NewStates, PaymentChange, StateNumber, TenantUser},
    state_sql::{self, ReportState},
    sums_sql::{self, PaymentSums, Target},
};
use crate::db::{Error, Transaction};

/// The states of the reports of several tenants.
pub(super) type TenantStates = BTreeMap<TenantId, ReportState>;

/// Returns the states of the reports of these tenants. Writes those with a rebuild again: its transaction fails if it has
/// read the journal before this one ends.
async fn tenant_states(
    tx: &Transaction<'_>,
    tenants: impl Iterator<Item = TenantId>,
) -> Result<TenantStates, Error> {
    let mut tenants: Vec<Uuid> = tenants.map(Id::uuid).collect();
    tenants.sort_unstable();
    tenants.dedup();
    let found = state_sql::find_many(tx, &tenants).await?;
    for (tenant, state) in found.iter().filter(|(_, state)| state.rebuild.is_some()) {
        state_sql::save(tx, *tenant, state).await?;
    }
    Ok(found.into_iter().collect())
}

/// Returns the difference that a user's new states make to those that are in the sums.
pub(super) fn difference(rolled: &[RecordedState], new: &[RecordedState]) -> Contribution {
    let mut difference = Contribution::of_user(&[rolled, new].concat());
    difference.subtract(&Contribution::of_user(rolled));
    difference
}

/// Adds contributions of users to the sums that they belong to.
pub(super) async fn add_contributions(
    tx: &Transaction<'_>,
    contributions: impl Iterator<Item = (Vec<Target>, Contribution)>,
) -> Result<(), Error> {
    let mut by_target: BTreeMap<Target, Contribution> = BTreeMap::new();
    for (targets, contribution) in contributions {
        for target in targets {
            by_target.entry(target).or_default().add(&contribution);
        }
    }
    for (target, contribution) in &by_target {
        sums_sql::add(tx, *target, contribution).await?;
    }
    Ok(())
}

/// Adds new states that took effect by `now` to the sums: up to `limit` pending ones, and those in up to `limit` events. Returns
/// how many states or events it read, whichever is more. Only while the sums are locked.
async fn roll_up_revenue(tx: &Transaction<'_>, now: Timestamp, limit: i64) -> Result<usize, Error> {
    let NewStates { due: taken, events } = journal_sql::take_new(tx, now, limit).await?;
    let count = taken.len().max(events);
    if taken.is_empty() {
        return Ok(count);
    }
    let users: BTreeSet<TenantUser> = taken.iter().map(|(user, _)| *user).collect();
    let users: Vec<TenantUser> = users.into_iter().collect();
    // A tenant that was moved from another cell has numbers that other tenants have too.
    let new: BTreeSet<StateNumber> = taken.into_iter().collect();
    let states = journal_sql::states_of_users(tx, &users).await?;
    let tenants = tenant_states(tx, users.iter().map(|(tenant, _)| *tenant)).await?;
    let contributions = states.into_iter().map(|((tenant, user), states)| {
        let state = tenants.get(&tenant).copied().unwrap_or_default();
        let is_new = |state: &RecordedState| new.contains(&((tenant, user), state.sequence));
        let (new, rolled): (Vec<_>, Vec<_>) = states.into_iter().partition(is_new);
        (
            state.targets_of_user(tenant, user),
            difference(&rolled, &new),
        )
    });
    add_contributions(tx, contributions).await?;
    Ok(count)
}

/// Adds changes of payments to the sums.
pub(super) async fn add_payment_changes(
    tx: &Transaction<'_>,
    tenants: &TenantStates,
    changes: &[PaymentChange],
) -> Result<(), Error> {
    let mut by_target: BTreeMap<Target, PaymentSums> = BTreeMap::new();
    for change in changes {
        let state = tenants.get(&change.tenant).copied().unwrap_or_default();
        for target in state.targets_of_payment(change.tenant, change.payment) {
            let sums = by_target.entry(target).or_default();
            add_payment_total(sums, &change.total);
        }
    }
    for (target, sums) in &by_target {
        sums_sql::add_payments(tx, *target, sums).await?;
    }
    Ok(())
}

/// Adds what a payment adds to the sums of its day.
pub(super) fn add_payment_total(sums: &mut PaymentSums, total: &DayPayments) {
    let (payments, amount) = sums
        .entry((total.day, total.currency, total.kind))
        .or_default();
    *payments += total.payments;
    *amount += i128::from(total.amount);
}

/// Adds a batch of changes to the sums. Returns their number; 0 also if another worker is doing it.
pub async fn roll_up(tx: &Transaction<'_>, now: Timestamp, limit: i64) -> Result<usize, Error> {
    if !journal_sql::try_lock(tx).await? {
        return Ok(0);
    }
    let rolled = roll_up_revenue(tx, now, limit).await?;
    let changes = journal_sql::take_payment_changes(tx, limit).await?;
    if !changes.is_empty() {
        let tenants = tenant_states(tx, changes.iter().map(|change| change.tenant)).await?;
        add_payment_changes(tx, &tenants, &changes).await?;
    }
    Ok(rolled + changes.len())
}
