//! Stretches of covered time, open periods and lateness.

use crate::calendar::{DAY, add_cycles};
use crate::fraction::Fraction;
use crate::{Cycle, Dunning};

/// A paid period, or free time: a trial, `free_until` or time covered at a switch.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    pub(crate) start: i64,
    /// `None` for a lifetime.
    pub(crate) end: Option<i64>,
    pub(crate) cycle: Cycle,
    /// What the stretch took from credit, at the value of a whole cycle.
    pub(crate) cost: i64,
    /// The rest of the amount: given free, covered at a switch or waived.
    pub(crate) given: i64,
    /// The part of `given` that waivers moved from `cost`.
    pub(crate) waived: i64,
    pub(crate) is_free: bool,
}

impl Stretch {
    /// Returns the amount that the stretch was bought for, granted for or changed to.
    pub(crate) fn amount(&self) -> i64 {
        self.cost + self.given
    }

    /// Returns whether the stretch ends after an instant.
    pub(crate) fn is_in_force(&self, at: i64) -> bool {
        self.end.is_none_or(|end| at < end)
    }

    /// Returns the microseconds from an instant to an end.
    fn rest(&self, end: i64, at: i64) -> i64 {
        (end - at.max(self.start)).max(0)
    }

    /// Returns `amount × left`: a period counts its own length, free time one cycle from its start.
    /// `None` for a lifetime.
    pub(crate) fn share(&self, amount: i64, at: i64) -> Option<Fraction> {
        let product = i128::from(amount) * i128::from(self.rest(self.end?, at));
        Fraction::new(product, i128::from(self.whole()?))
    }

    /// Returns the microseconds that the amount is for; `None` for a lifetime.
    fn whole(&self) -> Option<i64> {
        let end = self.end?;
        let end = if self.is_free {
            add_cycles(self.start, self.cycle, 1)?
        } else {
            end
        };
        Some(end - self.start)
    }

    /// Moves a waived amount from the cost to the given part, so that the stretch is worth that much less; a
    /// negative amount moves it back. Returns what the stretch does not bear.
    fn waive(&mut self, amount: i64, at: i64) -> Option<i64> {
        let Some(end) = self.end else {
            return Some(amount);
        };
        let most = if amount > 0 { self.cost } else { -self.waived };
        let worth = self.share(most, at)?;
        let worth = i64::try_from(if amount > 0 {
            worth.ceil()
        } else {
            worth.floor()
        })
        .ok()?;
        let is_all = amount.abs() >= worth.abs();
        let product = i128::from(amount) * i128::from(self.whole()?);
        let moved = Fraction::new(product, i128::from(self.rest(end, at)))?.ceil();
        let moved = if is_all {
            most
        } else {
            i64::try_from(moved).ok()?
        };
        self.cost -= moved;
        self.given += moved;
        self.waived += moved;
        Some(if is_all { amount - worth } else { 0 })
    }

    /// Changes the amount in place and returns what that adds to credit.
    ///
    /// In a lifetime a dearer change charges the whole difference, a cheaper one returns nothing.
    fn change(&mut self, amount: i64, at: i64) -> Fraction {
        let difference = amount - self.amount();
        let returned = self.cost.min(-difference);
        let effect = self.share(returned, at);
        self.cost -= returned;
        self.given = amount - self.cost;
        self.waived = self.waived.min(self.given);
        effect.unwrap_or_else(|| Fraction::from(returned.min(0)))
    }

    /// Moves the end of free time; what was paid in it is spread over the longer rest.
    fn prolong(&mut self, until: Option<i64>, at: i64, amount: i64) {
        if let (Some(end), Some(until)) = (self.end, until) {
            let product = i128::from(self.cost) * i128::from(self.rest(end, at));
            let spread = Fraction::new(product, i128::from(self.rest(until, at)));
            let spread = spread.map_or(0, Fraction::floor);
            self.cost = i64::try_from(spread).unwrap_or(self.cost);
        }
        self.given = amount - self.cost;
        self.end = until;
    }
}

