//! Independent auditor of a managed subscription's ledger.
//!
//! A test drives one subscription with a sequence of calls and records a [`History`]: the accepted
//! calls, the ledger and what a read shows at chosen instants. The auditor knows only the history. It
//! reconstructs anchors, covered time and lateness from the billing rules and decides whether four
//! laws hold.
//!
//! - **Money** ([`History::check_money`]): the credit is the sum of the ledger. The entries of a
//!   payment add up to its amount less what was refunded or is disputed. Waivers, less those taken
//!   back, never exceed what periods took. Credit is negative only because of a dispute.
//! - **Access** ([`History::check_access`]): access exists inside a period that was charged, inside
//!   free time that was granted, on free terms, or within the grace of an open period; nowhere else.
//!   Conversely, covered time of a running subscription gives access. A late subscription lacks the
//!   money for its open period, and its grace starts once.
//! - **Value** ([`History::check_value`]): the price of the time with access never exceeds the money
//!   that was used, in exact fractions. A grace that a change ended counts at the old amount.
//! - **Price** ([`History::check_price`]): a change of plan or quantity charges at most the difference
//!   for the time that is left. Undoing it costs a minor unit per entry, and no change raises credit
//!   and the value of covered time. Leaving and entering managed mode changes nothing.
//!
//! Covered time is a paid period, free time, or both in that order. Each has a *cost*, what it took
//! from credit, and a part that was *given*: free, covered at a switch or waived. A change concerns
//! the part that is left, in exact microseconds.
//!
//! This crate must not depend on the domain crate. It has its own calendar and its own fractions, so
//! that an error in the domain's rules is not repeated here.

#![warn(missing_docs)]

mod access;
mod calendar;
mod change;
mod charge;
mod cover;
mod coverage;
mod due;
mod fraction;
mod history;
mod money;
mod payments;
mod price;
mod replay;
mod start;
mod status;
mod switch;
mod value;
mod verbs;

use std::fmt;

pub use history::{
    Call, Cycle, Dunning, Entry, EntryKind, History, Probe, Shown, Status, Terms, Verb,
};

/// Largest distance in microseconds between a due instant and the entry it causes.
///
/// Timestamps of changes are strictly increasing, so coinciding changes move on by 1 µs each.
pub(crate) const SLACK: i64 = 50;

/// A law, and the calls that it judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Law {
    /// Name of the law in a violation.
    pub name: &'static str,
    /// Kinds of the calls that the law judges, as in [`Verb::KINDS`].
    pub judged: &'static [&'static str],
}

/// The laws. A verb that no law lists is not audited.
pub const LAWS: &[Law] = &[
    Law {
        name: "money",
        judged: &[
            "Pay",
            "PayDisputed",
            "Refund",
            "Dispute",
            "WinDispute",
            "LoseDispute",
            "LeaveManaged",
            "EnterManaged",
        ],
    },
    Law {
        name: "access",
        judged: Verb::KINDS,
    },
    Law {
        name: "value",
        judged: &["Pay", "ChangeTerms"],
    },
    Law {
        name: price::LAW,
        judged: &["ChangeTerms", "LeaveManaged", "EnterManaged"],
    },
];

/// A law that a history breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the law.
    pub law: &'static str,
    /// The instant, in microseconds since the Unix epoch.
    pub at: i64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {} at {} µs: {}", self.law, self.at, self.what)
    }
}

impl std::error::Error for Violation {}

impl History {
    /// Checks that every minor unit of the ledger is accounted for.
    pub fn check_money(&self) -> Result<(), Violation> {
        money::check(self)
    }

    /// Checks that access, lateness and covered time follow the ledger at every probe.
    ///
    /// The ledger must contain everything due up to the last probe. A probe at the instant of a call
    /// may show the state before or after it.
    pub fn check_access(&self) -> Result<(), Violation> {
        replay::check(self)
    }

    /// Checks that the value of the time with access never exceeds the money used.
    ///
    /// Meaningful for histories of user verbs: pay, pause, resume, cancel, undo, plan and quantity.
    /// Time counts between two probes that both have access, unless a call lies between them.
    pub fn check_value(&self) -> Result<(), Violation> {
        value::check(self)
    }

    /// Checks that changes charge and return what the time left is worth, to the minor unit.
    ///
    /// Judges the history up to the first violation of the access law other than a wrong amount.
    pub fn check_price(&self) -> Result<(), Violation> {
        replay::check_prices(self)
    }

    /// Returns every instant of calls, entries, period bounds and dunning deadlines, sorted, unique.
    pub fn instants(&self) -> Vec<i64> {
        replay::instants(self)
    }

    /// Returns whether the history starts in recorded mode: its first switch enters managed mode.
    pub(crate) fn starts_unmanaged(&self) -> bool {
        let switch = self
            .calls
            .iter()
            .find(|call| matches!(call.verb, Verb::LeaveManaged | Verb::EnterManaged { .. }));
        switch.is_some_and(|call| matches!(call.verb, Verb::EnterManaged { .. }))
    }
}

#[cfg(test)]
mod tests;
