//! The four laws of the ledger, checked by an independent auditor over random sequences of calls.
//!
//! `PERENNIAL_LAWS` sets the number of sequences.

use perennial_auditor::{History, Violation};

mod payments;
mod record;
mod scenario;
mod simulate;
mod translate;

pub(in crate::subscription) use simulate::{random_request, simulate};

use record::record;
use scenario::{Scenario, Verbs};

use crate::subscription::random::cases;

const SEQUENCES: u64 = 2_000;

type Law = fn(&History) -> Result<(), Violation>;

/// Returns the first law that the sequence breaks.
fn broken(scenario: &Scenario, laws: &[Law]) -> Option<Violation> {
    let history = record(scenario)?;
    laws.iter().find_map(|law| law(&history).err())
}

/// Removes calls as long as a law is still broken.
fn shorten(mut scenario: Scenario, laws: &[Law]) -> Scenario {
    let mut index = scenario.calls.len();
    while index > 0 {
        index -= 1;
        let mut shorter = scenario.clone();
        shorter.calls.remove(index);
        if broken(&shorter, laws).is_some() {
            scenario = shorter;
            index = scenario.calls.len();
        }
    }
    scenario
}

/// Describes a broken law with the shortest sequence that breaks one.
fn report(seed: u64, violation: &Violation, minimal: &Scenario, laws: &[Law]) -> String {
    let mut text = format!("seed {seed}: {violation}\n{:?}\n", minimal.dunning);
    text += &format!("{:?}\n", minimal.creation);
    for call in &minimal.calls {
        text += &format!("{call:?}\n");
    }
    let history = record(minimal).unwrap();
    for call in &history.calls {
        text += &format!("{call:?}\n");
    }
    for entry in &history.entries {
        text += &format!("{entry:?}\n");
    }
    text += &format!("shortened: {}", broken(minimal, laws).unwrap());
    with_readable_times(&text)
}

/// Replaces microseconds since the Unix epoch by timestamps.
fn with_readable_times(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut readable = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_digit) {
        let digits = rest.len() - start - rest[start..].trim_start_matches(is_digit).len();
        let number = &rest[start..start + digits];
        readable += &rest[..start];
        readable += &match number.parse().map(jiff::Timestamp::from_microsecond) {
            Ok(Ok(at)) if digits == 16 => at.to_string(),
            _ => number.to_owned(),
        };
        rest = &rest[start + digits..];
    }
    readable + rest
}

fn check(verbs: Verbs, laws: &[Law]) {
    let count = cases("PERENNIAL_LAWS", SEQUENCES);
    let (mut created, mut calls, mut entries, mut probes) = (0, 0, 0, 0);
    for seed in 0..count {
        let scenario = Scenario::random(seed, verbs);
        let Some(history) = record(&scenario) else {
            continue;
        };
        if let Some(violation) = laws.iter().find_map(|law| law(&history).err()) {
            panic!(
                "{}",
                report(seed, &violation, &shorten(scenario, laws), laws)
            );
        }
        created += 1;
        calls += history.calls.len();
        entries += history.entries.len();
        probes += history.probes.len();
    }
    println!("{created} sequences: {calls} calls, {entries} entries, {probes} probes");
    assert!(
        created * 4 > count * 3,
        "most requests are valid: {created}"
    );
}

#[test]
fn money_and_access_follow_the_ledger() {
    let laws: [Law; 3] = [
        History::check_money,
        History::check_access,
        History::check_price,
    ];
    check(Verbs::All, &laws);
}

#[test]
fn changes_never_cost_more_than_the_difference() {
    let laws: [Law; 3] = [
        History::check_money,
        History::check_access,
        History::check_price,
    ];
    check(Verbs::Changes, &laws);
}

#[test]
fn users_never_get_more_than_they_pay_for() {
    let laws: [Law; 4] = [
        History::check_money,
        History::check_access,
        History::check_price,
        History::check_value,
    ];
    check(Verbs::User, &laws);
}
