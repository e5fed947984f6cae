//! Selects the next event to send.

use std::sync::Arc;

use perennial_domain::DeliveryOrder;

use super::EndpointLoop;
use crate::{
    db::Error,
    events::log::{self, EventFilter},
    webhooks::delivery::{
        outcome,
        work_source::{Delivery, DeliverySource, PAGE},
    },
};

/// The most events that are read ahead of the cursor.
const MAX_BACKLOG: usize = 256;

impl EndpointLoop {
    /// Returns the next event to send: a retry that is due, then the log, then a replay.
    pub(super) async fn next_delivery(&mut self) -> Result<Option<Delivery>, Error> {
        let (key, now) = (self.held.key, self.worker.app.clock.now());
        let worker = self.worker.clone();
        if self.retries.needs_reload() {
            let limited = worker.connection().await?;
            self.retries.reload(&limited.connection, key).await?;
        }
        while self.retries.has_due(now) {
            let mut limited = worker.connection().await?;
            let due = self.retries.take_due(&mut limited.connection, key, now);
            match due.await? {
                Some(Ok(delivery)) => {
                    let subject = delivery.event.subject;
                    self.backlog.start_retry(subject, self.settings.order);
                    return Ok(Some(delivery));
                }
                Some(Err(position)) => {
                    outcome::forget(&mut limited.connection, key, position).await?;
                }
                None => break,
            }
        }
        // In strict order, a failed event delays all others.
        if self.settings.order == DeliveryOrder::Strict && !self.retries.is_empty() {
            return Ok(None);
        }
        if let Some(event) = self.take_from_log().await? {
            let source = DeliverySource::Log;
            return Ok(Some(Delivery { event, source }));
        }
        if self.may_have_events || self.backlog.len() > 0 {
            return Ok(None);
        }
        if self.replays.needs_reload() {
            let limited = worker.connection().await?;
            self.replays.reload(&limited.connection, key).await?;
        }
        while self.replays.needs_page() {
            let mut limited = worker.connection().await?;
            let types = &self.settings.types;
            self.replays
                .read_page(&mut limited.connection, key, types, now)
                .await?;
        }
        // In order, one event of a replay at a time.
        if self.settings.order != DeliveryOrder::None && self.replays.is_in_flight() {
            return Ok(None);
        }
        Ok(self.replays.take_next())
    }

    async fn take_from_log(&mut self) -> Result<Option<Arc<log::LoggedEvent>>, Error> {
        loop {
            let order = self.settings.order;
            if let Some(event) = self.backlog.take_next(order) {
                return Ok(Some(event));
            }
            if !self.may_have_events || self.backlog.len() >= MAX_BACKLOG {
                return Ok(None);
            }
            let filter = EventFilter {
                types: self.settings.types.clone(),
                subject: None,
            };
            let tenant = self.held.key.tenant;
            let after = self.backlog.read_to();
            let worker = self.worker.clone();
            let mut limited = worker.connection().await?;
            let page =
                log::read_after(&mut limited.connection, tenant, after, &filter, PAGE).await?;
            drop(limited);
            // Without progress, the next event is unknown to this version.
            self.may_have_events = page.read_to < page.last_position && page.read_to > after;
            self.backlog.extend(page.events, page.read_to);
            self.move_blocked().await?;
        }
    }
}
