//! The money law: the ledger accounts for every minor unit.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Call, Entry, EntryKind, History, SLACK, Verb, Violation};

/// A payment as the calls describe it.
#[derive(Default)]
pub(crate) struct PaymentRecord {
    amount: i64,
    refunded: i64,
    is_disputed: bool,
    /// What open and lost disputes took.
    taken: i64,
}

impl PaymentRecord {
    /// Returns what the payment contributes to credit.
    pub(crate) fn value(&self) -> i64 {
        if self.is_disputed {
            0
        } else {
            self.amount - self.refunded
        }
    }
}

/// An entry that a call must have posted.
struct Posting {
    at: i64,
    amount: i64,
    kind: EntryKind,
}

fn fail(at: i64, what: impl Into<String>) -> Violation {
    Violation {
        law: "money",
        at,
        what: what.into(),
    }
}

/// Checks the money law.
pub(crate) fn check(history: &History) -> Result<(), Violation> {
    check_sums(&history.entries)?;
    check_payments(history)?;
    check_negative_credit(history)?;
    check_probes(history)
}

/// Checks running sums, signs and the bound on waivers.
fn check_sums(entries: &[Entry]) -> Result<(), Violation> {
    let (mut credit, mut used, mut waived) = (0_i64, 0_i64, 0_i64);
    let mut last = i64::MIN;
    for (index, entry) in entries.iter().enumerate() {
        if entry.at < last {
            return Err(fail(
                entry.at,
                "an entry is dated before the entry that precedes it",
            ));
        }
        last = entry.at;
        let before = credit;
        credit += entry.amount;
        if entry.credit_after != credit {
            let shown = entry.credit_after;
            return Err(fail(
                entry.at,
                format!("credit_after is {shown}, the sum is {credit}"),
            ));
        }
        let is_sign_right = match entry.kind {
            EntryKind::Payment => entry.amount > 0,
            EntryKind::Waiver => entry.amount > 0 || is_waiver_taken_back(entries, index),
            EntryKind::Refund | EntryKind::Period => entry.amount < 0,
            EntryKind::Change => true,
            EntryKind::Extension => entry.amount == 0,
        };
        if !is_sign_right {
            return Err(fail(
                entry.at,
                format!("{:?} entry of {}", entry.kind, entry.amount),
            ));
        }
        match entry.kind {
            EntryKind::Period | EntryKind::Change => {
                used -= entry.amount;
                if entry.amount < 0 && credit < 0 && !is_change_posting(entries, index) {
                    return Err(fail(
                        entry.at,
                        format!("a charge leaves a credit of {credit}"),
                    ));
                }
            }
            EntryKind::Waiver => {
                waived += entry.amount;
                if entry.amount > 0 && (before >= 0 || credit > 0) {
                    return Err(fail(
                        entry.at,
                        format!("a waiver raises {before} to {credit}"),
                    ));
                }
            }
            EntryKind::Payment | EntryKind::Refund | EntryKind::Extension => {}
        }
        if waived > used || waived < 0 {
            return Err(fail(
                entry.at,
                format!("waivers of {waived} do not fit a use of {used}"),
            ));
        }
    }
    Ok(())
}

/// Returns whether a negative entry takes back waivers of the money received just before.
fn is_waiver_taken_back(entries: &[Entry], index: usize) -> bool {
    let entry = entries.get(index);
    let previous = index.checked_sub(1).and_then(|index| entries.get(index));
    entry.zip(previous).is_some_and(|(entry, previous)| {
        previous.kind == EntryKind::Payment
            && entry.at <= previous.at + SLACK
            && (-previous.amount..0).contains(&entry.amount)
    })
}

/// Returns whether the open period that an entry charges is followed by entries of the change that
/// ended its lateness, and those leave no negative credit.
fn is_change_posting(entries: &[Entry], index: usize) -> bool {
    let rest = entries.get(index..).unwrap_or_default();
    let Some((first, rest)) = rest.split_first() else {
        return false;
    };
    let is_charge = |entry: &&Entry| {
        matches!(entry.kind, EntryKind::Period | EntryKind::Change) && entry.at <= first.at + SLACK
    };
    let last = rest.iter().take_while(is_charge).last();
    first.kind == EntryKind::Period && last.is_some_and(|last| last.credit_after >= 0)
}

/// Updates a payment and returns which one the call concerns.
pub(crate) fn apply(records: &mut BTreeMap<u128, PaymentRecord>, call: &Call) -> Option<u128> {
    let (Verb::Pay { payment, .. }
    | Verb::PayDisputed { payment, .. }
    | Verb::WinDispute { payment }
    | Verb::Refund { payment, .. }
    | Verb::Dispute { payment }
    | Verb::LoseDispute { payment }) = call.verb
    else {
        return None;
    };
    let record = records.entry(payment).or_default();
    match call.verb {
        Verb::Pay { amount, .. } => record.amount = amount,
        Verb::PayDisputed { amount, .. } => {
            record.amount = amount;
            record.is_disputed = true;
        }
        Verb::Refund { refunded_total, .. } => {
            record.refunded = refunded_total.min(record.amount);
            if !record.is_disputed {
                record.taken = record.taken.min(record.refunded);
            }
        }
        Verb::Dispute { .. } => {
            record.taken += record.value();
            record.is_disputed = true;
        }
        Verb::WinDispute { .. } => {
            record.is_disputed = false;
            record.taken = (record.taken - record.value()).max(0);
        }
        Verb::LoseDispute { .. } => {
            record.refunded = record.amount;
            record.is_disputed = false;
        }
        _ => {}
    }
    Some(payment)
}