/// Covered time: a stretch, and free time that follows a paid one.
#[derive(Debug, Clone)]
pub(crate) struct Cover {
    pub(crate) first: Stretch,
    /// Starts where a paid `first` ends.
    pub(crate) free: Option<Stretch>,
    pub(crate) is_trial: bool,
    /// Whether the end has passed without renewal, which happens while paused.
    pub(crate) is_lapsed: bool,
}

impl Cover {
    pub(crate) fn new(first: Stretch, is_trial: bool) -> Self {
        Self {
            first,
            free: None,
            is_trial,
            is_lapsed: false,
        }
    }

    pub(crate) fn end(&self) -> Option<i64> {
        self.free.as_ref().unwrap_or(&self.first).end
    }

    /// Returns the stretches that end after an instant.
    pub(crate) fn in_force(&self, at: i64) -> impl Iterator<Item = &Stretch> {
        let stretches = [Some(&self.first), self.free.as_ref()];
        stretches
            .into_iter()
            .flatten()
            .filter(move |stretch| stretch.is_in_force(at))
    }

    pub(crate) fn in_force_mut(&mut self, at: i64) -> impl Iterator<Item = &mut Stretch> {
        let stretches = [Some(&mut self.first), self.free.as_mut()];
        stretches
            .into_iter()
            .flatten()
            .filter(move |stretch| stretch.is_in_force(at))
    }

    /// Returns whether the covered time contains an instant.
    pub(crate) fn contains(&self, at: i64) -> bool {
        self.first.start <= at && self.is_in_force(at)
    }

    /// Returns whether the covered time ends after an instant.
    pub(crate) fn is_in_force(&self, at: i64) -> bool {
        !self.is_lapsed && self.end().is_none_or(|end| at < end)
    }

    /// Returns whether the covered time only marks a future start.
    pub(crate) fn is_empty(&self) -> bool {
        self.end() == Some(self.first.start)
    }

    /// Returns `cost × left` of all stretches; `None` on overflow.
    pub(crate) fn value(&self, at: i64) -> Option<Fraction> {
        self.in_force(at).try_fold(Fraction::ZERO, |sum, stretch| {
            let share = stretch.share(stretch.cost, at);
            sum.checked_add(share.unwrap_or(Fraction::ZERO))
        })
    }

    /// Notes a waiver as far as the stretches could return it; a negative amount takes one back.
    pub(crate) fn waive(&mut self, mut amount: i64, at: i64, starts_at: i64) {
        for stretch in self.in_force_mut(at) {
            amount = stretch.waive(amount, at.max(starts_at)).unwrap_or(0);
        }
    }

    /// Changes the amount of the stretches in force and returns what that adds to credit; `None` on
    /// overflow.
    pub(crate) fn change(&mut self, amount: i64, at: i64) -> Option<Fraction> {
        self.in_force_mut(at)
            .try_fold(Fraction::ZERO, |sum, stretch| {
                sum.checked_add(stretch.change(amount, at))
            })
    }

    /// Adds free time to the end; free time that exists is prolonged.
    pub(crate) fn add_free(&mut self, free: Stretch, at: i64) {
        let amount = free.amount();
        if self.is_trial {
            self.first.cycle = free.cycle;
        }
        if self.first.is_free {
            self.first.prolong(free.end, at, amount);
        } else if let Some(existing) = &mut self.free {
            existing.prolong(free.end, at, amount);
        } else {
            self.free = Some(free);
        }
    }
}

/// A period that is due and not paid.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
}

/// Lateness, which starts once and ends by payment, won dispute, free time, change or expiry.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    pub(crate) since: i64,
    pub(crate) grace_until: i64,
    /// Whether the grace has ended.
    pub(crate) is_unpaid: bool,
    /// Whether a dispute caused it.
    pub(crate) is_dispute: bool,
    /// Microseconds by which `since` may be later: changes of one instant move on by 1 µs each.
    pub(crate) fuzz: i64,
}

/// Returns the end of the grace: never past the end of the open period.
pub(crate) fn grace_end(since: i64, period_end: Option<i64>, dunning: Dunning) -> i64 {
    let grace = since + dunning.unpaid_after_days * DAY;
    period_end.map_or(grace, |end| grace.min(end))
}
