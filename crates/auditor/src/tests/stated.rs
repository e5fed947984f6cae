//! Lawful histories with disputes, refunds and dates that a server states.

use super::*;

#[test]
fn won_dispute_ends_its_lateness() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::Dispute { payment: 1 });
    h.money(day(2), EntryKind::Refund, 1, -3_100);
    h.probe(day(9) - 1, Status::PastDue, true, Some(day(31)));
    h.probe(day(9), Status::Unpaid, false, Some(day(31)));
    h.call(day(10), Verb::WinDispute { payment: 1 });
    h.money(day(10), EntryKind::Payment, 1, 3_100);
    h.active(day(11), day(31));
    h.assert_money_and_access();
}

#[test]
fn lost_dispute_leaves_negative_credit_until_expiry() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::Dispute { payment: 1 });
    h.money(day(2), EntryKind::Refund, 1, -3_100);
    h.call(day(3), Verb::LoseDispute { payment: 1 });
    h.probe(day(32) - 1, Status::Unpaid, false, Some(day(31)));
    h.probe(day(32), Status::Expired, false, Some(day(31)));
    h.assert_money_and_access();
}

#[test]
fn waiver_is_deducted_from_a_return() {
    let mut h = Recorder::paid(DOUBLE, 6_200);
    h.call(
        day(1),
        Verb::Refund {
            payment: 1,
            refunded_total: 500,
        },
    );
    h.money(day(1), EntryKind::Refund, 1, -500);
    h.entry(day(1), EntryKind::Waiver, 500, None);
    h.active(day(2), day(31));
    h.change(day(21), BASIC);
    h.entry(day(21), EntryKind::Change, 500, period(0, 31));
    h.active(day(22), day(31));
    h.assert_money_and_access();
}

#[test]
fn extension_ends_lateness_and_sets_the_anchor() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.probe(day(40), Status::Unpaid, false, Some(day(31)));
    h.call(day(41), Verb::Extend { renews_at: day(50) });
    h.entry(day(41), EntryKind::Extension, 0, period(41, 50));
    h.active(day(42), day(50));
    h.pay(day(43), 2, 3_100);
    h.entry(day(50), EntryKind::Period, -3_100, period(50, 78));
    h.active(day(50), day(78));
    h.assert_money_and_access();
}

#[test]
fn stated_start_in_the_past_owes_the_running_period_only() {
    let mut h = Recorder::new(BASIC);
    h.create(Some(Status::Active), Some(day(-40)), None, 0);
    let due = day(-10);
    h.probe(day(0), Status::PastDue, true, Some(due));
    h.probe(day(7) - 1, Status::PastDue, true, Some(due));
    h.probe(day(7), Status::Unpaid, false, Some(due));
    h.pay(day(8), 1, 3_100);
    h.entry(day(8), EntryKind::Period, -3_100, period(-10, 21));
    h.active(day(9), day(21));
    h.assert_lawful();
}

#[test]
fn stated_end_of_the_first_period_is_the_anchor() {
    let mut h = Recorder::new(BASIC);
    h.create(Some(Status::Active), None, Some(day(14)), 0);
    h.pay(day(3), 1, 6_200);
    h.entry(day(3), EntryKind::Period, -3_100, period(0, 14));
    h.active(day(4), day(14));
    h.entry(day(14), EntryKind::Period, -3_100, period(14, 45));
    h.active(day(15), day(45));
    h.assert_money_and_access();
}

#[test]
fn switch_to_managed_covers_a_future_renewal() {
    let mut h = Recorder::new(BASIC);
    h.create(Some(Status::Active), None, None, 0);
    h.call(
        day(3),
        Verb::Pay {
            payment: 1,
            amount: 3_100,
        },
    );
    h.probe(day(4), Status::Active, true, Some(day(31)));
    h.call(
        day(10),
        Verb::EnterManaged {
            renews_at: Some(day(31)),
        },
    );
    h.entry(day(10), EntryKind::Extension, 0, period(10, 31));
    h.active(day(11), day(31));
    h.probe(day(31), Status::PastDue, true, Some(day(31)));
    h.assert_money_and_access();
}

#[test]
fn suspension_only_stops_access() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::Suspend);
    h.suspended = true;
    h.probe(day(3), Status::Active, false, Some(day(31)));
    h.call(day(4), Verb::Unsuspend);
    h.suspended = false;
    h.active(day(5), day(31));
    h.assert_lawful();
}

#[test]
fn month_end_anchor_returns_to_its_day() {
    let mut h = Recorder::new(BASIC);
    h.create(Some(Status::Active), Some(day(30)), None, 0);
    h.pay(day(1), 1, 9_300);
    h.entry(day(30), EntryKind::Period, -3_100, period(30, 58));
    h.entry(day(58), EntryKind::Period, -3_100, period(58, 89));
    h.active(day(59), day(89));
    h.assert_lawful();
}

#[test]
fn refund_that_becomes_smaller_is_money_received() {
    let mut h = Recorder::paid(BASIC, 3_100);
    let refund = |refunded_total| Verb::Refund {
        payment: 1,
        refunded_total,
    };
    h.call(day(1), refund(500));
    h.money(day(1), EntryKind::Refund, 1, -500);
    h.entry(day(1), EntryKind::Waiver, 500, None);
    h.call(day(2), refund(200));
    h.money(day(2), EntryKind::Payment, 1, 300);
    h.active(day(3), day(31));
    h.assert_money_and_access();
}

#[test]
fn extended_trial_stays_a_trial() {
    let mut h = Recorder::new(BASIC);
    h.create(None, None, None, 14);
    h.entry(day(0), EntryKind::Extension, 0, period(0, 14));
    h.probe(day(1), Status::OnTrial, true, Some(day(14)));
    h.call(day(2), Verb::Extend { renews_at: day(20) });
    h.entry(day(2), EntryKind::Extension, 0, period(14, 20));
    h.probe(day(15), Status::OnTrial, true, Some(day(20)));
    h.probe(day(20), Status::PastDue, true, Some(day(20)));
    h.assert_money_and_access();
}
