//! The value law: the price of the time with access never exceeds the money used.
//!
//! Reads only payments, changes, probes and the bounds of entries, not the reconstruction of covered
//! time.

use std::cmp::Ordering;

use crate::calendar::add_cycles;
use crate::fraction::Fraction;
use crate::{Cycle, EntryKind, History, Probe, SLACK, Status, Verb, Violation};

fn fail(at: i64, what: impl Into<String>) -> Violation {
    Violation {
        law: "value",
        at,
        what: what.into(),
    }
}

/// Checks the value law at every probe.
pub(crate) fn check(history: &History) -> Result<(), Violation> {
    let mut value = Fraction::ZERO;
    let mut graces = Vec::new();
    for (from, to) in history.probes.iter().zip(history.probes.iter().skip(1)) {
        let mut parts = Vec::new();
        if is_used(history, from, to) && [from, to].map(is_grace) == [true, true] {
            graces.extend(grace_between(history, from, to.at));
        } else if is_counted(history, from, to) {
            parts.push(value_between(history, from, to.at));
        }
        // A grace counts from the change that ended it.
        let ended = graces.extract_if(.., |(ended_at, _): &mut (i64, _)| *ended_at < to.at);
        parts.extend(ended.map(|(_, part)| part));
        for part in parts {
            let sum = part.and_then(|part| value.checked_add(part));
            value = sum.ok_or_else(|| fail(to.at, "the value overflows"))?;
        }
        let used = paid_until(history, to.at) - i128::from(to.credit);
        if value.cmp_integer(used) == Ordering::Greater {
            let least = value.ceil();
            return Err(fail(
                to.at,
                format!("access is worth up to {least}, {used} was used"),
            ));
        }
    }
    Ok(())
}

fn is_grace(probe: &Probe) -> bool {
    probe.status == Status::PastDue
}

/// Returns whether the time between two probes had access outside trial, grace and lifetime.
fn is_counted(history: &History, from: &Probe, to: &Probe) -> bool {
    let is_free = |probe: &Probe| probe.status == Status::OnTrial || is_grace(probe);
    is_used(history, from, to) && !is_free(from) && !is_free(to)
}

/// Returns whether the time between two probes had access to recurring terms.
///
/// Stretches of a few microseconds do not count: changes of one instant move on by 1 µs each.
fn is_used(history: &History, from: &Probe, to: &Probe) -> bool {
    let is_interrupted = history
        .calls
        .iter()
        .any(|call| from.at < call.at && call.at < to.at);
    from.access
        && to.access
        && from.terms == to.terms
        && from.terms.cycle != Cycle::Lifetime
        && to.at - from.at > SLACK
        && !is_interrupted
}

/// Returns the end and the value of a grace that a change ended; the open period is charged then.
fn grace_between(history: &History, from: &Probe, to: i64) -> Option<(i64, Option<Fraction>)> {
    let is_change = |at: i64| {
        history.calls.iter().any(|call| {
            matches!(call.verb, Verb::ChangeTerms { .. })
                && (call.at..=call.at + SLACK).contains(&at)
        })
    };
    history.entries.iter().find_map(|entry| {
        let (start, end) = entry.period.filter(|_| entry.kind == EntryKind::Period)?;
        let end = end.filter(|end| start <= from.at + SLACK && to <= *end)?;
        let is_ended = to <= entry.at + SLACK && is_change(entry.at);
        let product = i128::from(from.terms.amount()) * i128::from(to - from.at);
        let length = i128::from(end - start);
        is_ended.then(|| (entry.at, Fraction::new(product, length)))
    })
}

/// Returns the sum of all payments up to an instant.
fn paid_until(history: &History, at: i64) -> i128 {
    let mut sum = 0;
    for call in history.calls.iter().filter(|call| call.at <= at) {
        if let Verb::Pay { amount, .. } = call.verb {
            sum += i128::from(amount);
        }
    }
    sum
}

/// Returns the value of the time from a probe to an instant; `None` on overflow.
fn value_between(history: &History, from: &Probe, to: i64) -> Option<Fraction> {
    let mut cuts = vec![from.at, to];
    for entry in &history.entries {
        let bounds = entry
            .period
            .iter()
            .flat_map(|(start, end)| [Some(*start), *end]);
        let inside = |at: &i64| from.at < *at && *at < to;
        cuts.extend(bounds.flatten().chain([entry.at]).filter(inside));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut value = Fraction::ZERO;
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        if let Some(length) = period_length(history, from, *start) {
            let product = i128::from(from.terms.amount()) * i128::from(end - start);
            value = value.checked_add(Fraction::new(product, i128::from(length))?)?;
        }
    }
    Some(value)
}

/// Returns the length of the period that runs at an instant; `None` for free time and lifetimes.
///
/// Time that no entry covers counts as if a period started there.
fn period_length(history: &History, probe: &Probe, at: i64) -> Option<i64> {
    let running = history.entries.iter().rev().find_map(|entry| {
        let (start, end) = entry.period.filter(|_| entry.at <= at + SLACK)?;
        let is_running = start <= at + SLACK && end.is_none_or(|end| at < end);
        is_running.then_some((entry.kind, start, end))
    });
    match running {
        Some((EntryKind::Extension, _, _)) => None,
        Some((_, start, end)) => end.map(|end| end - start),
        None => add_cycles(at, probe.terms.cycle, 1).map(|end| end - at),
    }
}