/// Returns whether a call in recorded mode completes a payment that will have no entries.
///
/// A payment that managed mode recorded as disputed may be posted when it is won, or never.
fn is_unposted(history: &History, call: &Call, payment: u128) -> bool {
    let is_posted = |until: i64| {
        let mut entries = history.entries.iter();
        entries.any(|entry| entry.payment == Some(payment) && entry.at <= until)
    };
    match call.verb {
        Verb::Pay { .. } | Verb::PayDisputed { .. } => true,
        Verb::WinDispute { .. } => !is_posted(call.at + SLACK),
        _ => false,
    }
}

/// Checks that each call on a payment posted its difference once.
fn check_payments(history: &History) -> Result<(), Violation> {
    let mut records = BTreeMap::new();
    let mut postings: BTreeMap<u128, Vec<Posting>> = BTreeMap::new();
    let mut unmanaged = BTreeSet::new();
    let mut is_managed = !history.starts_unmanaged();
    for call in &history.calls {
        is_managed |= matches!(call.verb, Verb::EnterManaged { .. });
        is_managed &= call.verb != Verb::LeaveManaged;
        let before: BTreeMap<u128, i64> = records
            .iter()
            .map(|(id, record): (&u128, &PaymentRecord)| (*id, record.value()))
            .collect();
        let Some(payment) = apply(&mut records, call) else {
            continue;
        };
        let value = records.get(&payment).map_or(0, PaymentRecord::value);
        let amount = value - before.get(&payment).copied().unwrap_or(0);
        let is_completed = amount != 0 || matches!(call.verb, Verb::PayDisputed { .. });
        if !is_managed && is_completed && is_unposted(history, call, payment) {
            unmanaged.insert(payment);
        }
        // A refund that becomes smaller is money received.
        let kind = if amount > 0 {
            EntryKind::Payment
        } else {
            EntryKind::Refund
        };
        if amount != 0 && !unmanaged.contains(&payment) {
            postings.entry(payment).or_default().push(Posting {
                at: call.at,
                amount,
                kind,
            });
        }
    }
    for entry in &history.entries {
        if !matches!(entry.kind, EntryKind::Payment | EntryKind::Refund) {
            continue;
        }
        let Some(payment) = entry.payment else {
            return Err(fail(
                entry.at,
                format!("{:?} entry without a payment", entry.kind),
            ));
        };
        let queue = postings.entry(payment).or_default();
        if queue.is_empty() {
            let (kind, amount) = (entry.kind, entry.amount);
            let what = format!("payment {payment}: no call explains a {kind:?} entry of {amount}");
            return Err(fail(entry.at, what));
        }
        let posting = queue.remove(0);
        let is_dated = (posting.at..=posting.at + SLACK).contains(&entry.at);
        if posting.amount != entry.amount || posting.kind != entry.kind || !is_dated {
            let what = format!(
                "payment {payment}: {:?} entry of {}, the call at {} posts {:?} of {}",
                entry.kind, entry.amount, posting.at, posting.kind, posting.amount
            );
            return Err(fail(entry.at, what));
        }
    }
    for (payment, queue) in &postings {
        if let Some(posting) = queue.first() {
            let what = format!(
                "payment {payment}: an entry of {} is missing",
                posting.amount
            );
            return Err(fail(posting.at, what));
        }
    }
    Ok(())
}

/// Checks that credit is never lower than what open and lost disputes took.
fn check_negative_credit(history: &History) -> Result<(), Violation> {
    let mut records = BTreeMap::new();
    let mut totals = vec![(i64::MIN, 0)];
    for call in &history.calls {
        apply(&mut records, call);
        totals.push((call.at, records.values().map(|record| record.taken).sum()));
    }
    for (index, entry) in history.entries.iter().enumerate() {
        // Of calls in the same instant, the one that posted the entry is unknown: the highest counts.
        let earlier = totals
            .iter()
            .rposition(|(at, _)| *at < entry.at - SLACK)
            .unwrap_or(0);
        let recent = totals
            .iter()
            .skip(earlier)
            .take_while(|(at, _)| *at <= entry.at);
        let disputed = recent.map(|(_, total)| *total).max().unwrap_or(0);
        let next = history.entries.get(index + 1);
        let is_change = is_change_posting(&history.entries, index);
        let is_waived = entry.kind == EntryKind::Refund
            && next
                .is_some_and(|next| next.kind == EntryKind::Waiver && next.at <= entry.at + SLACK);
        if entry.credit_after < -disputed && !is_waived && !is_change {
            let credit = entry.credit_after;
            let what = format!("credit is {credit}, disputes took {disputed}");
            return Err(fail(entry.at, what));
        }
    }
    Ok(())
}

/// Checks the credit of each probe against the ledger at that instant.
///
/// An entry that was moved on by a coinciding change may count from its due instant.
fn check_probes(history: &History) -> Result<(), Violation> {
    for probe in &history.probes {
        let mut credit = 0;
        let mut is_explained = false;
        let calls = history
            .calls
            .iter()
            .filter(|call| call.at == probe.at)
            .count();
        let mut reach = probe.at + i64::try_from(calls).unwrap_or(0);
        for entry in &history.entries {
            if entry.at >= probe.at {
                is_explained |= credit == probe.credit;
            }
            if entry.at > reach {
                break;
            }
            if entry.at == reach && reach < probe.at + SLACK {
                reach += 1;
            }
            credit += entry.amount;
        }
        if !is_explained && credit != probe.credit {
            let shown = probe.credit;
            return Err(fail(
                probe.at,
                format!("credit is {shown}, the sum is {credit}"),
            ));
        }
    }
    Ok(())
}
