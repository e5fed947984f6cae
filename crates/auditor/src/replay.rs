//! Replays calls and entries in order and checks every probe on the way.
//!
//! Covered time comes only from entries and free terms. A period that the rules charge must have its
//! entry, and an entry that no rule explains is a violation.

use std::collections::BTreeMap;

use crate::access::check_probe;
use crate::coverage::{Stage, State};
use crate::money::PaymentRecord;
use crate::price::{self, Step};
use crate::{Call, Entry, EntryKind, History, Probe, SLACK, Verb, Violation};

/// A replay in progress.
pub(crate) struct Replay<'a> {
    pub(crate) history: &'a History,
    /// Whether the lateness of a dispute starts with its entry instead of its call.
    pub(crate) is_dispute_delayed: bool,
    /// Whether the price law is judged, instead of the exact amounts of changes.
    is_price_judged: bool,
    pub(crate) state: State,
    pub(crate) payments: BTreeMap<u128, PaymentRecord>,
    /// The last call, for the price law.
    last_step: Option<Step>,
    /// Instants that the states passed through depend on.
    pub(crate) deadlines: Vec<i64>,
    next_entry: usize,
    next_call_at: i64,
    next_probe: usize,
    /// The first instant whose probe certainly shows the present call.
    shown_from: i64,
    /// States that a probe may still show, each with the last instant at which it may.
    snapshots: Vec<(i64, State)>,
}

pub(crate) fn fail(at: i64, what: impl Into<String>) -> Violation {
    Violation {
        law: "access",
        at,
        what: what.into(),
    }
}

/// Checks the access law.
pub(crate) fn check(history: &History) -> Result<(), Violation> {
    // The lateness of a dispute starts at the call, or with the entry it posted. Both are lawful, and
    // they differ by a few microseconds when another change had the same instant.
    Replay::new(history, false).run().or_else(|violation| {
        let result = Replay::new(history, true).run();
        result.map_err(|_| violation)
    })
}

/// Checks the price law, up to the first violation of the access law that is no wrong amount.
pub(crate) fn check_prices(history: &History) -> Result<(), Violation> {
    let mut result = Ok(());
    for is_dispute_delayed in [false, true] {
        let mut replay = Replay::new(history, is_dispute_delayed);
        replay.is_price_judged = true;
        result = replay.run();
        match &result {
            Err(violation) if violation.law != price::LAW => {}
            _ => return result,
        }
    }
    result.or(Ok(()))
}

/// Collects the instants of a history and the deadlines that follow from it.
pub(crate) fn instants(history: &History) -> Vec<i64> {
    let mut replay = Replay::new(history, false);
    // A history that breaks a law still has instants; the replay gives those up to there.
    let _ = replay.run();
    let mut instants = replay.deadlines;
    for call in &history.calls {
        instants.push(call.at);
        match call.verb {
            Verb::Create {
                starts_at,
                renews_at,
                ends_at,
                ..
            } => {
                instants.extend([starts_at, renews_at, ends_at].into_iter().flatten());
            }
            Verb::SetStatus { ends_at, .. } | Verb::SetEnd { ends_at } => instants.extend(ends_at),
            Verb::FreeUntil { until } => instants.push(until),
            Verb::SetStart { starts_at } => instants.push(starts_at),
            Verb::EnterManaged { shown } => {
                let dates = [shown.renews_at, shown.ends_at, shown.late_since];
                instants.push(shown.starts_at);
                instants.extend(dates.into_iter().flatten());
            }
            _ => {}
        }
    }
    for entry in &history.entries {
        instants.push(entry.at);
        if let Some((start, end)) = entry.period {
            instants.push(start);
            instants.extend(end);
        }
    }
    instants.sort_unstable();
    instants.dedup();
    instants
}

