//! Changes of plan and quantity: what they charge, what they return.

use crate::calendar::DAY;
use crate::cover::Cover;
use crate::coverage::Stage;
use crate::fraction::Fraction;
use crate::replay::{Replay, fail};
use crate::{Cycle, Entry, EntryKind, Terms, Violation};

/// Returns the most days that one cycle has.
fn longest_days(cycle: Cycle) -> i64 {
    match cycle {
        Cycle::Daily => 1,
        Cycle::Weekly => 7,
        Cycle::Monthly => 31,
        Cycle::Quarterly => 92,
        Cycle::Semiannual => 184,
        Cycle::Yearly => 366,
        Cycle::Lifetime => i64::MAX,
    }
}

/// Returns `amount * part / total`; 0 without a positive total.
fn share(amount: i64, part: i64, total: i64) -> Fraction {
    let product = i128::from(amount) * i128::from(part.max(0));
    Fraction::new(product, i128::from(total)).unwrap_or(Fraction::ZERO)
}

fn days_floor(length: i64) -> i64 {
    length.div_euclid(DAY)
}

fn days_ceil(length: i64) -> i64 {
    -(-length).div_euclid(DAY)
}

impl Cover {
    /// Returns what a more expensive change at `at` charges; `None` if only a bound is known.
    fn exact_charge(&self, difference: i64, at: i64) -> Option<i128> {
        let end = self.end?;
        let days = days_floor(end - self.start);
        if self.is_extended || days == 0 {
            return None;
        }
        Some(share(difference, days_ceil(end - at), days).ceil())
    }

    /// Returns the least and the most that a more expensive change may charge in a stretch with free
    /// time: its share of the stretch, and the difference for one cycle.
    fn charge_range(&self, difference: i64, at: i64) -> (i128, i128) {
        self.end.map_or((0, 0), |end| {
            let least = share(difference, end - at, end - self.start).ceil();
            let days = days_floor(end - at).max(1);
            (least, share(difference, days_ceil(end - at), days).ceil())
        })
    }

    /// Returns what a value is worth at `at`, rounded down, before waivers are deducted.
    ///
    /// Whole days count. Of a stretch with free time this is an upper bound: the part charged as a
    /// period counts up to its end, what changes added counts up to the end of the stretch.
    fn worth(&self, value: i64, at: i64) -> i128 {
        let Some(charged_until) = self.charged_until else {
            return 0;
        };
        if !self.is_extended {
            let days = days_ceil(charged_until - self.start);
            return share(value, days_floor(charged_until - at), days).floor();
        }
        let Some(end) = self.end else { return 0 };
        let charged = value.min(self.cost - self.added_cost);
        let charged = share(charged, charged_until - at, charged_until - self.start).ceil();
        let from = if at < charged_until {
            self.start
        } else {
            charged_until
        };
        charged + share(value.min(self.added_cost), end - at, end - from).ceil()
    }

    /// Returns the smallest and the largest return of a value at `at`, waivers deducted.
    fn return_range(&self, value: i64, at: i64) -> (i128, i128) {
        let (full, waived) = (self.worth(value, at), i128::from(self.waived));
        let most = (full - waived + i128::from(self.deducted)).max(0);
        let least = if self.is_extended {
            0
        } else {
            (full - waived).max(0)
        };
        (least, most)
    }

    /// Changes the terms in place. Waivers that the return deducts are not deducted again.
    fn change_amount(&mut self, amount: i64, at: i64) {
        let difference = amount - self.amount;
        if difference > 0 {
            self.cost += difference;
            if self.is_extended {
                self.added_cost += difference;
            }
        } else {
            let worth = self.worth((self.cost - amount).max(0), at).max(0);
            let worth = i64::try_from(worth).unwrap_or(i64::MAX);
            self.deducted = self.deducted.saturating_add(worth).min(self.waived);
            self.cost = self.cost.min(amount);
            self.added_cost = self.added_cost.min(self.cost);
        }
        self.amount = amount;
    }
}

