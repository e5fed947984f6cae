//! Charges of periods: the entry that must exist, and what an unpaid period leads to.

use crate::coverage::Mode;
use crate::replay::{Replay, fail};
use crate::{Entry, EntryKind, Violation};

impl Replay<'_> {
    /// Charges the period that starts at `start` if credit allows; its entry must exist.
    pub(crate) fn charge(&mut self, at: i64, start: i64, fuzz: i64) -> Result<bool, Violation> {
        let open_end = self.state.open.as_ref().filter(|open| open.start == start);
        let end = open_end.map_or_else(|| self.state.end_from(start), |open| open.end);
        if self.state.credit < self.state.amount() {
            return Ok(false);
        }
        self.post_period(at, start, end, fuzz)?;
        Ok(true)
    }

    /// Covers a period that its entry charges; an amount of 0 has no entry.
    pub(crate) fn post_period(
        &mut self,
        at: i64,
        start: i64,
        end: Option<i64>,
        fuzz: i64,
    ) -> Result<(), Violation> {
        let amount = self.state.amount();
        if amount == 0 {
            self.state.cover_period(start, end);
            self.state.fuzz = fuzz;
            return Ok(());
        }
        let credit = self.state.credit;
        let Some(entry) = self.take(EntryKind::Period, at) else {
            let what = format!("a period from {start} is due, no entry charges it to {credit}");
            return Err(fail(at, what));
        };
        let (first, last) = entry.period.unwrap_or((i64::MIN, None));
        let delta = first.saturating_sub(start);
        if !(0..=fuzz).contains(&delta) {
            let what = format!("a charged period starts at {first}, the rules give {start}");
            return Err(fail(at, what));
        }
        if delta > 0 {
            self.state.shift(delta);
        }
        let end = if delta > 0 {
            self.state.end_from(first)
        } else {
            end
        };
        if last != end {
            let what = format!("a charged period ends at {last:?}, the rules give {end:?}");
            return Err(fail(at, what));
        }
        if entry.amount != -amount {
            let charged = -entry.amount;
            let what = format!("a period is charged {charged}, its amount is {amount}");
            self.refuse_price(at, what)?;
        }
        self.check_terms(entry)?;
        self.state.cover_period(first, last);
        self.state.fuzz = 0;
        Ok(())
    }

    /// Checks that an entry names the plan and the quantity in force.
    pub(crate) fn check_terms(&self, entry: &Entry) -> Result<(), Violation> {
        let terms = self.state.terms;
        if (entry.plan, entry.quantity) == (terms.plan, terms.quantity) {
            return Ok(());
        }
        let (plan, quantity) = (entry.plan, entry.quantity);
        let what = format!("an entry names plan {plan} and quantity {quantity}");
        self.refuse_price(entry.at, what)
    }

    /// Starts a new period with a new anchor: charged, or open and late from that instant.
    pub(crate) fn begin(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        self.state.anchor = at;
        self.state.open = None;
        self.state.late = None;
        if !self.charge(at, at, fuzz)? {
            self.state.open_period(at, at, fuzz, self.history.dunning);
        }
        Ok(())
    }

    /// Starts a new period that credit must pay.
    pub(crate) fn begin_funded(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let (credit, amount) = (self.state.credit, self.state.amount());
        if credit < amount {
            let what = format!("a new period of {amount} starts with a credit of {credit}");
            return Err(fail(at, what));
        }
        self.state.first_end = None;
        self.begin(at, fuzz)
    }

    /// Pays the open period if credit allows; if that period is over, the next starts at `at`.
    pub(crate) fn settle_open(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let Some(start) = self.state.open.as_ref().map(|open| open.start) else {
            return Ok(());
        };
        if !self.charge(at, start, self.state.fuzz)? || !self.is_cover_over(at) {
            return Ok(());
        }
        if self.state.mode == Mode::Paused {
            self.lapse();
            return Ok(());
        }
        self.begin(at, fuzz)
    }

    /// Returns whether covered time has ended.
    pub(crate) fn is_cover_over(&self, at: i64) -> bool {
        let cover = self.state.cover.as_ref();
        !cover.is_some_and(|cover| cover.is_in_force(at))
    }

    /// Marks covered time as over without renewal.
    pub(crate) fn lapse(&mut self) {
        if let Some(cover) = &mut self.state.cover {
            cover.is_lapsed = true;
        }
    }
}
