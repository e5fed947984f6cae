//! Where the next event of an endpoint comes from: retries, the log, or a replay.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use perennial_domain::EventTypes;

use crate::{
    db::{Error, PooledConnection},
    events::log::{self, EventFilter, LoggedEvent},
    webhooks::{
        replays_sql::{self, WebhookReplay},
        retries_sql::{self, EndpointKey, ScheduledRetry},
    },
};

/// The number of events or retries that are read at a time.
pub const PAGE: i64 = 64;
/// How often retries and replays are read that another process may have stored.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// An event to send, and why.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub event: Arc<LoggedEvent>,
    pub source: DeliverySource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverySource {
    Log,
    Retry {
        failed_attempts: u32,
        /// When the first attempt failed.
        since: Option<Timestamp>,
    },
    /// `has_retry` if the event failed before and has a row in `webhook_retries`.
    Replay {
        has_retry: bool,
    },
}

impl DeliverySource {
    /// Returns the number of the attempt, starting at 1.
    pub fn attempt(self) -> u32 {
        match self {
            Self::Log | Self::Replay { .. } => 1,
            Self::Retry {
                failed_attempts, ..
            } => failed_attempts.saturating_add(1),
        }
    }

    /// Returns when the first attempt failed.
    pub fn failed_since(self) -> Option<Timestamp> {
        match self {
            Self::Log | Self::Replay { .. } => None,
            Self::Retry { since, .. } => since,
        }
    }

    /// Returns whether the event has a row in `webhook_retries`, which a success removes.
    pub fn has_retry(self) -> bool {
        match self {
            Self::Log => false,
            Self::Retry { .. } => true,
            Self::Replay { has_retry } => has_retry,
        }
    }
}

/// Reads the event at a position. `None` if retention has removed it.
async fn read_at(
    connection: &mut PooledConnection,
    key: EndpointKey,
    position: i64,
) -> Result<Option<LoggedEvent>, Error> {
    let filter = EventFilter::default();
    let page = log::read_after(connection, key.tenant, position - 1, &filter, 1).await?;
    let mut events = page.events.into_iter();
    Ok(events.find(|event| event.position == position))
}

/// The scheduled retries of an endpoint.
#[derive(Debug, Default)]
pub struct RetryQueue {
    /// The earliest first.
    scheduled: VecDeque<ScheduledRetry>,
    in_flight: HashSet<i64>,
    read_at: Option<Instant>,
}

impl RetryQueue {
    /// Reads the retries again before the next one is taken.
    pub fn invalidate(&mut self) {
        self.read_at = None;
    }

    /// Returns when the first retry is due.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.scheduled.front().map(|retry| retry.next_attempt_at)
    }

    pub fn is_empty(&self) -> bool {
        self.scheduled.is_empty() && self.in_flight.is_empty()
    }

    pub fn needs_reload(&self) -> bool {
        self.read_at
            .is_none_or(|at| at.elapsed() >= RELOAD_INTERVAL)
    }

    pub async fn reload(
        &mut self,
        connection: &PooledConnection,
        key: EndpointKey,
    ) -> Result<(), Error> {
        // Those in flight are still stored.
        let limit = PAGE + i64::try_from(self.in_flight.len()).unwrap_or(PAGE);
        let mut scheduled = retries_sql::list(connection, key, limit).await?;
        scheduled.retain(|retry| !self.in_flight.contains(&retry.position));
        self.scheduled = scheduled.into();
        self.read_at = Some(Instant::now());
        Ok(())
    }

    pub fn has_due(&self, now: Timestamp) -> bool {
        self.next_due_at().is_some_and(|due_at| due_at <= now)
    }

    /// Takes the first retry that is due. `Err(position)` if its event no longer exists.
    pub async fn take_due(
        &mut self,
        connection: &mut PooledConnection,
        key: EndpointKey,
        now: Timestamp,
    ) -> Result<Option<Result<Delivery, i64>>, Error> {
        if !self.has_due(now) {
            return Ok(None);
        }
        let Some(retry) = self.scheduled.front().copied() else {
            return Ok(None);
        };
        let event = read_at(connection, key, retry.position).await?;
        self.scheduled.pop_front();
        let Some(event) = event else {
            return Ok(Some(Err(retry.position)));
        };
        self.in_flight.insert(retry.position);
        Ok(Some(Ok(Delivery {
            event: Arc::new(event),
            source: DeliverySource::Retry {
                failed_attempts: retry.failed_attempts,
                since: retry.since,
            },
        })))
    }

    pub fn complete(&mut self, position: i64) {
        self.in_flight.remove(&position);
        self.invalidate();
    }
}

