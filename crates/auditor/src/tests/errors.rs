//! Histories of known errors; each must break a law.

use super::*;

const FREE: Terms = Terms {
    plan: 4,
    price: 0,
    ..BASIC
};

#[test]
fn free_resume_is_refused() {
    // With credit: no entry charges the period that starts.
    let mut h = Recorder::paid(BASIC, 6_200);
    h.set_status(day(20), Status::Paused);
    h.set_status(day(50), Status::Active);
    h.active(day(51), day(81));
    h.assert_access_broken("no entry charges it");

    // Without credit: covered time moves although nothing was paid.
    let mut h = Recorder::paid(BASIC, 3_100);
    h.active(day(0) + 1, day(31));
    h.active(day(20) - 1, day(31));
    h.set_status(day(20), Status::Paused);
    h.set_status(day(50), Status::Active);
    h.active(day(50) + 1, day(81));
    h.active(day(80), day(81));
    h.assert_access_broken("status is Active");
    h.assert_value_broken();
}

#[test]
fn undo_that_moves_renews_at_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(5), Status::Cancelled);
    h.ends_at = Some(day(31));
    h.probe(day(6), Status::Cancelled, true, Some(day(31)));
    h.set_status(day(7), Status::Active);
    h.ends_at = None;
    h.active(day(8), day(38));
    h.assert_access_broken("renews_at is");
}

#[test]
fn sent_end_that_covers_time_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    let ends_at = Some(day(3_650));
    h.call(
        day(5),
        Verb::SetStatus {
            status: Status::Cancelled,
            ends_at,
        },
    );
    h.ends_at = ends_at;
    h.probe(day(6), Status::Cancelled, true, Some(day(31)));
    h.probe(day(31) - 1, Status::Cancelled, true, Some(day(31)));
    h.history.check_access().unwrap();
    h.probe(day(32), Status::Cancelled, true, Some(day(31)));
    h.probe(day(60), Status::Cancelled, true, Some(day(31)));
    h.assert_access_broken("status is Cancelled");
    h.assert_value_broken();
}

#[test]
fn change_without_a_charge_is_refused() {
    for entry in [Some(0), Some(-999), None] {
        let mut h = Recorder::paid(BASIC, 10_000);
        h.active(day(0) + 1, day(31));
        h.active(day(1), day(31));
        h.change(day(21) + 5, DOUBLE);
        if let Some(amount) = entry {
            h.entry(day(21) + 5, EntryKind::Change, amount, period(0, 31));
        }
        h.active(day(22), day(31));
        h.assert_access_broken(if entry.is_some() {
            "a change adds"
        } else {
            "no entry says so"
        });
    }
}

#[test]
fn uncharged_quantity_breaks_the_value_law() {
    let mut h = Recorder::paid(BASIC, 3_100);
    let terms = Terms {
        quantity: 10,
        ..BASIC
    };
    h.change(day(1), terms);
    h.active(day(1) + 1, day(31));
    h.active(day(10), day(31));
    h.assert_value_broken();
}

#[test]
fn return_rounded_up_is_refused() {
    let mut h = Recorder::paid(DOUBLE, 6_200);
    let terms = Terms {
        price: 3_099,
        plan: 9,
        ..DOUBLE
    };
    h.change(day(21), terms);
    // 2 * 10 / 31 rounds down to 0.
    h.entry(day(21), EntryKind::Change, 1, period(0, 31));
    h.active(day(22), day(31));
    h.assert_access_broken("a change adds 1, the rules give 0 to 0");
}

#[test]
fn return_of_a_waived_amount_is_refused() {
    let mut h = Recorder::paid(DOUBLE, 6_200);
    h.refund(day(1), 1, 500);
    h.money(day(1), EntryKind::Refund, 1, -500);
    h.entry(day(1), EntryKind::Waiver, 500, None);
    h.change(day(21), FREE);
    h.entry(day(21), EntryKind::Change, 2_000, period(0, 31));
    h.active(day(22), day(31));
    h.assert_access_broken("a change adds 2000, the rules give 1833 to 1833");
    h.assert_price_broken("a change raises the value");
}

#[test]
fn waiver_that_is_kept_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.refund(day(1), 1, 500);
    h.money(day(1), EntryKind::Refund, 1, -500);
    h.entry(day(1), EntryKind::Waiver, 500, None);
    h.refund(day(2), 1, 100);
    h.money(day(2), EntryKind::Payment, 1, 400);
    h.active(day(3), day(31));
    h.assert_access_broken("a waiver of 400 is not taken back");

    let mut h = Recorder::paid(BASIC, 3_100);
    h.entry(day(1), EntryKind::Waiver, -10, None);
    h.assert_money_broken("Waiver entry of -10");
}

#[test]
fn return_of_free_time_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(1), Verb::FreeUntil { until: day(59) });
    h.entry(day(1), EntryKind::Extension, 0, period(31, 59));
    h.change(day(31), FREE);
    h.entry(day(31), EntryKind::Change, 3_100, period(31, 59));
    h.active(day(32), day(59));
    h.assert_access_broken("a change adds 3100, the rules give 0 to 0");
    h.assert_price_broken("a change raises the value");
}

#[test]
fn pause_that_stops_lateness_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.probe(day(33), Status::PastDue, true, Some(day(31)));
    h.set_status(day(34), Status::Paused);
    h.probe(day(61) - 1, Status::Paused, false, Some(day(31)));
    h.history.check_access().unwrap();
    h.probe(day(61), Status::Paused, false, Some(day(31)));
    h.assert_access_broken("status is Paused");

    // A second grace starts after the pause.
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(34), Status::Paused);
    h.set_status(day(45), Status::Active);
    h.probe(day(46), Status::PastDue, true, Some(day(31)));
    h.assert_access_broken("status is PastDue");
}

