//! Which of a payment provider's reports about an object is the latest.
//!
//! Notifications arrive late, twice, in any order or not at all, and several workers fetch. A
//! notification is therefore only a hint that the object changed: it raises `wanted`. A worker takes a
//! lease, notes `wanted`, fetches the object and applies it. Afterwards `seen` is what it noted.
//!
//! - The last fetch starts after the last hint, because an object with `wanted` above `seen` is
//!   fetched again.
//! - A worker that lost its lease is fenced by the lease's generation, so an old response never
//!   replaces a newer one.
//!
//! Without access to the payment provider's API, the newest payload wins instead: by version, then by
//! rank of the status, then by its fields. The last one has no meaning, but makes the result
//! independent of the order of arrival.
//!
//! The state is a database row. The functions here must run while it is locked.

use jiff::{SignedDuration, Timestamp};

use super::Fact;

/// A fact, and when the payment provider last changed the object.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedFact<F> {
    /// The fact.
    pub fact: F,
    /// The object's time of last change, often in whole seconds; `None` if the payment provider does
    /// not report one.
    pub version: Option<Timestamp>,
}

impl<F: Fact> ReportedFact<F> {
    /// Returns whether this payload replaces `other`. It is a strict total order of different payloads.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let coarse = |reported: &Self| (reported.version, reported.fact.status_rank());
        match coarse(self).cmp(&coarse(other)) {
            std::cmp::Ordering::Equal => self.fact.to_fields() > other.fact.to_fields(),
            ordering => ordering.is_gt(),
        }
    }
}

/// What the service remembers about one object of a payment account.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncState<F> {
    /// The latest fact that the record follows; `None` before the first one.
    pub applied: Option<ReportedFact<F>>,
    /// Number of hints that the object changed.
    pub wanted: i64,
    /// The hints that the latest applied fetch covers. The object is dirty while `wanted` is higher.
    pub seen: i64,
    /// Number of leases that were granted; fences the holders of earlier ones.
    pub generation: i64,
    /// End of the current lease; `None` if there is none.
    pub leased_until: Option<Timestamp>,
}

/// The right to fetch an object and apply the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLease {
    /// The generation of the lease.
    pub generation: i64,
    /// The hints that the fetch covers, because it starts later.
    pub wanted: i64,
}

/// What to do with a fetched fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchedDecision {
    /// The record follows it.
    Apply,
    /// Another worker has the object now. The response is dropped.
    Fenced,
    /// The response is older than the applied fact, as from a replica that lags. The worker releases
    /// its lease, and the object is fetched again later.
    Outdated,
}

/// What to do with a fact from a list, which was read without a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedDecision {
    /// It equals the applied fact.
    Unchanged,
    /// It is the first fact of the object, and the record follows it.
    Apply,
    /// The fact differs, and may be older than the applied one: the object must be fetched.
    Hint,
}

impl<F: Fact> SyncState<F> {
    /// Creates the state of an object without a hint or a fact.
    pub fn new() -> Self {
        Self {
            applied: None,
            wanted: 0,
            seen: 0,
            generation: 0,
            leased_until: None,
        }
    }

    /// Notes that the object may have changed.
    pub fn hint(&mut self) {
        self.wanted = self.wanted.saturating_add(1);
    }

    /// Returns whether the object must be fetched.
    pub fn is_dirty(&self) -> bool {
        self.wanted > self.seen
    }

    /// Grants a lease on a dirty object, unless another worker has one at `now`. The fetch must start
    /// afterwards.
    pub fn claim(&mut self, now: Timestamp, ttl: SignedDuration) -> Option<FetchLease> {
        if !self.is_dirty() || self.is_leased(now) {
            return None;
        }
        self.generation = self.generation.saturating_add(1);
        self.leased_until = Some(now.saturating_add(ttl).unwrap_or(Timestamp::MAX));
        Some(FetchLease {
            generation: self.generation,
            wanted: self.wanted,
        })
    }

    fn is_leased(&self, now: Timestamp) -> bool {
        self.leased_until.is_some_and(|until| until > now)
    }

    /// Decides about a fact that was fetched under `lease`.
    pub fn judge_fetched(&self, lease: FetchLease, fetched: &ReportedFact<F>) -> FetchedDecision {
        let applied_version = self.applied.as_ref().and_then(|applied| applied.version);
        match fetched.version {
            _ if lease.generation != self.generation => FetchedDecision::Fenced,
            Some(version) if Some(version) < applied_version => FetchedDecision::Outdated,
            Some(_) | None => FetchedDecision::Apply,
        }
    }

    /// Records that the record follows a fetched fact. Hints that came after the lease stay.
    pub fn complete_fetch(&mut self, lease: FetchLease, fetched: ReportedFact<F>) {
        self.applied = Some(fetched);
        self.defer(lease);
    }

    /// Ends a lease whose fact cannot be applied until something else appears, such as its plan. The
    /// next hint makes the object dirty.
    pub fn defer(&mut self, lease: FetchLease) {
        self.seen = self.seen.max(lease.wanted);
        self.release(lease);
    }

    /// Ends a lease without a result, as after a failed request. The object stays dirty.
    pub fn release(&mut self, lease: FetchLease) {
        if lease.generation == self.generation {
            self.leased_until = None;
        }
    }

    /// Decides about a fact that was read from a list before `now`.
    pub fn judge_listed(&self, listed: &F, now: Timestamp) -> ListedDecision {
        match &self.applied {
            Some(applied) if applied.fact == *listed => ListedDecision::Unchanged,
            None if !self.is_leased(now) => ListedDecision::Apply,
            Some(_) | None => ListedDecision::Hint,
        }
    }

    /// Records that the record follows a listed fact. Fences a worker whose lease has expired, because
    /// its response may be older.
    pub fn complete_listed(&mut self, listed: ReportedFact<F>) {
        self.applied = Some(listed);
        self.generation = self.generation.saturating_add(1);
        self.leased_until = None;
    }

    /// Returns whether the record follows the payload of a notification, when objects cannot be
    /// fetched.
    pub fn accepts_payload(&self, payload: &ReportedFact<F>) -> bool {
        let applied = self.applied.as_ref();
        applied.is_none_or(|applied| payload.is_newer_than(applied))
    }

    /// Records that the record follows a payload.
    pub fn complete_payload(&mut self, payload: ReportedFact<F>) {
        self.applied = Some(payload);
    }
}

impl<F: Fact> Default for SyncState<F> {
    fn default() -> Self {
        Self::new()
    }
}
