//! Small alterations of lawful histories; a law must refuse each.

use super::*;

#[track_caller]
fn assert_one_refused(mutant: &History, what: &str) {
    let is_refused = mutant.check_money().is_err() || mutant.check_access().is_err();
    assert!(is_refused, "a mutant is lawful: {what}");
}

/// Adds an amount to the credit from an entry on.
fn add_credit(history: &mut History, index: usize, at: i64, amount: i64) {
    for entry in history.entries.iter_mut().skip(index) {
        entry.credit_after += amount;
    }
    for probe in history.probes.iter_mut().filter(|probe| probe.at >= at) {
        probe.credit += amount;
    }
}

/// Checks that the history is refused with any entry altered or removed, and any probe altered.
#[track_caller]
pub(super) fn assert_refused(history: &History) {
    for (index, entry) in history.entries.iter().enumerate() {
        for amount in [-1, 1] {
            let mut mutant = history.clone();
            mutant.entries[index].amount += amount;
            add_credit(&mut mutant, index, entry.at, amount);
            assert_one_refused(&mutant, &format!("{entry:?} plus {amount}"));
        }
        let mut mutant = history.clone();
        mutant.entries.remove(index);
        add_credit(&mut mutant, index, entry.at, -entry.amount);
        assert_one_refused(&mutant, &format!("{entry:?} removed"));

        let mut mutant = history.clone();
        mutant.entries.insert(index, *entry);
        add_credit(&mut mutant, index + 1, entry.at, entry.amount);
        assert_one_refused(&mutant, &format!("{entry:?} repeated"));

        if let Some((start, Some(end))) = entry.period.filter(|_| entry.kind != EntryKind::Change) {
            for period in [(start, end + DAY), (start, end - DAY), (start + DAY, end)] {
                let mut mutant = history.clone();
                mutant.entries[index].period = Some((period.0, Some(period.1)));
                assert_one_refused(&mutant, &format!("{entry:?} for {period:?}"));
            }
        }
    }
    for (index, probe) in history.probes.iter().enumerate() {
        let switches = history.calls.iter().filter(|call| call.at <= probe.at);
        let is_managed = switches.fold(!history.starts_unmanaged(), |is_managed, call| {
            (is_managed || matches!(call.verb, Verb::EnterManaged { .. }))
                && call.verb != Verb::LeaveManaged
        });
        if !is_managed {
            continue;
        }
        if probe.status != Status::PastDue {
            let mut mutant = history.clone();
            mutant.probes[index].access = !probe.access;
            assert_one_refused(&mutant, &format!("{probe:?} with other access"));
        }
        if !matches!(probe.status, Status::Pending | Status::Expired) {
            for renews_at in [
                probe.renews_at.map_or(Some(day(9)), |_| None),
                Some(day(99)),
            ] {
                let mut mutant = history.clone();
                mutant.probes[index].renews_at = renews_at;
                assert_one_refused(&mutant, &format!("{probe:?} renewing at {renews_at:?}"));
            }
        }
        let mut mutant = history.clone();
        mutant.probes[index].terms.quantity += 1;
        assert_one_refused(&mutant, &format!("{probe:?} with other terms"));
    }
}
