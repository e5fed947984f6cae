//! Covered time and lateness of a subscription, reconstructed from calls and entries.

use std::collections::BTreeMap;

use crate::calendar::{is_renewal, period_end};
use crate::cover::{Cover, Late, Open, Stretch, grace_end};
use crate::fraction::Fraction;
use crate::{Cycle, Dunning, Terms};

/// Where a subscription is between creation and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not created, or recorded mode.
    Unmanaged,
    Pending,
    Running,
    Ended,
}

/// The part of the status that calls decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Normal,
    Paused,
    Cancelled,
}

/// A subscription as the auditor derives it.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) stage: Stage,
    pub(crate) mode: Mode,
    pub(crate) terms: Terms,
    pub(crate) trial_days: u16,
    /// The stage at the last switch to recorded mode; `None` if there was none.
    pub(crate) left: Option<Stage>,
    /// Whether the terms changed since, or may have changed there and back.
    pub(crate) is_repriced: bool,
    pub(crate) is_suspended: bool,
    pub(crate) created_at: i64,
    pub(crate) starts_at: i64,
    pub(crate) ends_at: Option<i64>,
    /// Whether `ends_at` follows from the calls; otherwise the next probe states it.
    pub(crate) is_end_known: bool,
    pub(crate) cover: Option<Cover>,
    pub(crate) open: Option<Open>,
    pub(crate) late: Option<Late>,
    pub(crate) anchor: i64,
    /// End of the first period when the creation stated one.
    pub(crate) first_end: Option<i64>,
    pub(crate) credit: i64,
    /// Waivers of each payment's refunds that were not taken back.
    pub(crate) waivers: BTreeMap<u128, i64>,
    /// What the dispute of each payment took.
    pub(crate) taken: BTreeMap<u128, i64>,
    /// Debt that free time waived, less what won and lost disputes settled.
    pub(crate) waived_debt: i64,
    /// Microseconds by which the running or open period may start later.
    pub(crate) fuzz: i64,
    /// Timestamp of the last change.
    pub(crate) last_change: i64,
}