impl Replay<'_> {
    /// Applies a change of plan or quantity.
    pub(crate) fn change_terms(
        &mut self,
        at: i64,
        fuzz: i64,
        terms: Terms,
    ) -> Result<(), Violation> {
        let old = self.state.terms;
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
        if self.state.open.is_some() {
            return self.change_open(at, fuzz, old);
        }
        let cover = self.state.cover_in_force(at);
        let cover = cover.filter(|cover| !cover.is_trial && !cover.is_empty());
        let Some(cover) = cover.cloned() else {
            self.reprice_open(old.cycle);
            return Ok(());
        };
        let Some(entry) = self.take(EntryKind::Change, at) else {
            return Err(fail(
                at,
                "the terms changed in covered time, no entry says so",
            ));
        };
        self.check_terms(entry)?;
        // Time before the start counts for nothing.
        let rest = at.max(self.state.starts_at);
        if self.is_in_place(&cover, rest, fuzz) {
            self.change_in_place(&cover, entry, rest, fuzz)?;
        } else if rest > at + fuzz {
            check_return(&cover, entry, cover.cost, rest, fuzz)?;
            self.state.anchor = rest;
            self.state.schedule(rest);
        } else {
            check_return(&cover, entry, cover.cost, at, fuzz)?;
            self.state.late = None;
            if self.state.amount() > self.state.credit {
                return Err(fail(at, "a new period starts without the credit to pay it"));
            }
            self.state.first_end = None;
            self.begin(at, fuzz)?;
        }
        if self.state.credit < 0 {
            return Err(fail(at, "a change leaves negative credit"));
        }
        self.state.late = None;
        Ok(())
    }

    /// Charges the open period on the new terms, which credit must pay.
    fn change_open(&mut self, at: i64, fuzz: i64, old: Terms) -> Result<(), Violation> {
        self.reprice_open(old.cycle);
        let (credit, amount) = (self.state.credit, self.state.amount());
        if credit < amount {
            let what = format!("a late change needs {amount}, credit is {credit}");
            return Err(fail(at, what));
        }
        self.settle_open(at, fuzz)
    }

    /// Returns whether the running period stays: same cycle, at most one cycle left.
    fn is_in_place(&self, cover: &Cover, at: i64, fuzz: i64) -> bool {
        let cycle = self.state.terms.cycle;
        cycle == cover.cycle
            && cover
                .end
                .is_none_or(|end| days_ceil(end - at - fuzz) <= longest_days(cycle))
    }

    /// Checks a change that keeps the running period.
    fn change_in_place(
        &mut self,
        cover: &Cover,
        entry: &Entry,
        at: i64,
        fuzz: i64,
    ) -> Result<(), Violation> {
        let amount = self.state.amount();
        let bounds = (cover.start, cover.end);
        if !cover.is_extended && entry.period.is_some_and(|period| period != bounds) {
            let what = format!(
                "a change names {:?}, the period is {bounds:?}",
                entry.period
            );
            return Err(fail(at, what));
        }
        let difference = amount - cover.amount;
        if difference > 0 {
            check_charge(cover, entry, difference, at, fuzz)?;
        } else {
            check_return(cover, entry, cover.cost - amount, at, fuzz)?;
        }
        if let Some(running) = &mut self.state.cover {
            running.change_amount(amount, at);
        }
        Ok(())
    }
}

/// Checks what a change returns to credit.
fn check_return(
    cover: &Cover,
    entry: &Entry,
    value: i64,
    at: i64,
    fuzz: i64,
) -> Result<(), Violation> {
    let value = value.max(0);
    let is_right = |now: i64| {
        let (least, most) = cover.return_range(value, now);
        (least..=most).contains(&i128::from(entry.amount))
    };
    if is_right(at) || is_right(at + fuzz) {
        return Ok(());
    }
    let (least, most) = cover.return_range(value, at);
    let what = format!(
        "a change returns {}, the rules give {least} to {most}",
        entry.amount
    );
    Err(fail(at, what))
}

/// Checks what a more expensive change charges.
fn check_charge(
    cover: &Cover,
    entry: &Entry,
    difference: i64,
    at: i64,
    fuzz: i64,
) -> Result<(), Violation> {
    let charged = -i128::from(entry.amount);
    let is_right = if cover.end.is_none() {
        charged == i128::from(difference)
    } else {
        let early = cover.exact_charge(difference, at);
        let late = cover.exact_charge(difference, at + fuzz);
        if early.is_some() {
            [early, late].contains(&Some(charged))
        } else {
            let (least, _) = cover.charge_range(difference, at + fuzz);
            let (_, most) = cover.charge_range(difference, at);
            (least..=most).contains(&charged)
        }
    };
    if is_right {
        return Ok(());
    }
    let exact = cover.exact_charge(difference, at);
    let what = format!("a change of {difference} charges {charged}, the rules give {exact:?}");
    Err(fail(at, what))
}
