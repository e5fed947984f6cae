//! Trials and late payments of a subscription: when they began and how they ended.

use jiff::Timestamp;

use super::{RevenueState, RevenueStatus, contribution::RecordedState, sums::Segment};
use crate::Currency;

string_enum! {
    /// What happened to a trial or a late payment.
    pub enum OutcomeKind: "an outcome" {
        /// A trial began.
        TrialStarted = "trial_started",
        /// A trial became an active subscription.
        TrialConverted = "trial_converted",
        /// A trial ended without one.
        TrialLost = "trial_lost",
        /// A payment was late.
        LateStarted = "late_started",
        /// It was paid after all.
        LateRecovered = "late_recovered",
        /// The subscription ended without it.
        LateLost = "late_lost",
    }
}

/// Something that happened to a trial or a late payment.
pub(super) struct Outcome {
    pub at: Timestamp,
    pub started_at: Timestamp,
    pub currency: Currency,
    pub segment: Segment,
    pub kind: OutcomeKind,
    pub annual_value: i128,
}

/// What a status means for an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Begins,
    Succeeds,
    Fails,
    Nothing,
}

/// The rules of a kind of episode.
struct EpisodeRules {
    started: OutcomeKind,
    succeeded: OutcomeKind,
    failed: OutcomeKind,
    meaning: fn(RevenueStatus) -> Meaning,
}

const TRIAL: EpisodeRules = EpisodeRules {
    started: OutcomeKind::TrialStarted,
    succeeded: OutcomeKind::TrialConverted,
    failed: OutcomeKind::TrialLost,
    meaning: |status| match status {
        RevenueStatus::OnTrial => Meaning::Begins,
        RevenueStatus::Active => Meaning::Succeeds,
        RevenueStatus::Unpaid | RevenueStatus::Expired | RevenueStatus::Deleted => Meaning::Fails,
        // A cancelled trial can be resumed, and one that is past due can be paid.
        RevenueStatus::Scheduled
        | RevenueStatus::Pending
        | RevenueStatus::PastDue
        | RevenueStatus::Paused
        | RevenueStatus::Cancelled => Meaning::Nothing,
    },
};

const LATE_PAYMENT: EpisodeRules = EpisodeRules {
    started: OutcomeKind::LateStarted,
    succeeded: OutcomeKind::LateRecovered,
    failed: OutcomeKind::LateLost,
    meaning: |status| match status {
        RevenueStatus::PastDue | RevenueStatus::Unpaid => Meaning::Begins,
        RevenueStatus::Active => Meaning::Succeeds,
        RevenueStatus::Expired | RevenueStatus::Deleted => Meaning::Fails,
        RevenueStatus::Scheduled
        | RevenueStatus::Pending
        | RevenueStatus::OnTrial
        | RevenueStatus::Paused
        | RevenueStatus::Cancelled => Meaning::Nothing,
    },
};

/// Returns what happened to the trials and late payments of a subscription.
pub(super) fn outcomes(history: &[RecordedState]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for rules in [TRIAL, LATE_PAYMENT] {
        let mut open: Option<(Timestamp, RevenueState)> = None;
        for recorded in history {
            let (at, state) = (recorded.at, recorded.state);
            let meaning = (rules.meaning)(state.status);
            let (started_at, start, kind) = match (open, meaning) {
                (None, Meaning::Begins) => {
                    open = Some((at, state));
                    (at, state, rules.started)
                }
                (Some((started_at, start)), Meaning::Succeeds) => {
                    open = None;
                    (started_at, start, rules.succeeded)
                }
                (Some((started_at, start)), Meaning::Fails) => {
                    open = None;
                    (started_at, start, rules.failed)
                }
                _ => continue,
            };
            outcomes.push(Outcome {
                at,
                started_at,
                currency: start.currency,
                segment: (start.plan, start.billing_cycle),
                kind,
                annual_value: start.annual_value,
            });
        }
    }
    outcomes
}
