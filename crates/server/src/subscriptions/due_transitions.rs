//! Background task that applies due transitions to subscriptions.
//!
//! The rules are in `domain/subscription`. A batch claims due subscriptions and stores their
//! transitions, each with its event and its ledger entries, in one transaction. A transition is stored
//! with the time at which it was due, so late or concurrent workers store the same result as a single
//! one that is always on time.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{DueTransition, Id, Subscription};

use super::{SubscriptionView, due_sql, ledger};
use crate::{
    auth,
    clock::IdGenerator,
    db::{CellDatabase, Error, Transaction},
    events::{self, Actor, Event},
    record::ChangeContext,
    revenue_journal,
};

/// The maximum number of transitions per batch, so that a year of daily renewals does not fill
/// one transaction.
const MAX_TRANSITIONS: usize = 2_000;

/// The precision of stored timestamps.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// Returns the data of a transition's event: the subscription afterwards, and the fields that differ
/// from just before. Returns `None` if clients see no difference.
fn event_data(
    before: &Subscription,
    due: &DueTransition,
) -> Result<Option<impl serde::Serialize + use<>>, Error> {
    let just_before = due.at.saturating_sub(TICK).unwrap_or(due.at);
    let before = SubscriptionView::at(before, just_before);
    let after = SubscriptionView::at(&due.after, due.at);
    if before == after {
        return Ok(None);
    }
    events::diff(&before, &after).map(Some)
}

/// Applies the transitions due by `now` to about `limit` subscriptions of all tenants. Returns the
/// number of changed subscriptions.
pub async fn apply_due_transitions(
    home: &CellDatabase,
    cell: &str,
    tx: &Transaction<'_>,
    (ids, now): (IdGenerator, Timestamp),
    limit: i64,
) -> Result<usize, Error> {
    let managed = auth::tenants::table::list_managed(home).await?;
    let claimed = due_sql::claim(tx, &managed, now, limit).await?;
    let (mut changed, mut applied, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    let mut revenue = Vec::new();
    let mut first_due = None;
    let mut count = 0;
    for (tenant, mut subscription) in claimed {
        // Transitions beyond the limit stay due for the next batch.
        while count < MAX_TRANSITIONS
            && let Some(due) = subscription.next_transition(now)
        {
            if let Some(data) = event_data(&subscription, &due)? {
                applied.push((due.at, due.transition, tenant, subscription.id, data));
            }
            let rows = ledger::rows(tenant, &due.after, &due.entries, ids, &Actor::default());
            entries.extend(rows);
            let before = Some(&subscription);
            revenue.extend(revenue_journal::changes(tenant, before, &due.after, due.at));
            first_due = Some(first_due.map_or(due.at, |first: Timestamp| first.min(due.at)));
            subscription = due.after;
            count += 1;
        }
        // Also stored without a transition: its `due_at` may have been too early.
        changed.push((tenant, subscription));
    }
    applied.sort_by_key(|(at, ..)| *at);
    let lateness = first_due.map(|first| now.duration_since(first));
    metrics::gauge!("perennial_subscriptions_late_seconds", "cell" => cell.to_owned())
        .set(lateness.unwrap_or_default().as_secs_f64().max(0.0));
    let events: Vec<_> = applied
        .iter()
        .map(|(at, transition, tenant, id, data)| Event {
            id: ids.generate(*at),
            at: *at,
            tenant: *tenant,
            kind: transition.event_kind(),
            subject: id.uuid(),
            actor: Actor::default(),
            data,
        })
        .collect();
    due_sql::update_many(tx, &changed).await?;
    ledger::table::append(tx, &entries).await?;
    revenue_journal::append_many(tx, &revenue).await?;
    events::record_system_events(tx, &events).await?;
    Ok(changed.len())
}

impl ChangeContext<'_> {
    /// Records the event and the ledger entries of a transition at the time it was due.
    pub(super) async fn record_transition(
        &self,
        before: &Subscription,
        due: &DueTransition,
    ) -> Result<(), Error> {
        if let Some(data) = event_data(before, due)? {
            let kind = due.transition.event_kind();
            self.record_event_at(due.at, kind, before.id, &data).await?;
        }
        self.append_revenue(Some(before), &due.after, due.at)
            .await?;
        // Time causes a transition, not the request that happens to store it.
        let actor = Actor::default();
        let rows = ledger::rows(self.tenant, &due.after, &due.entries, self.ids, &actor);
        ledger::table::append(self.tx, &rows).await
    }
}
