//! The events that have been read from the log and are not delivered yet, and which of them is next.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    sync::Arc,
};

use perennial_domain::DeliveryOrder;
use uuid::Uuid;

use crate::events::log::LoggedEvent;

/// The events between an endpoint's cursor and the end of the log, in order.
#[derive(Debug)]
pub struct Backlog {
    waiting: VecDeque<Arc<LoggedEvent>>,
    /// The positions of all events that were read, but are neither delivered nor stored as retries.
    outstanding: BTreeSet<i64>,
    /// The subjects with an event in flight.
    subjects_in_flight: HashSet<Uuid>,
    /// All events up to this position were read.
    read_to: i64,
}

impl Backlog {
    /// Creates a backlog that starts after a position.
    pub fn new(position: i64) -> Self {
        Self {
            waiting: VecDeque::new(),
            outstanding: BTreeSet::new(),
            subjects_in_flight: HashSet::new(),
            read_to: position,
        }
    }

    pub fn read_to(&self) -> i64 {
        self.read_to
    }

    /// Returns the position up to which all events are delivered or stored as retries.
    pub fn position(&self) -> i64 {
        let first = self.outstanding.first();
        first.map_or(self.read_to, |first| first - 1)
    }

    /// Returns the number of events that are not delivered yet.
    pub fn len(&self) -> usize {
        self.outstanding.len()
    }

    /// Adds events that follow the ones that were read before.
    pub fn extend(&mut self, events: Vec<LoggedEvent>, read_to: i64) {
        for event in events {
            self.outstanding.insert(event.position);
            self.waiting.push_back(Arc::new(event));
        }
        self.read_to = self.read_to.max(read_to);
    }

    /// Takes the next event that may be sent.
    pub fn take_next(&mut self, order: DeliveryOrder) -> Option<Arc<LoggedEvent>> {
        let index = match order {
            DeliveryOrder::None => 0,
            DeliveryOrder::Strict if self.subjects_in_flight.is_empty() => 0,
            DeliveryOrder::Strict => return None,
            DeliveryOrder::Subject => self
                .waiting
                .iter()
                .position(|event| !self.subjects_in_flight.contains(&event.subject))?,
        };
        let event = self.waiting.remove(index)?;
        if order != DeliveryOrder::None {
            self.subjects_in_flight.insert(event.subject);
        }
        Some(event)
    }

    /// Takes the waiting events of these subjects. They are still outstanding.
    pub fn take_blocked(&mut self, subjects: &HashSet<Uuid>) -> Vec<Arc<LoggedEvent>> {
        if subjects.is_empty() {
            return Vec::new();
        }
        let (blocked, waiting): (VecDeque<_>, _) =
            { self.waiting.drain(..) }.partition(|event| subjects.contains(&event.subject));
        self.waiting = waiting;
        blocked.into()
    }

    /// Puts events back that were taken last, in order.
    pub fn put_back(&mut self, events: Vec<Arc<LoggedEvent>>) {
        for event in events.into_iter().rev() {
            self.waiting.push_front(event);
        }
    }

    /// Records that an event is delivered or stored as a retry.
    pub fn complete(&mut self, event: &LoggedEvent) {
        self.outstanding.remove(&event.position);
        self.subjects_in_flight.remove(&event.subject);
    }

    /// Records that waiting events are stored as retries.
    pub fn complete_blocked(&mut self, events: &[Arc<LoggedEvent>]) {
        for event in events {
            self.outstanding.remove(&event.position);
        }
    }

    /// Marks the subject of a retry as in flight.
    pub fn start_retry(&mut self, subject: Uuid, order: DeliveryOrder) {
        if order != DeliveryOrder::None {
            self.subjects_in_flight.insert(subject);
        }
    }

    /// Records that a retry has ended.
    pub fn end_retry(&mut self, subject: Uuid) {
        self.subjects_in_flight.remove(&subject);
    }
}
