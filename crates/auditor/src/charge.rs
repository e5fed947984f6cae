//! Charges of periods: the entry that must exist, and what an unpaid period leads to.

use crate::coverage::Mode;
use crate::replay::{Replay, fail};
use crate::{Entry, EntryKind, Violation};

impl Replay<'_> {
    /// Charges the period that starts at `start` if credit allows; its entry must exist.
    pub(crate) fn charge(&mut self, at: i64, start: i64, fuzz: i64) -> Result<bool, Violation> {
        let amount = self.state.amount();
        let open_end = self.state.open.as_ref().filter(|open| open.start == start);
        let end = open_end.map_or_else(|| self.state.end_from(start), |open| open.end);
        if self.state.credit < amount {
            return Ok(false);
        }
        if amount == 0 {
            self.state.cover_period(start, end);
            self.state.fuzz = fuzz;
            return Ok(true);
        }
        let credit = self.state.credit;
        let Some(entry) = self.take(EntryKind::Period, at) else {
            let what = format!("credit {credit} pays a period from {start}, no entry charges it");
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
            let what = format!(
                "a period is charged {}, its amount is {amount}",
                -entry.amount
            );
            return Err(fail(at, what));
        }
        self.check_terms(entry)?;
        self.state.cover_period(first, last);
        self.state.fuzz = 0;
        Ok(true)
    }

    /// Checks that an entry names the plan and the quantity in force.
    pub(crate) fn check_terms(&self, entry: &Entry) -> Result<(), Violation> {
        let terms = self.state.terms;
        if (entry.plan, entry.quantity) == (terms.plan, terms.quantity) {
            return Ok(());
        }
        let (plan, quantity) = (entry.plan, entry.quantity);
        Err(fail(
            entry.at,
            format!("an entry names plan {plan} and quantity {quantity}"),
        ))
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

    /// Pays the open period if credit allows; if that period is over, the next starts at `at`.
    pub(crate) fn settle_open(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let Some(start) = self.state.open.as_ref().map(|open| open.start) else {
            return Ok(());
        };
        if !self.charge(at, start, self.state.fuzz)? {
            return Ok(());
        }
        let end = self.state.cover.as_ref().and_then(|cover| cover.end);
        if end.is_none_or(|end| end > at) {
            return Ok(());
        }
        if self.state.mode == Mode::Paused {
            if let Some(cover) = &mut self.state.cover {
                cover.is_lapsed = true;
            }
            return Ok(());
        }
        self.begin(at, fuzz)
    }
}
