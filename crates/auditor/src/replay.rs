//! Replays calls and entries in order and checks every probe on the way.
//!
//! Covered time comes only from entries and free terms. A period that the rules charge must have its
//! entry, and an entry that no rule explains is a violation.

use crate::access::check_probe;
use crate::coverage::{Stage, State};
use crate::{Entry, EntryKind, History, Probe, SLACK, Verb, Violation};

/// A replay in progress.
pub(crate) struct Replay<'a> {
    pub(crate) history: &'a History,
    /// Whether the lateness of a dispute starts with its entry instead of its call.
    pub(crate) is_dispute_delayed: bool,
    pub(crate) state: State,
    /// Instants that the states passed through depend on.
    pub(crate) deadlines: Vec<i64>,
    next_entry: usize,
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
            Verb::SetStatus {
                renews_at, ends_at, ..
            } => {
                instants.extend([renews_at, ends_at].into_iter().flatten());
            }
            Verb::Extend { renews_at } => instants.push(renews_at),
            Verb::SetStart { starts_at } => instants.push(starts_at),
            Verb::SetEnd { ends_at } => instants.extend(ends_at),
            Verb::EnterManaged { renews_at } => instants.extend(renews_at),
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
            state: State::new(),
            deadlines: Vec::new(),
            next_entry: 0,
            next_probe: 0,
            shown_from: i64::MIN,
            snapshots: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        let mut fuzz = 0;
        for call in &self.history.calls {
            if call.is_same_request {
                self.apply(call, fuzz)?;
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
            self.apply(call, fuzz)?;
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

    /// Returns the entries that no call or transition has explained yet.
    pub(crate) fn entries_left(&self) -> &'a [Entry] {
        self.history
            .entries
            .get(self.next_entry..)
            .unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<&'a Entry> {
        self.entries_left().first()
    }

    /// Consumes the next entry if it moves money of the payment at that time.
    pub(crate) fn take_money(&mut self, payment: u128, at: i64) {
        if let Some(entry) = self.peek().filter(|entry| entry.payment == Some(payment)) {
            self.take(entry.kind, at);
        }
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
