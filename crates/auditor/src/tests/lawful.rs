//! Histories of user verbs that every law accepts.

use super::*;

const WEEKLY: Terms = Terms {
    plan: 2,
    quantity: 1,
    price: 700,
    cycle: Cycle::Weekly,
};
const LIFETIME: Terms = Terms {
    plan: 3,
    quantity: 1,
    price: 9_900,
    cycle: Cycle::Lifetime,
};
const FREE: Terms = Terms {
    plan: 4,
    quantity: 1,
    price: 0,
    cycle: Cycle::Monthly,
};

#[test]
fn renewal_grace_and_expiry_follow_the_due_instants() {
    let mut h = Recorder::pending(BASIC);
    h.probe(day(0) + 5, Status::Pending, false, None);
    h.pay(day(0) + 10, 1, 6_200);
    let (start, end) = (day(0) + 10, day(31) + 10);
    h.starts_at = start;
    h.entry(start, EntryKind::Period, -3_100, Some((start, Some(end))));
    h.active(start, end);
    h.active(end - 1, end);
    h.entry(
        end,
        EntryKind::Period,
        -3_100,
        Some((end, Some(day(59) + 10))),
    );
    let due = day(59) + 10;
    h.active(end, due);
    h.active(due - 1, due);
    h.probe(due, Status::PastDue, true, Some(due));
    h.probe(due + 7 * DAY - 1, Status::PastDue, true, Some(due));
    h.probe(due + 7 * DAY, Status::Unpaid, false, Some(due));
    h.probe(due + 30 * DAY - 1, Status::Unpaid, false, Some(due));
    h.probe(due + 30 * DAY, Status::Expired, false, Some(due));
    h.assert_lawful();
}

#[test]
fn pending_subscription_expires_without_payment() {
    let mut h = Recorder::pending(BASIC);
    h.probe(day(30) - 1, Status::Pending, false, None);
    h.probe(day(30), Status::Expired, false, None);
    h.assert_lawful();
}

#[test]
fn late_payment_keeps_the_anchor() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.active(day(10), day(31));
    h.probe(day(35), Status::PastDue, true, Some(day(31)));
    h.pay(day(40), 2, 3_100);
    h.entry(day(40), EntryKind::Period, -3_100, period(31, 59));
    h.active(day(41), day(59));
    h.assert_lawful();
}

#[test]
fn payment_after_the_open_period_starts_the_next_one() {
    let mut h = Recorder::pending(WEEKLY);
    h.pay(day(0), 1, 700);
    h.entry(day(0), EntryKind::Period, -700, period(0, 7));
    h.history.dunning.unpaid_after_days = 10;
    h.probe(day(14) - 1, Status::PastDue, true, Some(day(7)));
    h.probe(day(14), Status::Unpaid, false, Some(day(7)));
    h.pay(day(20), 2, 700);
    h.entry(day(20), EntryKind::Period, -700, period(7, 14));
    h.probe(day(20) + 1, Status::PastDue, true, Some(day(20)));
    h.probe(day(27) - 1, Status::PastDue, true, Some(day(20)));
    h.probe(day(27), Status::Unpaid, false, Some(day(20)));
    h.assert_lawful();
    h.pay(day(30), 3, 1_400);
    h.entry(day(30), EntryKind::Period, -700, period(20, 27));
    h.entry(day(30), EntryKind::Period, -700, period(30, 37));
    h.active(day(31), day(37));
    h.assert_lawful();
}

#[test]
fn resume_after_the_covered_time_charges_a_new_period() {
    let mut h = Recorder::paid(BASIC, 6_200);
    h.set_status(day(20), Status::Paused);
    h.probe(day(20) + 1, Status::Paused, false, Some(day(31)));
    h.probe(day(40), Status::Paused, false, Some(day(31)));
    h.set_status(day(50), Status::Active);
    h.entry(day(50), EntryKind::Period, -3_100, period(50, 78));
    h.probe(day(50) + 1, Status::Active, true, Some(day(78)));
    h.active(day(78) - 1, day(78));
    h.probe(day(78), Status::PastDue, true, Some(day(78)));
    h.assert_lawful();
}

#[test]
fn resume_without_credit_opens_a_period() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(20), Status::Paused);
    h.set_status(day(50), Status::Active);
    h.probe(day(50) + 1, Status::PastDue, true, Some(day(50)));
    h.set_status(day(51), Status::Paused);
    h.set_status(day(60), Status::Active);
    h.probe(day(60) + 1, Status::Unpaid, false, Some(day(50)));
    h.assert_lawful();
}

