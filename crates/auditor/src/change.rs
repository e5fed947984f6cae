//! Changes of plan and quantity: what they charge, what they return.

use crate::cover::Cover;
use crate::coverage::{Mode, Stage};
use crate::fraction::Fraction;
use crate::replay::{Replay, fail};
use crate::{Entry, EntryKind, Terms, Violation};

impl Replay<'_> {
    /// Applies a change of plan or quantity.
    pub(crate) fn change_terms(
        &mut self,
        at: i64,
        fuzz: i64,
        terms: Terms,
        trial_days: u16,
    ) -> Result<(), Violation> {
        let old = self.state.terms;
        if old.plan != terms.plan {
            self.state.trial_days = trial_days;
        }
        if self.state.stage == Stage::Running && self.state.open.is_some() {
            return self.change_open(at, fuzz, terms);
        }
        self.state.terms = terms;
        if self.state.stage == Stage::Pending {
            if old.cycle != terms.cycle {
                self.state.first_end = None;
            }
            return self.start_pending_if_funded(at, fuzz);
        }
        if self.state.stage != Stage::Running {
            return Ok(());
        }
        let cover = self.state.cover_in_force(at);
        match cover.filter(|cover| !cover.is_empty()) {
            None => {
                self.reprice_open(old.cycle);
                Ok(())
            }
            Some(cover) if cover.is_trial => {
                if old.plan == terms.plan || trial_days > 0 {
                    self.keep_trial(old);
                    Ok(())
                } else {
                    self.end_trial(at, fuzz)
                }
            }
            Some(_) => self.change_covered(at, fuzz),
        }
    }

    /// Charges the open period on the old terms, then changes what is left of it.
    fn change_open(&mut self, at: i64, fuzz: i64, terms: Terms) -> Result<(), Violation> {
        if let Some(open) = self.state.open.clone() {
            self.post_period(at, open.start, open.end, self.state.fuzz)?;
        }
        self.state.terms = terms;
        if !self.is_cover_over(at) {
            return self.change_covered(at, fuzz);
        }
        if self.state.mode != Mode::Paused {
            return self.begin_funded(at, fuzz);
        }
        self.lapse();
        self.check_funded(at)
    }

    /// Changes the terms within a trial.
    fn keep_trial(&mut self, old: Terms) {
        let terms = self.state.terms;
        if let Some(cover) = &mut self.state.cover {
            cover.first.given = terms.amount();
            cover.first.cycle = terms.cycle;
        }
        self.reprice_open(old.cycle);
    }

    /// Ends a trial that the new plan does not have: a period starts now, or the trial lapses.
    fn end_trial(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let starts_at = self.state.starts_at;
        if starts_at > at + fuzz {
            self.state.anchor = starts_at;
            self.state.first_end = None;
            self.state.schedule(starts_at);
            return Ok(());
        }
        if self.state.mode != Mode::Paused {
            return self.begin_funded(at, fuzz);
        }
        if let Some(cover) = &mut self.state.cover {
            cover.first.end = Some(at);
        }
        self.state.fuzz = fuzz;
        self.lapse();
        Ok(())
    }

    /// Changes covered time outside a trial: in place, or by a new period of another cycle.
    fn change_covered(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let entry = self.take(EntryKind::Change, at);
        if let Some(entry) = entry {
            self.check_terms(entry)?;
        } else {
            let what = "the terms changed in covered time, no entry says so";
            self.refuse_price(at, what)?;
        }
        self.adopt_start(entry);
        // Time before the start counts for nothing.
        let now = at.max(self.state.starts_at);
        let (amount, cycle) = (self.state.amount(), self.state.terms.cycle);
        let Some(cover) = self.state.cover.clone() else {
            return Err(fail(at, "nothing is covered"));
        };
        if cover.in_force(at).all(|stretch| stretch.cycle == cycle) {
            self.check_bounds(&cover, entry, at)?;
            let (mut early, mut late) = (cover.clone(), cover);
            let range = (late.change(amount, now + fuzz), early.change(amount, now));
            self.check_effect(entry, range, at)?;
            self.state.cover = Some(early);
        } else {
            self.check_effect(entry, (cover.value(now + fuzz), cover.value(now)), at)?;
            if now > at + fuzz {
                self.state.anchor = now;
                self.state.first_end = None;
                self.state.schedule(now);
            } else {
                self.begin_funded(at, fuzz)?;
            }
        }
        self.state.late = None;
        self.check_funded(at)
    }

    /// Takes over the start of a period without entry, which is known to a few microseconds.
    fn adopt_start(&mut self, entry: Option<&Entry>) {
        let named = entry.and_then(|entry| entry.period);
        if let (Some((start, _)), Some(cover)) = (named, &self.state.cover) {
            let delta = start.saturating_sub(cover.first.start);
            if (1..=self.state.fuzz).contains(&delta) {
                self.state.shift(delta);
            }
        }
    }

    fn check_funded(&self, at: i64) -> Result<(), Violation> {
        match self.state.credit {
            0.. => Ok(()),
            credit => Err(fail(at, format!("a change leaves a credit of {credit}"))),
        }
    }

    /// Checks that a change in place names the covered time that it changes.
    fn check_bounds(&self, cover: &Cover, entry: Option<&Entry>, at: i64) -> Result<(), Violation> {
        let start = cover.in_force(at).next().map(|stretch| stretch.start);
        let bounds = start.map(|start| (start, cover.end()));
        match entry.and_then(|entry| entry.period) {
            Some(named) if Some(named) != bounds => {
                let what = format!("a change names {named:?}, {bounds:?} is covered");
                self.refuse_price(at, what)
            }
            _ => Ok(()),
        }
    }

    /// Checks what a change adds to credit, rounded down once.
    fn check_effect(
        &self,
        entry: Option<&Entry>,
        effects: (Option<Fraction>, Option<Fraction>),
        at: i64,
    ) -> Result<(), Violation> {
        let (Some(one), Some(other)) = effects else {
            return Err(fail(at, "the amounts of a change overflow"));
        };
        let (one, other) = (one.floor(), other.floor());
        let (least, most) = (one.min(other), one.max(other));
        match entry.map(|entry| entry.amount) {
            Some(amount) if !(least..=most).contains(&i128::from(amount)) => {
                let what = format!("a change adds {amount}, the rules give {least} to {most}");
                self.refuse_price(at, what)
            }
            _ => Ok(()),
        }
    }
}