impl State {
    /// Returns the state before creation.
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Unmanaged,
            mode: Mode::Normal,
            terms: Terms {
                plan: 0,
                quantity: 0,
                price: 0,
                cycle: Cycle::Lifetime,
            },
            trial_days: 0,
            left: None,
            is_repriced: false,
            is_suspended: false,
            created_at: 0,
            starts_at: 0,
            ends_at: None,
            is_end_known: true,
            cover: None,
            open: None,
            late: None,
            anchor: 0,
            first_end: None,
            credit: 0,
            waivers: BTreeMap::new(),
            taken: BTreeMap::new(),
            waived_debt: 0,
            fuzz: 0,
            last_change: i64::MIN,
        }
    }

    /// Returns the amount of a period on the present terms.
    pub(crate) fn amount(&self) -> i64 {
        self.terms.amount()
    }

    /// Returns the covered stretch if it contains `at`.
    pub(crate) fn cover_at(&self, at: i64) -> Option<&Cover> {
        self.cover.as_ref().filter(|cover| cover.contains(at))
    }

    /// Returns the covered stretch that ends after `at`, also if it has not started.
    pub(crate) fn cover_in_force(&self, at: i64) -> Option<&Cover> {
        self.cover.as_ref().filter(|cover| cover.is_in_force(at))
    }

    /// Returns the end of covered time; the outer `None` if nothing is or was covered.
    #[expect(clippy::option_option, reason = "a lifetime is covered without an end")]
    pub(crate) fn renews_at(&self) -> Option<Option<i64>> {
        match (&self.open, &self.cover) {
            (Some(open), _) => Some(Some(open.start)),
            (None, Some(cover)) if !cover.is_empty() => Some(cover.end()),
            _ => None,
        }
    }

    /// Returns the end of a period that starts at `start`.
    pub(crate) fn end_from(&self, start: i64) -> Option<i64> {
        match self.first_end {
            Some(end) if end > start => Some(end),
            _ => period_end(self.anchor, start, self.terms.cycle),
        }
    }

    /// Returns credit and the value of covered time at an instant; `None` on overflow.
    pub(crate) fn value(&self, at: i64) -> Option<Fraction> {
        let cover = self.cover.as_ref().filter(|_| self.stage != Stage::Ended);
        let value = cover.map_or(Some(Fraction::ZERO), |cover| cover.value(at));
        value?.checked_add(Fraction::from(self.credit))
    }

    fn stretch(&self, start: i64, end: Option<i64>, is_free: bool) -> Stretch {
        let amount = self.amount();
        Stretch {
            start,
            end,
            cycle: self.terms.cycle,
            cost: if is_free { 0 } else { amount },
            given: if is_free { amount } else { 0 },
            waived: 0,
            is_free,
        }
    }

    /// Covers a period that was charged on the present terms.
    pub(crate) fn cover_period(&mut self, start: i64, end: Option<i64>) {
        if let Some(first_end) = self.first_end.take().filter(|first| Some(*first) == end) {
            self.anchor = first_end;
        }
        self.cover = Some(Cover::new(self.stretch(start, end, false), false));
        self.open = None;
        self.late = None;
        self.stage = Stage::Running;
    }

    /// Covers free time and makes its end the anchor. What was paid in free time that is prolonged at
    /// `at` is spread.
    pub(crate) fn cover_free(&mut self, start: i64, end: Option<i64>, is_trial: bool, at: i64) {
        let free = self.stretch(start, end, true);
        self.cover = match self.cover.take() {
            Some(mut cover)
                if cover.end() == Some(start) && !cover.is_lapsed && !cover.is_empty() =>
            {
                cover.add_free(free, at);
                cover.is_trial = is_trial;
                Some(cover)
            }
            _ => Some(Cover::new(free, is_trial)),
        };
        if let Some(end) = end {
            self.anchor = end;
        }
        self.first_end = None;
        self.open = None;
        self.late = None;
        self.fuzz = 0;
        self.stage = Stage::Running;
    }

    /// Opens the period that starts at `start`; lateness that exists goes on.
    pub(crate) fn open_period(&mut self, start: i64, since: i64, fuzz: i64, dunning: Dunning) {
        let end = self.end_from(start);
        self.stage = Stage::Running;
        self.cover = None;
        self.open = Some(Open { start, end });
        self.fuzz = fuzz;
        if self.late.is_none() {
            self.late = Some(Late {
                since,
                grace_until: grace_end(since, end, dunning),
                is_unpaid: false,
                is_dispute: false,
                fuzz,
            });
        }
    }

    /// Marks a start in the future; nothing is covered before it.
    pub(crate) fn schedule(&mut self, start: i64) {
        let marker = self.stretch(start, Some(start), true);
        self.cover = Some(Cover::new(marker, false));
        self.open = None;
        self.late = None;
        self.stage = Stage::Running;
    }

    /// Moves the anchor to the end of covered time if that is no renewal date of a new cycle.
    pub(crate) fn align_anchor(&mut self) {
        let renewal = match (&self.open, &self.cover) {
            (Some(open), _) => Some(open.start),
            (None, Some(cover)) => cover.end(),
            (None, None) => None,
        };
        if let Some(renewal) = renewal {
            self.first_end = None;
            if !is_renewal(self.anchor, renewal, self.terms.cycle) {
                self.anchor = renewal;
            }
        }
    }

    /// Notes a waiver of the covered time; a negative amount takes one back.
    pub(crate) fn waive(&mut self, amount: i64, at: i64) {
        if let Some(cover) = self.cover.as_mut().filter(|cover| cover.is_in_force(at)) {
            cover.waive(amount, at, self.starts_at);
        }
    }

    /// Moves a start that is known to a few microseconds only.
    pub(crate) fn shift(&mut self, by: i64) {
        self.anchor += by;
        if let Some(open) = &mut self.open {
            open.start += by;
            if open.end != self.first_end {
                open.end = open.end.map(|end| end + by);
            }
        }
        if let Some(cover) = &mut self.cover {
            for stretch in [Some(&mut cover.first), cover.free.as_mut()]
                .into_iter()
                .flatten()
            {
                stretch.start += by;
                stretch.end = stretch.end.map(|end| end + by);
            }
        }
        if let Some(late) = self.late.as_mut().filter(|late| !late.is_dispute) {
            late.since += by;
            late.grace_until += by;
            late.fuzz = 0;
        }
        self.fuzz = 0;
    }

    /// Ends the subscription.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Ended;
        self.late = None;
        self.open = None;
    }
}
