//! Advances the billing clock, which subscriptions, payments and access use.
//!
//! Sessions and tokens use the real clock. The offset of the billing clock is stored in the database, and running
//! instances follow it. Advancing applies all due transitions, day by day. All tenants share the clock.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{TenantId, Transition};

use crate::{
    app::CLOCK_POLL_INTERVAL,
    auth::tenants,
    clock::{Clocks, IdGenerator},
    db::{Databases, Error, instance},
    events,
    randomness::Randomness,
    subscriptions::{
        apply_due_transitions,
        lapsed::{LapsedSubscription, list_lapsed},
    },
};

/// The longest step: ten years.
pub const MAX_ADVANCE: SignedDuration = SignedDuration::from_hours(24 * 3_660);
/// Subscriptions per transaction.
const BATCH_SIZE: i64 = 2_000;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Moves the billing clock forward to `to` and applies everything that falls due. Calls `progress` after each day, with the
/// number of days and the time. Returns when running instances use the new time.
pub async fn advance(
    db: &Databases,
    clocks: Clocks,
    to: Timestamp,
    mut progress: impl FnMut(usize, Timestamp),
) -> anyhow::Result<()> {
    let mut instant = clocks.billing.now();
    let mut days = 0;
    while instant < to {
        instant = instant.saturating_add(DAY)?.min(to);
        let offset = instant.duration_since(clocks.real.now());
        let mut home = db.home()?.connection().await?;
        let tx = home.begin();
        instance::advance_clock_offset(&tx, i64::try_from(offset.as_micros())?).await?;
        tx.commit().await?;
        drop(home);
        for cell in db.cell_names() {
            apply_all_due(db, cell, instant).await?;
        }
        days += 1;
        progress(days, instant);
    }
    tokio::time::sleep(CLOCK_POLL_INTERVAL * 2).await;
    Ok(())
}

/// Resets the billing clock to `now`, the real time.
pub async fn reset(db: &Databases, now: Timestamp) -> Result<(), Error> {
    let mut home = db.home()?.connection().await?;
    let tx = home.begin();
    instance::reset_clock_offset(&tx).await?;
    tx.commit().await?;
    // A managed lifecycle that started at a simulated time would do nothing until then.
    tenants::cap_lifecycle_since(&mut home, now).await
}

/// Applies all transitions of a cell that are due at `now`.
pub async fn apply_all_due(db: &Databases, cell: &str, now: Timestamp) -> anyhow::Result<()> {
    let mut connection = db.cell(cell)?.connection().await?;
    loop {
        let tx = connection.begin();
        let applied = apply_due_transitions(
            db.home()?,
            cell,
            &tx,
            (IdGenerator(Randomness), now),
            BATCH_SIZE,
        )
        .await?;
        tx.commit().await?;
        if applied == 0 {
            return Ok(());
        }
    }
}

/// What changed for some tenants while the clock advanced.
pub struct ClockReport {
    /// Events by kind.
    counts: BTreeMap<String, i64>,
    /// Subscriptions that are no longer paid, up to a limit per cell.
    pub lapsed: Vec<LapsedSubscription>,
}

impl ClockReport {
    /// Reads the changes after `from` and up to `to`, with up to `max_lapsed` subscriptions per cell.
    pub async fn load(
        db: &Databases,
        tenants: &[TenantId],
        (from, to): (Timestamp, Timestamp),
        max_lapsed: i64,
    ) -> Result<Self, Error> {
        let (mut counts, mut lapsed) = (BTreeMap::new(), Vec::new());
        for cell in db.cell_names() {
            let connection = db.cell(cell)?.connection().await?;
            for (kind, count) in events::count_by_kind(&connection, tenants, from, to).await? {
                *counts.entry(kind).or_default() += count;
            }
            lapsed.extend(list_lapsed(&connection, tenants, (from, to), max_lapsed).await?);
        }
        Ok(Self { counts, lapsed })
    }

    pub fn count(&self, transition: Transition) -> i64 {
        let count = self.counts.get(transition.event_kind().as_str());
        count.copied().unwrap_or_default()
    }

    pub fn count_events(&self) -> i64 {
        self.counts.values().sum()
    }
}
