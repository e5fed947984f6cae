//! Switches between recorded and managed mode.

use crate::calendar::{DAY, cycles_after, is_renewal};
use crate::cover::{Cover, Late, Open, grace_end};
use crate::coverage::{Mode, Stage};
use crate::replay::Replay;
use crate::verbs::mode_of;
use crate::{Cycle, EntryKind, SLACK, Shown, Status, Terms, Violation};

impl Replay<'_> {
    /// Applies the switch to managed mode.
    ///
    /// Covered time, lateness and anchor from the last managed time stay if the record still shows
    /// them.
    pub(crate) fn enter_managed(
        &mut self,
        at: i64,
        fuzz: i64,
        shown: &Shown,
    ) -> Result<(), Violation> {
        self.adopt_renewal(shown.renews_at);
        let before = self.state.left.take();
        let old = self.state.terms;
        let state = &mut self.state;
        state.terms = shown.terms;
        state.starts_at = shown.starts_at;
        state.ends_at = shown.ends_at;
        state.is_end_known = true;
        state.mode = mode_of(shown.status);
        state.stage = Stage::Running;
        if before != Some(Stage::Running) {
            (state.cover, state.open, state.late) = (None, None, None);
        }
        match shown.status {
            Status::Expired => self.state.end(),
            Status::Pending => {
                let is_kept = before.is_some() && shown.renews_at.is_some();
                if !is_kept || self.state.first_end != shown.renews_at {
                    self.state.first_end = None;
                    self.state.anchor = shown.starts_at;
                }
                self.uncover();
                self.state.stage = Stage::Pending;
                // Each change has its own instant: the start follows the switch.
                self.start_pending_if_funded(at + 1, fuzz)?;
            }
            Status::PastDue | Status::Unpaid => {
                self.enter_late(at, fuzz, shown, old, before.is_some())?;
            }
            _ => self.enter_covered(at, fuzz, shown, old, before.is_some())?,
        }
        self.state.is_repriced = false;
        if self.state.stage == Stage::Running {
            // Money that came back in recorded mode ends lateness now.
            self.use_credit(at, fuzz)?;
            self.start_dispute_lateness(at, fuzz);
        }
        Ok(())
    }

    /// Takes over an end of covered time that is known to a few microseconds.
    fn adopt_renewal(&mut self, renews_at: Option<i64>) {
        if let (Some(Some(derived)), Some(shown)) = (self.state.renews_at(), renews_at)
            && (1..=self.state.fuzz).contains(&(shown - derived))
        {
            self.state.shift(shown - derived);
        }
    }

    fn uncover(&mut self) {
        (self.state.cover, self.state.open, self.state.late) = (None, None, None);
    }

    /// Enters with a record that shows an open period: the lateness continues, or starts now.
    fn enter_late(
        &mut self,
        at: i64,
        fuzz: i64,
        shown: &Shown,
        old: Terms,
        was_managed: bool,
    ) -> Result<(), Violation> {
        let since = shown.late_since;
        let is_kept = was_managed
            && (self.keep_cover(at, shown, old)
                || since.is_some_and(|since| self.keep_open(at, shown, since, old)));
        if is_kept {
            self.hide_grace(shown, at);
            return Ok(());
        }
        self.uncover();
        let starts_at = self.state.starts_at;
        if starts_at > at {
            self.state.anchor = starts_at;
            self.state.first_end = None;
            self.state.schedule(starts_at);
            return Ok(());
        }
        let (start, anchor) = match shown.renews_at {
            Some(end) if end > at => {
                let start = cycles_after(end, end, self.state.terms.cycle, -1).unwrap_or(at);
                (start.max(self.state.starts_at).min(at), end)
            }
            _ => (at, at),
        };
        self.state.anchor = anchor;
        self.state.first_end = (anchor > at).then_some(anchor);
        self.start_due(start, at, fuzz)?;
        if start < at {
            // Only the lateness is known to a few microseconds.
            self.state.fuzz = 0;
        }
        if let Some(since) = self.state.late.as_ref().map(|late| late.since) {
            self.hide_grace(shown, since);
        }
        Ok(())
    }

    /// Ends the grace at an instant if the record is shown as unpaid.
    fn hide_grace(&mut self, shown: &Shown, at: i64) {
        if let Some(late) = self.state.late.as_mut()
            && shown.status == Status::Unpaid
        {
            late.grace_until = late.grace_until.min(at);
        }
    }

    /// Keeps covered time that did not change: a debt is late, and without one nothing is. Returns whether it did.
    fn keep_cover(&mut self, at: i64, shown: &Shown, old: Terms) -> bool {
        let covered = self.unchanged_cover(at, old);
        let Some(end) = covered.filter(|cover| !cover.is_empty()).map(Cover::end) else {
            return false;
        };
        if end != shown.renews_at {
            return false;
        }
        if self.state.credit >= 0 {
            self.state.late = None;
            return true;
        }
        let since = shown
            .late_since
            .filter(|since| self.is_in_dunning(at, shown, *since, end));
        self.keep_late(at, shown, since.unwrap_or(at), end);
        true
    }

    /// Returns whether the deadlines of a lateness have not passed.
    fn is_in_dunning(&self, at: i64, shown: &Shown, since: i64, end: Option<i64>) -> bool {
        let dunning = self.history.dunning;
        let grace_until = grace_end(since, end, dunning);
        let expires_at = since + dunning.expired_after_days * DAY;
        expires_at > at && (shown.status != Status::PastDue || grace_until > at)
    }

    /// Keeps the open period that the record shows, late since the instant shown. Returns whether it
    /// did.
    fn keep_open(&mut self, at: i64, shown: &Shown, since: i64, old: Terms) -> bool {
        let Some(start) = shown.renews_at else {
            return false;
        };
        let is_same = self.state.renews_at() == Some(Some(start));
        if start > at {
            return false;
        }
        let (cycle, is_repriced) = (
            self.state.terms.cycle,
            self.state.is_repriced || self.state.terms != old,
        );
        let is_kept = is_same && (!is_repriced || is_renewal(self.state.anchor, start, cycle));
        let anchor = if is_kept { self.state.anchor } else { start };
        let end = match &self.state.open {
            Some(open) if is_same && !is_repriced => open.end,
            _ => cycles_after(anchor, start, self.state.terms.cycle, 1),
        };
        let is_dunned = shown.status != Status::Paused;
        if is_dunned && !self.is_in_dunning(at, shown, since, end) {
            return false;
        }
        self.state.anchor = anchor;
        self.state.cover = None;
        self.state.open = Some(Open { start, end });
        self.keep_late(at, shown, since, end);
        true
    }

    /// Keeps the lateness that the record shows.
    fn keep_late(&mut self, at: i64, shown: &Shown, since: i64, end: Option<i64>) {
        let is_same = |late: &Late| {
            let is_grace_shown = shown.status == Status::PastDue;
            (late.since..=late.since + SLACK).contains(&since)
                && (!is_grace_shown || late.grace_until > at)
        };
        if !self.state.late.as_ref().is_some_and(is_same) {
            self.state.late = Some(Late {
                since,
                grace_until: grace_end(since, end, self.history.dunning),
                is_unpaid: false,
                is_dispute: self.state.open.is_none(),
                fuzz: 0,
            });
        }
    }

    /// Returns the covered time in force if the terms did not change since managed mode was left.
    fn unchanged_cover(&self, at: i64, old: Terms) -> Option<&Cover> {
        let is_unchanged = self.state.terms == old && !self.state.is_repriced;
        let cover = self.state.cover_in_force(at);
        cover.filter(|_| is_unchanged)
    }

    /// Enters with a record that shows covered time, or time that ended while paused.
    fn enter_covered(
        &mut self,
        at: i64,
        fuzz: i64,
        shown: &Shown,
        old: Terms,
        was_managed: bool,
    ) -> Result<(), Violation> {
        let is_paused = self.state.mode == Mode::Paused;
        let is_lifetime = self.state.terms.cycle == Cycle::Lifetime;
        let renews_at = shown.renews_at.or((!is_lifetime).then_some(at));
        if let Some(end) = renews_at.filter(|end| *end <= at) {
            if is_paused {
                self.enter_lapsed(at, shown, end, old);
                return Ok(());
            }
            self.uncover();
            self.state.first_end = None;
            let start = at.max(self.state.starts_at);
            self.state.anchor = start;
            if start > at + fuzz {
                self.state.schedule(start);
                return Ok(());
            }
            return self.start_due(at, at, fuzz);
        }
        let is_late_shown = is_paused && shown.late_since.is_some();
        let late = self.state.late.take().filter(|_| is_late_shown);
        self.state.open = None;
        if was_managed && self.is_scheduled(at, shown) {
            let first_end = self
                .state
                .first_end
                .filter(|_| old.cycle == shown.terms.cycle);
            self.state.first_end = first_end.filter(|end| *end > shown.starts_at);
            self.state.schedule(shown.starts_at);
            return Ok(());
        }
        let covered = self.unchanged_cover(at, old).map(Cover::end);
        let is_trial = shown.status == Status::OnTrial;
        match (covered, renews_at) {
            (Some(end), _) if end == renews_at => {
                if let Some(cover) = self.state.cover.as_mut() {
                    // A trial outlasts a pause and a cancellation.
                    cover.is_trial = is_trial || cover.is_trial && self.state.mode != Mode::Normal;
                }
            }
            (Some(Some(end)), Some(until)) if end < until => {
                self.cover_until(at, fuzz, end, until, is_trial)?;
            }
            (_, Some(until)) => {
                self.state.cover = None;
                let from = at.max(self.state.starts_at);
                self.cover_until(at, fuzz, from, until, is_trial)?;
            }
            (_, None) => {
                self.state.cover = None;
                self.take(EntryKind::Extension, at);
                let start = at.max(self.state.starts_at);
                self.state.cover_free(start, None, false, at);
            }
        }
        self.state.late = late;
        Ok(())
    }

    /// Covers free time up to the date that the record shows.
    fn cover_until(
        &mut self,
        at: i64,
        fuzz: i64,
        from: i64,
        until: i64,
        is_trial: bool,
    ) -> Result<(), Violation> {
        let anchor = self.state.anchor;
        self.extend(at, fuzz, from, from, Some(until), is_trial)?;
        if is_renewal(anchor, until, self.state.terms.cycle) {
            self.state.anchor = anchor;
        }
        Ok(())
    }

    /// Returns whether nothing is covered before a start in the future.
    fn is_scheduled(&self, at: i64, shown: &Shown) -> bool {
        let is_future = shown.starts_at > at && shown.renews_at == Some(shown.starts_at);
        is_future && self.state.cover_in_force(at).is_none_or(Cover::is_empty)
    }

    /// Enters paused after the end of covered time: nothing is covered, lateness continues.
    fn enter_lapsed(&mut self, at: i64, shown: &Shown, end: i64, old: Terms) {
        let is_late =
            |since: &i64| self.state.late.is_some() && self.is_in_dunning(at, shown, *since, None);
        if let Some(since) = shown.late_since.filter(is_late) {
            if self.state.open.is_some() && self.keep_open(at, shown, since, old) {
                return;
            }
            if self.state.renews_at() == Some(Some(end)) {
                self.lapse();
                return;
            }
            let late = self.state.late.take();
            self.uncover();
            self.state.cover_free(end, Some(end), false, at);
            self.state.late = late;
            return;
        }
        if self.state.renews_at() != Some(Some(end)) || self.state.open.is_some() {
            self.uncover();
            self.state.cover_free(end, Some(end), false, at);
        }
        self.state.late = None;
    }
}
