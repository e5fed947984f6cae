//! Lawful histories with disputes, refunds and dates that a server states.

use super::*;

const FREE: Terms = Terms {
    plan: 4,
    price: 0,
    ..BASIC
};

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
fn waived_money_is_returned_by_no_change() {
    let mut h = Recorder::paid(DOUBLE, 6_200);
    h.refund(day(1), 1, 500);
    h.money(day(1), EntryKind::Refund, 1, -500);
    h.entry(day(1), EntryKind::Waiver, 500, None);
    h.active(day(2), day(31));
    h.change(day(21), BASIC);
    h.entry(day(21), EntryKind::Change, 1_000, period(0, 31));
    // On day 1, 517 of the amount were worth 500.
    h.change(day(21) + 60, FREE);
    let returned = 2_583 * (10 * DAY - 60) / (31 * DAY);
    h.entry(day(21) + 60, EntryKind::Change, returned, period(0, 31));
    h.active(day(23), day(31));
    h.assert_money_and_access();
}

#[test]
fn free_time_ends_lateness_and_sets_the_anchor() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.probe(day(40), Status::Unpaid, false, Some(day(31)));
    h.call(day(41), Verb::FreeUntil { until: day(50) });
    h.entry(day(41), EntryKind::Extension, 0, period(41, 50));
    h.active(day(42), day(50));
    h.pay(day(43), 2, 3_100);
    h.entry(day(50), EntryKind::Period, -3_100, period(50, 78));
    h.active(day(50), day(78));
    h.assert_money_and_access();
}

#[test]
fn free_time_reopens_an_ended_subscription() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(5), Status::Expired);
    h.probe(day(6), Status::Expired, false, Some(day(31)));
    h.call(day(7), Verb::FreeUntil { until: day(50) });
    h.entry(day(7), EntryKind::Extension, 0, period(7, 50));
    h.active(day(8), day(50));
    h.assert_money_and_access();
}

#[test]
fn change_within_a_period_and_free_time_is_posted_once() {
    let mut h = Recorder::paid(BASIC, 20_000);
    h.call(day(1), Verb::FreeUntil { until: day(93) });
    h.entry(day(1), EntryKind::Extension, 0, period(31, 93));
    h.active(day(2), day(93));
    h.change(day(10), DOUBLE);
    // 21 of 31 days of the period, 62 days of free time at 28 days a cycle.
    let charged = (3_100 * 21 * 28 + 3_100 * 62 * 31 + 867) / 868;
    h.entry(day(10), EntryKind::Change, -charged, period(0, 93));
    h.active(day(11), day(93));
    h.change(day(40), BASIC);
    let returned = 3_100 * 53 / 28;
    h.entry(day(40), EntryKind::Change, returned, period(31, 93));
    h.active(day(41), day(93));
    h.assert_money_and_access();
}

#[test]
fn prolonged_free_time_spreads_what_was_paid_in_it() {
    let mut h = Recorder::new(BASIC);
    h.create(None, None, None, 14);
    h.entry(day(0), EntryKind::Extension, 0, period(0, 14));
    h.pay(day(1), 1, 9_000);
    h.entry(day(14), EntryKind::Period, -3_100, period(14, 45));
    h.call(day(15), Verb::FreeUntil { until: day(59) });
    h.entry(day(15), EntryKind::Extension, 0, period(45, 59));
    h.change(day(50), DOUBLE);
    // The cycle from February 15 has 28 days.
    let charged = (3_100 * 9 + 27) / 28;
    h.entry(day(50), EntryKind::Change, -charged, period(45, 59));
    h.call(day(51), Verb::FreeUntil { until: day(75) });
    h.entry(day(51), EntryKind::Extension, 0, period(59, 75));
    h.active(day(52), day(75));
    h.change(day(53), BASIC);
    let spread = 3_100 * 8 / 24;
    h.entry(day(53), EntryKind::Change, spread * 22 / 28, period(45, 75));
    h.active(day(54), day(75));
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
    h.refund(day(1), 1, 500);
    h.money(day(1), EntryKind::Refund, 1, -500);
    h.entry(day(1), EntryKind::Waiver, 500, None);
    h.refund(day(2), 1, 200);
    h.money(day(2), EntryKind::Payment, 1, 300);
    h.entry(day(2), EntryKind::Waiver, -300, None);
    h.refund(day(3), 1, 0);
    h.money(day(3), EntryKind::Payment, 1, 200);
    h.entry(day(3), EntryKind::Waiver, -200, None);
    h.active(day(4), day(31));
    h.change(day(10), FREE);
    h.entry(day(10), EntryKind::Change, 2_100, period(0, 31));
    h.active(day(11), day(31));
    h.assert_money_and_access();
}

