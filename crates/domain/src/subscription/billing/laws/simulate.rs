//! Random calls for tests that need no auditor.

use jiff::Timestamp;

use super::{
    super::fixtures::Book,
    record::{Recorder, days_from},
    scenario::{Scenario, Verbs, random_call},
};
use crate::{SubscriptionChanges, subscription::random::SplitMix64};

/// Plays random calls for so many years and then applies what is due. With a worker, what is due is
/// also applied between the calls. Returns `None` if the subscription could not be created.
pub(in crate::subscription) fn simulate(
    seed: u64,
    years: i64,
    worker: Option<SplitMix64>,
) -> Option<Book> {
    let scenario = Scenario::random(seed, Verbs::All);
    let mut recorder = Recorder::create(&scenario)?;
    recorder.may_lag = false;
    recorder.worker = worker;
    let rng = &mut SplitMix64(!seed);
    let end = days_from(scenario.creation.at, 365 * years);
    while recorder.now < end {
        let (when, action) = random_call(rng, Verbs::All);
        recorder.play(when, action);
    }
    recorder.book.run(recorder.now);
    Some(recorder.book)
}

/// A subscription after random calls, and a request to change it.
pub(in crate::subscription) struct Request {
    pub(in crate::subscription) book: Book,
    pub(in crate::subscription) changes: SubscriptionChanges,
    pub(in crate::subscription) now: Timestamp,
}

/// Returns a random request. Returns `None` if the subscription could not be created.
pub(in crate::subscription) fn random_request(seed: u64) -> Option<Request> {
    let scenario = Scenario::random(seed, Verbs::All);
    let mut recorder = Recorder::create(&scenario)?;
    recorder.may_lag = false;
    for (when, action) in &scenario.calls {
        recorder.play(*when, *action);
    }
    let rng = &mut SplitMix64(!seed);
    let (before, now) = (recorder.now, recorder.now + scenario.rest / 4);
    recorder.now = rng.pick(&[before, now]);
    let changes = loop {
        let (_, action) = random_call(rng, Verbs::All);
        let changes = recorder.changes(action);
        if changes != SubscriptionChanges::default() {
            break changes;
        }
    };
    Some(Request {
        changes,
        now: recorder.now,
        book: recorder.book,
    })
}
