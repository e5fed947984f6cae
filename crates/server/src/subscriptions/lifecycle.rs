//! Time moves subscriptions: a background task writes down what happens by itself.
//!
//! What happens and when is `domain/subscription/lifecycle`; here the due ones are claimed, asked, and written, each step
//! with its event, in one transaction and few statements. A step carries the instant that it was due, so that a worker
//! that comes late, or five that share the work, leave the same records as one that is always on time.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Id, Lifecycle, Step, Subscription};

use super::{Change, SubscriptionView, due, table};
use crate::{
    callers,
    clock::Ids,
    db::{Engine, Error, Transaction},
    events::{self, By, Event},
};

/// How many steps one batch writes down at most: who was away for a year of daily renewals does not catch up in one go.
const MOST_STEPS: usize = 2_000;

/// What happened to a subscription, as its event says: what it is then, and what it was just before.
fn told(before: &Subscription, step: &Step) -> Result<impl serde::Serialize + use<>, Error> {
    let tick = SignedDuration::from_micros(1);
    let just_before = step.at.saturating_sub(tick).unwrap_or(step.at);
    let was = SubscriptionView::at(before, just_before);
    let is = SubscriptionView::at(&step.after, step.at);
    events::changed(&was, &is)
}

/// Moves up to about `limit` subscriptions of all tenants to where they are at `now`; answers how many it moved.
pub async fn move_due(
    home: &Engine,
    cell: &str,
    tx: &Transaction<'_>,
    (ids, now): (Ids, Timestamp),
    limit: i64,
) -> Result<usize, Error> {
    let managed = callers::tenants::table::managed(home).await?;
    let claimed = due::claim(tx, &managed, now, limit).await?;
    let rules: HashMap<_, _> = managed.into_iter().collect();
    let (mut moved, mut steps) = (Vec::new(), Vec::new());
    for (tenant, mut one) in claimed {
        let lifecycle = rules.get(&tenant).unwrap_or(&Lifecycle::Recorded);
        let known = steps.len();
        // What is left stays due, for the next batch.
        while steps.len() < MOST_STEPS
            && let Some(step) = one.step(lifecycle, now)
        {
            let data = told(&one, &step)?;
            one = step.after;
            steps.push((step.at, step.turn, tenant, one.id, data));
        }
        if steps.len() > known {
            moved.push((tenant, one));
        }
    }
    steps.sort_by_key(|(at, ..)| *at);
    let late = steps.first().map(|(first, ..)| now.duration_since(*first));
    metrics::gauge!("perennial_subscriptions_late_seconds", "cell" => cell.to_owned())
        .set(late.unwrap_or_default().as_secs_f64().max(0.0));
    let events: Vec<_> = steps
        .iter()
        .map(|(at, turn, tenant, id, data)| Event {
            id: ids.next(*at),
            at: *at,
            tenant: *tenant,
            kind: turn.event(),
            subject: id.uuid(),
            by: By::default(),
            data,
        })
        .collect();
    due::save_all(tx, &moved).await?;
    events::record_by_itself(tx, &events).await?;
    Ok(moved.len())
}

impl Change<'_> {
    /// Records what happened by itself.
    pub(super) async fn record_step(
        &self,
        before: &Subscription,
        step: &Step,
    ) -> Result<(), Error> {
        let data = told(before, step)?;
        self.record((step.turn.event(), step.at), before, &data)
            .await
    }

    /// Writes down everything that was due for a subscription that is locked; answers what it is then. The change itself
    /// comes after that.
    pub async fn catch_up(
        &mut self,
        subscription: Subscription,
        lifecycle: &Lifecycle,
    ) -> Result<Subscription, Error> {
        let mut one = subscription;
        let due_by = self.now;
        while let Some(step) = one.step(lifecycle, due_by) {
            self.record_step(&one, &step).await?;
            table::save(self.tx, self.tenant, &step.after).await?;
            one = step.after;
            let tick = SignedDuration::from_micros(1);
            self.now = self
                .now
                .max(one.updated_at.saturating_add(tick).unwrap_or(self.now));
        }
        Ok(one)
    }
}