#[test]
fn cancellation_ends_with_the_credit_and_undo_restores() {
    let mut h = Recorder::paid(BASIC, 6_200);
    h.set_status(day(5), Status::Cancelled);
    h.ends_at = Some(day(59));
    h.probe(day(6), Status::Cancelled, true, Some(day(31)));
    h.set_status(day(7), Status::Active);
    h.ends_at = None;
    h.active(day(8), day(31));
    h.set_status(day(9), Status::Cancelled);
    h.ends_at = Some(day(59));
    h.entry(day(31), EntryKind::Period, -3_100, period(31, 59));
    h.probe(day(59) - 1, Status::Cancelled, true, Some(day(59)));
    h.probe(day(59), Status::Expired, false, Some(day(59)));
    h.assert_lawful();
}

#[test]
fn dearer_change_is_charged_and_cheaper_change_is_returned() {
    let mut h = Recorder::paid(BASIC, 10_000);
    h.change(day(21) + 5, DOUBLE);
    h.entry(day(21) + 5, EntryKind::Change, -1_000, period(0, 31));
    h.active(day(22), day(31));
    h.change(day(26) + 5, BASIC);
    h.entry(day(26) + 5, EntryKind::Change, 499, period(0, 31));
    h.active(day(27), day(31));
    h.assert_lawful();
}

#[test]
fn change_of_cycle_returns_and_starts_a_new_period() {
    let mut h = Recorder::paid(BASIC, 5_000);
    h.change(day(10) + 5, WEEKLY);
    h.entry(day(10) + 5, EntryKind::Change, 2_099, period(0, 31));
    let bounds = Some((day(10) + 5, Some(day(17) + 5)));
    h.entry(day(10) + 5, EntryKind::Period, -700, bounds);
    h.active(day(11), day(17) + 5);
    h.assert_lawful();
}

#[test]
fn late_change_pays_the_used_part_at_the_old_amount() {
    let mut h = Recorder::paid(DOUBLE, 10_000);
    h.active(day(0) + 1, day(31));
    h.active(day(31) - 1, day(31));
    h.probe(day(31), Status::PastDue, true, Some(day(31)));
    h.probe(day(34) - 1, Status::PastDue, true, Some(day(31)));
    h.change_with_trial(day(34), BASIC, 0);
    h.entry(day(34), EntryKind::Period, -6_200, period(31, 59));
    h.terms = BASIC;
    h.entry(day(34), EntryKind::Change, 2_767, period(31, 59));
    h.active(day(35), day(59));
    h.active(day(59) - 1, day(59));
    h.assert_lawful();
}

#[test]
fn trial_is_free_and_its_end_is_the_anchor() {
    let mut h = Recorder::new(BASIC);
    h.create(None, None, None, 14);
    h.entry(day(0), EntryKind::Extension, 0, period(0, 14));
    h.probe(day(13), Status::OnTrial, true, Some(day(14)));
    h.change(day(13) + 1, DOUBLE);
    h.probe(day(13) + 2, Status::OnTrial, true, Some(day(14)));
    h.pay(day(13) + 3, 1, 6_200);
    h.entry(day(14), EntryKind::Period, -6_200, period(14, 45));
    h.active(day(14), day(45));
    h.assert_lawful();
}

#[test]
fn lifetime_is_one_period_without_end() {
    let mut h = Recorder::pending(LIFETIME);
    h.pay(day(0), 1, 9_900);
    h.entry(day(0), EntryKind::Period, -9_900, Some((day(0), None)));
    h.probe(day(1), Status::Active, true, None);
    h.probe(day(3_000), Status::Active, true, None);
    h.assert_lawful();
}

#[test]
fn free_terms_renew_without_entries() {
    let mut h = Recorder::pending(FREE);
    h.active(day(0), day(31));
    h.active(day(31), day(59));
    h.active(day(119), day(120));
    h.assert_lawful();
}

#[test]
fn calls_of_one_instant_move_on_by_microseconds() {
    let mut h = Recorder::pending(BASIC);
    h.pay(day(0), 1, 3_100);
    for entry in &mut h.history.entries {
        entry.at += 1;
    }
    let (start, end) = (day(0) + 1, day(31) + 1);
    h.starts_at = start;
    h.entry(start, EntryKind::Period, -3_100, Some((start, Some(end))));
    h.active(day(1), end);
    h.assert_lawful();
}

#[test]
fn instants_contain_calls_bounds_and_deadlines() {
    let h = Recorder::paid(BASIC, 3_100);
    let instants = h.history.instants();
    for expected in [day(0), day(31), day(38), day(59), day(61)] {
        assert!(instants.contains(&expected), "{expected}");
    }
    assert!(instants.is_sorted_by(|a, b| a < b));
}
