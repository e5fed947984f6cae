//! Background task that applies due transitions to subscriptions.
//!
//! The rules are in `domain/subscription/lifecycle.rs`. A batch claims due subscriptions and stores
//! their transitions with one event each, in one transaction. A transition is stored with the
//! time at which it was due, so late or concurrent workers store the same result as a single one that
//! is always on time.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{DueTransition, Id, Lifecycle, Subscription};

use super::{SubscriptionView, due_sql, table};
use crate::{
    auth,
    clock::IdGenerator,
    db::{CellDatabase, Error, Transaction},
    events::{self, Actor, Event},
    record::ChangeContext,
};

/// The maximum number of transitions per batch, so that a year of daily renewals does not fill
/// one transaction.
const MAX_TRANSITIONS: usize = 2_000;

/// The precision of stored timestamps.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// Returns the data of a transition's event: the subscription afterwards, and the fields that differ
/// from just before.
fn event_data(
    before: &Subscription,
    due: &DueTransition,
) -> Result<impl serde::Serialize + use<>, Error> {
    let just_before = due.at.saturating_sub(TICK).unwrap_or(due.at);
    events::diff(
        &SubscriptionView::at(before, just_before),
        &SubscriptionView::at(&due.after, due.at),
    )
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
    let lifecycles: HashMap<_, _> = managed.into_iter().collect();
    let (mut changed, mut applied) = (Vec::new(), Vec::new());
    for (tenant, mut subscription) in claimed {
        let lifecycle = lifecycles.get(&tenant).unwrap_or(&Lifecycle::Recorded);
        let count_before = applied.len();
        // Transitions beyond the limit stay due for the next batch.
        while applied.len() < MAX_TRANSITIONS
            && let Some(due) = subscription.next_transition(lifecycle, now)
        {
            let data = event_data(&subscription, &due)?;
            subscription = due.after;
            applied.push((due.at, due.transition, tenant, subscription.id, data));
        }
        if applied.len() > count_before {
            changed.push((tenant, subscription));
        }
    }
    applied.sort_by_key(|(at, ..)| *at);
    let lateness = applied
        .first()
        .map(|(first, ..)| now.duration_since(*first));
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
    events::record_system_events(tx, &events).await?;
    Ok(changed.len())
}

impl ChangeContext<'_> {
    /// Records the event of a transition at the time it was due.
    pub(super) async fn record_transition(
        &self,
        before: &Subscription,
        due: &DueTransition,
    ) -> Result<(), Error> {
        let data = event_data(before, due)?;
        self.record_event_at(due.at, due.transition.event_kind(), before.id, &data)
            .await
    }

    /// Applies all due transitions of a locked subscription and returns it. Moves `now` past the
    /// last transition, so that the caller's change is stored after it.
    pub async fn catch_up(
        &mut self,
        mut subscription: Subscription,
        lifecycle: &Lifecycle,
    ) -> Result<Subscription, Error> {
        let due_by = self.now;
        while let Some(due) = subscription.next_transition(lifecycle, due_by) {
            self.record_transition(&subscription, &due).await?;
            table::update(self.tx, self.tenant, &due.after).await?;
            subscription = due.after;
            let after_last = subscription.updated_at.saturating_add(TICK);
            self.now = self.now.max(after_last.unwrap_or(self.now));
        }
        Ok(subscription)
    }
}