impl<'a> Replay<'a> {
    fn new(history: &'a History, is_dispute_delayed: bool) -> Self {
        Self {
            history,
            is_dispute_delayed,
            is_price_judged: false,
            last_step: None,
            state: State::new(),
            payments: BTreeMap::new(),
            deadlines: Vec::new(),
            next_entry: 0,
            next_call_at: i64::MAX,
            next_probe: 0,
            shown_from: i64::MIN,
            snapshots: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        let mut fuzz = 0;
        for (index, call) in self.history.calls.iter().enumerate() {
            let next = self.history.calls.get(index + 1);
            self.next_call_at = next.map_or(i64::MAX, |next| next.at);
            if call.is_same_request {
                self.step(call, fuzz)?;
                self.advance(call.at)?;
                continue;
            }
            self.check_probes_before(call.at)?;
            self.advance(call.at)?;
            self.refuse_entries_before(call.at)?;
            let effective = call.at.max(self.state.last_change.saturating_add(1));
            if self.state.stage != Stage::Unmanaged {
                self.keep_snapshot(call.at.max(effective - 1));
            }
            self.shown_from = effective.max(call.at + 1);
            fuzz = effective - call.at;
            self.step(call, fuzz)?;
            self.state.last_change = self.state.last_change.max(effective);
            self.advance(call.at)?;
            self.deadlines
                .extend(self.state.deadlines(self.history.dunning));
        }
        self.check_probes_before(i64::MAX)?;
        if let Some(entry) = self.history.entries.last() {
            self.advance(entry.at)?;
        }
        self.refuse_entries_before(i64::MAX)
    }

    /// Applies a call and judges its price.
    fn step(&mut self, call: &Call, fuzz: i64) -> Result<(), Violation> {
        if !self.is_price_judged {
            return self.apply(call, fuzz);
        }
        let (before, entry) = (self.state.clone(), self.next_entry);
        self.apply(call, fuzz)?;
        let step = Step {
            call: *call,
            fuzz,
            before,
            after: self.state.clone(),
            has_posted: self.next_entry > entry || self.is_entry_posted(call),
        };
        price::check_step(&step, self.last_step.as_ref(), self.history.dunning)?;
        self.last_step = Some(step);
        Ok(())
    }

    /// Returns whether the next entry belongs to a call, not to a later call or transition.
    fn is_entry_posted(&self, call: &Call) -> bool {
        let due = self.state.next_due(self.history.dunning);
        let due = due.map_or(i64::MAX, |(at, _)| at);
        let limit = due.min(self.next_call_at).min(call.at + SLACK);
        self.peek().is_some_and(|entry| entry.at < limit)
    }

    /// Returns a violation of an exact amount, which the price law leaves to its own bounds.
    pub(crate) fn refuse_price(&self, at: i64, what: impl Into<String>) -> Result<(), Violation> {
        if self.is_price_judged {
            return Ok(());
        }
        Err(fail(at, what))
    }

    fn check_probes_before(&mut self, limit: i64) -> Result<(), Violation> {
        while let Some(probe) = self.history.probes.get(self.next_probe) {
            if probe.at >= limit {
                break;
            }
            self.next_probe += 1;
            self.check_probe(probe)?;
        }
        Ok(())
    }

    fn check_probe(&mut self, probe: &Probe) -> Result<(), Violation> {
        self.advance(probe.at)?;
        self.refuse_entries_before(probe.at)?;
        if probe.at >= self.shown_from {
            self.adopt(probe);
            self.advance(probe.at)?;
        }
        self.snapshots.retain(|(until, _)| *until >= probe.at);
        check_probe(&self.state, probe).or_else(|violation| {
            let is_lawful = |(_, state): &(i64, State)| check_probe(state, probe).is_ok();
            if self.snapshots.iter().any(is_lawful) {
                Ok(())
            } else {
                Err(violation)
            }
        })
    }

    /// Takes over from a probe what the calls leave open: a derived end, and a few microseconds.
    fn adopt(&mut self, probe: &Probe) {
        let state = &mut self.state;
        if !state.is_end_known {
            state.is_end_known = true;
            state.ends_at = probe.ends_at;
        }
        if state.fuzz > 0
            && let (Some(Some(derived)), Some(shown)) = (state.renews_at(), probe.renews_at)
            && (0..=state.fuzz).contains(&(shown - derived))
        {
            state.shift(shown - derived);
        }
    }

    /// Keeps the present state for probes up to an instant.
    pub(crate) fn keep_snapshot(&mut self, until: i64) {
        self.snapshots.push((until, self.state.clone()));
    }

    fn refuse_entries_before(&self, limit: i64) -> Result<(), Violation> {
        match self.peek() {
            Some(entry) if entry.at < limit => {
                let (kind, amount, period) = (entry.kind, entry.amount, entry.period);
                let what = format!("no rule explains a {kind:?} entry of {amount} for {period:?}");
                Err(fail(entry.at, what))
            }
            _ => Ok(()),
        }
    }

    /// Returns the first entry that no call or transition has explained yet.
    pub(crate) fn peek(&self) -> Option<&'a Entry> {
        self.history.entries.get(self.next_entry)
    }

    /// Consumes the next entry if it has the kind and the time.
    pub(crate) fn take(&mut self, kind: EntryKind, at: i64) -> Option<&'a Entry> {
        let entry = self.peek()?;
        if entry.kind != kind || !(at..=at + SLACK).contains(&entry.at) {
            return None;
        }
        self.next_entry += 1;
        self.state.credit += entry.amount;
        self.state.last_change = self.state.last_change.max(entry.at);
        Some(entry)
    }
}