#[test]
fn grace_past_the_open_period_is_refused() {
    let terms = Terms {
        cycle: Cycle::Daily,
        price: 100,
        ..BASIC
    };
    let mut h = Recorder::pending(terms);
    h.pay(day(0), 1, 100);
    h.entry(day(0), EntryKind::Period, -100, period(0, 1));
    h.probe(day(2) - 1, Status::PastDue, true, Some(day(1)));
    h.history.check_access().unwrap();
    h.probe(day(2), Status::PastDue, true, Some(day(1)));
    h.assert_access_broken("status is PastDue");
}

#[test]
fn won_dispute_that_is_posted_twice_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::Dispute { payment: 1 });
    h.money(day(2), EntryKind::Refund, 1, -3_100);
    h.call(day(10), Verb::WinDispute { payment: 1 });
    h.money(day(10), EntryKind::Payment, 1, 3_100);
    h.money(day(10), EntryKind::Payment, 1, 3_100);
    h.active(day(11), day(31));
    h.assert_money_broken("no call explains");
    h.assert_access_broken("no rule explains");
}

#[test]
fn call_without_the_due_transitions_is_refused() {
    // The renewal of day 31 was due before the pause of day 32.
    let mut h = Recorder::paid(BASIC, 6_200);
    h.set_status(day(32), Status::Paused);
    h.probe(day(33), Status::Paused, false, Some(day(31)));
    h.assert_access_broken("no entry charges it");

    // The lateness since day 31 is forgotten; resume starts a period of its own.
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(32), Status::Paused);
    h.set_status(day(40), Status::Active);
    h.probe(day(40) + 1, Status::PastDue, true, Some(day(40)));
    h.assert_access_broken("status is PastDue");

    // The renewal is dated by the call instead of its due instant.
    let mut h = Recorder::paid(BASIC, 6_200);
    h.set_status(day(32), Status::Paused);
    h.entry(day(32), EntryKind::Period, -3_100, period(31, 59));
    h.assert_access_broken("no entry charges it");
}

#[test]
fn grace_of_a_cancelled_subscription_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(5), Status::Cancelled);
    h.ends_at = Some(day(31));
    h.probe(day(32), Status::PastDue, true, Some(day(31)));
    h.assert_access_broken("status is PastDue");

    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(32), Status::Cancelled);
    h.probe(day(33), Status::Cancelled, true, Some(day(31)));
    h.assert_access_broken("status is Cancelled");
}

#[test]
fn late_payment_that_moves_the_anchor_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.pay(day(40), 2, 3_100);
    h.entry(day(40), EntryKind::Period, -3_100, period(40, 68));
    h.active(day(41), day(68));
    h.assert_access_broken("a charged period starts at");

    let mut h = Recorder::paid(BASIC, 3_100);
    h.pay(day(40), 2, 3_100);
    h.entry(day(40), EntryKind::Period, -3_100, period(31, 68));
    h.assert_access_broken("a charged period ends at");
}

#[test]
fn month_end_drift_is_refused() {
    let mut h = Recorder::new(BASIC);
    h.create(Some(Status::Active), Some(day(30)), None, 0);
    h.pay(day(1), 1, 9_300);
    h.entry(day(30), EntryKind::Period, -3_100, period(30, 58));
    h.entry(day(58), EntryKind::Period, -3_100, period(58, 86));
    h.assert_access_broken("a charged period ends at");
}

#[test]
fn missing_access_in_covered_time_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.probe(day(3), Status::Active, false, Some(day(31)));
    h.assert_access_broken("no access inside covered time");
}

#[test]
fn reopening_without_payment_is_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(5), Status::Expired);
    h.set_status(day(6), Status::Active);
    h.probe(day(7), Status::PastDue, true, Some(day(6)));
    h.assert_access_broken("reopened without payment");
}

#[test]
fn broken_sums_and_unexplained_debt_are_refused() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.history.entries.last_mut().unwrap().credit_after = 1;
    h.assert_money_broken("credit_after is 1");

    let mut h = Recorder::paid(BASIC, 3_100);
    h.refund(day(1), 1, 100);
    h.money(day(1), EntryKind::Refund, 1, -100);
    h.assert_money_broken("disputes took 0");

    let mut h = Recorder::pending(BASIC);
    h.pay(day(0), 1, 3_000);
    h.entry(day(0), EntryKind::Period, -3_100, period(0, 31));
    h.assert_money_broken("a charge leaves");

    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(
        day(1),
        Verb::Pay {
            payment: 2,
            amount: 5,
        },
    );
    h.assert_money_broken("is missing");

    let mut h = Recorder::paid(BASIC, 3_100);
    h.active(day(1), day(31));
    h.history.probes.last_mut().unwrap().credit = 7;
    h.assert_money_broken("credit is 7");
}

#[test]
fn credit_from_a_waived_upgrade_is_refused() {
    // An upgrade charges a part of its amount only, and a waiver is what was charged.
    let mut h = Recorder::paid(BASIC, 4_100);
    h.change(day(21), DOUBLE);
    h.entry(day(21), EntryKind::Change, -1_000, period(0, 31));
    h.refund(day(21) + 9, 1, 4_100);
    h.money(day(21) + 9, EntryKind::Refund, 1, -4_100);
    h.entry(day(21) + 9, EntryKind::Waiver, 4_100, None);
    h.change(day(21) + 10, BASIC);
    h.entry(day(21) + 10, EntryKind::Change, 677, period(0, 31));
    h.active(day(22), day(31));
    h.assert_access_broken("a change adds 677, the rules give 0 to 0");
    h.assert_money_broken("waivers of 4100 do not fit a use of 3423");
}