#[test]
fn won_dispute_takes_back_the_waiver_of_its_debt() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(1), Verb::Dispute { payment: 1 });
    h.money(day(1), EntryKind::Refund, 1, -3_100);
    h.call(day(2), Verb::FreeUntil { until: day(40) });
    h.entry(day(2), EntryKind::Waiver, 3_100, None);
    h.entry(day(2), EntryKind::Extension, 0, period(31, 40));
    h.active(day(3), day(40));
    h.call(day(4), Verb::WinDispute { payment: 1 });
    h.money(day(4), EntryKind::Payment, 1, 3_100);
    h.entry(day(4), EntryKind::Waiver, -3_100, None);
    h.active(day(5), day(40));
    h.change(day(10), FREE);
    h.entry(day(10), EntryKind::Change, 2_100, period(0, 40));
    h.active(day(11), day(40));
    h.assert_money_and_access();
}

#[test]
fn lost_dispute_settles_the_waiver_of_its_debt() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(1), Verb::Dispute { payment: 1 });
    h.money(day(1), EntryKind::Refund, 1, -3_100);
    h.call(day(2), Verb::FreeUntil { until: day(40) });
    h.entry(day(2), EntryKind::Waiver, 3_100, None);
    h.entry(day(2), EntryKind::Extension, 0, period(31, 40));
    h.call(day(4), Verb::LoseDispute { payment: 1 });
    h.pay(day(5), 2, 100);
    h.call(day(6), Verb::Dispute { payment: 2 });
    h.money(day(6), EntryKind::Refund, 2, -100);
    h.call(day(7), Verb::WinDispute { payment: 2 });
    h.money(day(7), EntryKind::Payment, 2, 100);
    h.active(day(8), day(40));
    h.assert_money_and_access();
}

#[test]
fn payment_recorded_as_disputed_is_posted_when_it_is_won() {
    for is_won in [true, false] {
        let mut h = Recorder::pending(BASIC);
        let (payment, amount) = (1, 3_100);
        h.call(day(1), Verb::PayDisputed { payment, amount });
        h.probe(day(2), Status::Pending, false, None);
        if is_won {
            h.call(day(3), Verb::WinDispute { payment });
            h.money(day(3), EntryKind::Payment, 1, 3_100);
            h.starts_at = day(3);
            h.entry(day(3), EntryKind::Period, -3_100, period(3, 34));
            h.active(day(4), day(34));
        } else {
            h.call(day(3), Verb::LoseDispute { payment });
            h.probe(day(4), Status::Pending, false, None);
        }
        h.assert_money_and_access();
    }
}

#[test]
fn extended_trial_stays_a_trial() {
    let mut h = Recorder::new(BASIC);
    h.create(None, None, None, 14);
    h.entry(day(0), EntryKind::Extension, 0, period(0, 14));
    h.probe(day(1), Status::OnTrial, true, Some(day(14)));
    h.call(day(2), Verb::FreeUntil { until: day(20) });
    h.entry(day(2), EntryKind::Extension, 0, period(14, 20));
    h.probe(day(15), Status::OnTrial, true, Some(day(20)));
    h.probe(day(20), Status::PastDue, true, Some(day(20)));
    h.assert_money_and_access();
}