/// The replay that an endpoint is in, page by page.
#[derive(Debug, Default)]
pub struct ReplayQueue {
    replay: Option<WebhookReplay>,
    waiting: VecDeque<Arc<LoggedEvent>>,
    /// The positions of the current page that have a row in `webhook_retries`.
    retried: HashSet<i64>,
    in_flight: usize,
    /// The end of the current page.
    read_to: i64,
    read_at: Option<Instant>,
}

impl ReplayQueue {
    pub fn is_active(&self) -> bool {
        self.replay.is_some()
    }

    pub fn needs_reload(&self) -> bool {
        self.replay.is_none()
            && self
                .read_at
                .is_none_or(|at| at.elapsed() >= RELOAD_INTERVAL)
    }

    /// Reads the first unfinished replay.
    pub async fn reload(
        &mut self,
        connection: &PooledConnection,
        key: EndpointKey,
    ) -> Result<(), Error> {
        self.replay = replays_sql::find_first(connection, key).await?;
        self.read_at = Some(Instant::now());
        Ok(())
    }

    /// Takes the next event of the replay.
    pub fn take_next(&mut self) -> Option<Delivery> {
        let event = self.waiting.pop_front()?;
        self.in_flight += 1;
        let has_retry = self.retried.contains(&event.position);
        Some(Delivery {
            event,
            source: DeliverySource::Replay { has_retry },
        })
    }

    pub fn is_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    pub fn complete(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Returns whether the current page is sent, so that the next one can be read.
    pub fn needs_page(&self) -> bool {
        self.is_active() && self.waiting.is_empty() && self.in_flight == 0
    }

    /// Saves the position after the current page and reads the next one, or ends the replay.
    pub async fn read_page(
        &mut self,
        connection: &mut PooledConnection,
        key: EndpointKey,
        endpoint_types: &EventTypes,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(replay) = &mut self.replay else {
            return Ok(());
        };
        if self.read_to > replay.position {
            let position = self.read_to.min(replay.last_position);
            replays_sql::save_position(connection, key, replay.id, position, now).await?;
            replay.position = position;
        }
        if replay.position >= replay.last_position {
            replays_sql::save_position(connection, key, replay.id, replay.position, now).await?;
            *self = Self::default();
            return Ok(());
        }
        let range = (replay.position, replay.last_position);
        if replay.only_failed {
            let positions = retries_sql::list_given_up(connection, key, range, PAGE).await?;
            self.read_to = match positions.last() {
                Some(last) => *last,
                None => replay.last_position,
            };
            self.retried = positions.iter().copied().collect();
            for position in positions {
                let event = read_at(connection, key, position).await?;
                let event = event.filter(|event| replay.event_types.matches(event.kind));
                self.waiting.extend(event.map(Arc::new));
            }
            return Ok(());
        }
        let types = if replay.event_types.is_empty() {
            endpoint_types
        } else {
            &replay.event_types
        };
        let filter = EventFilter {
            types: types.clone(),
            subject: None,
        };
        let page = log::read_after(connection, key.tenant, range.0, &filter, PAGE).await?;
        let events = { page.events.into_iter() }.filter(|event| event.position <= range.1);
        self.waiting.extend(events.map(Arc::new));
        self.read_to = page.read_to.max(range.0).min(range.1);
        if self.read_to == range.0 && self.waiting.is_empty() {
            // The rest of the range is not readable, because a newer version recorded it or it was removed.
            self.read_to = range.1;
        }
        let page = (range.0, self.read_to);
        let retried = retries_sql::positions(connection, key, page).await?;
        self.retried = retried.into_iter().collect();
        Ok(())
    }
}
