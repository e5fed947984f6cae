//! The price law on histories of earlier rules and of rounding rules.

use super::*;

const DEAR: Terms = Terms {
    plan: 1,
    quantity: 1,
    price: 10_000,
    cycle: Cycle::Monthly,
};
const CHEAP: Terms = Terms {
    plan: 2,
    price: 1_000,
    ..DEAR
};
const CENT: Terms = Terms {
    plan: 3,
    price: 100,
    ..DEAR
};

/// Records a subscription of 10.00 whose first period ends after 1.4 days, and a change to 100.00.
fn short_period(charged: i64) -> Recorder {
    let mut h = Recorder::new(CHEAP);
    let end = day(1) + 2 * DAY / 5;
    h.create(Some(Status::Active), None, Some(end), 0);
    h.pay(day(0), 1, 30_000);
    h.entry(day(0), EntryKind::Period, -1_000, Some((day(0), Some(end))));
    h.change(day(0), DEAR);
    h.entry(
        day(0),
        EntryKind::Change,
        -charged,
        Some((day(0), Some(end))),
    );
    h.active(day(1), end);
    h
}

#[test]
fn upgrade_by_started_days_of_a_short_period_is_refused() {
    short_period(9_000).assert_money_and_access();
    // Two started days of a period of one whole day.
    short_period(18_000).assert_price_broken("a change charges 18000");
    short_period(9_001).assert_price_broken("a change charges 9001");
    short_period(8_999).assert_price_broken("a change raises the value");
}

#[test]
fn switch_that_replaces_a_paid_period_is_refused() {
    let mut h = Recorder::paid(DEAR, 10_000);
    h.active(day(5), day(31));
    h.call(day(10), Verb::LeaveManaged);
    let shown = Shown {
        status: Status::Active,
        terms: DEAR,
        starts_at: day(0),
        renews_at: Some(day(31)),
        ends_at: None,
        late_since: None,
    };
    h.call(day(11), Verb::EnterManaged { shown });
    let mut kept = Recorder::new(DEAR);
    kept.history = h.history.clone();
    kept.active(day(12), day(31));
    kept.change(day(21), CHEAP);
    kept.entry(day(21), EntryKind::Change, 2_903, period(0, 31));
    kept.active(day(22), day(31));
    kept.assert_money_and_access();

    h.entry(day(11), EntryKind::Extension, 0, period(11, 31));
    h.active(day(12), day(31));
    h.change(day(21), CHEAP);
    h.entry(day(21), EntryKind::Change, 0, period(11, 31));
    h.active(day(22), day(31));
    h.assert_price_broken("a switch there and back posts an entry");
    h.assert_access_broken("no rule explains a Extension");
}

#[test]
fn late_change_at_the_new_amount_is_refused() {
    let mut h = Recorder::paid(DEAR, 10_000);
    h.active(day(0) + 1, day(31));
    h.active(day(31) - 1, day(31));
    h.probe(day(31), Status::PastDue, true, Some(day(31)));
    h.probe(day(37) - 1, Status::PastDue, true, Some(day(31)));
    h.pay(day(37), 2, 100);
    h.change(day(37), CENT);
    h.entry(day(37), EntryKind::Period, -100, period(31, 59));
    h.active(day(38), day(59));
    h.assert_price_broken("a change charges 100");
    h.assert_value_broken();
    h.history.check_access().unwrap_err();
}

#[test]
fn grace_that_a_change_ended_counts_when_it_ended() {
    let mut h = Recorder::paid(DEAR, 10_000);
    h.probe(day(31), Status::PastDue, true, Some(day(31)));
    h.probe(day(37) - 1, Status::PastDue, true, Some(day(31)));
    h.history.check_value().unwrap();
    h.pay(day(37), 2, 2_300);
    h.change_with_trial(day(37), CENT, 0);
    h.entry(day(37), EntryKind::Period, -10_000, period(31, 59));
    h.terms = CENT;
    // 22 of 28 days.
    h.entry(day(37), EntryKind::Change, 7_778, period(31, 59));
    h.active(day(38), day(59));
    h.assert_lawful();
}

#[test]
fn time_rounded_to_hours_is_refused() {
    let hour = DAY / 24;
    let noon = day(10) + DAY / 2 + hour / 3;
    for (down, up) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut h = Recorder::paid(CHEAP, 30_000);
        let left = |is_up: bool| {
            let hours = (day(31) - noon).div_euclid(hour);
            (hours + i64::from(is_up)) * hour
        };
        let charged = (9_000 * left(down) + 31 * DAY - 1) / (31 * DAY);
        let returned = 9_000 * left(up) / (31 * DAY);
        h.change(noon, DEAR);
        h.entry(noon, EntryKind::Change, -charged, period(0, 31));
        h.change(noon + 1, CHEAP);
        h.entry(noon + 1, EntryKind::Change, returned, period(0, 31));
        h.active(day(11), day(31));
        let violation = h.history.check_price().unwrap_err();
        assert_eq!(violation.law, "price", "{violation}");
    }
}

#[test]
fn undo_that_returns_too_little_is_refused() {
    for (returned, is_lawful) in [(5_902, true), (5_900, false)] {
        let mut h = Recorder::paid(CHEAP, 30_000);
        let at = day(10) + 2 * DAY / 3 + 7;
        let charged = (9_000 * (day(31) - at) + 31 * DAY - 1) / (31 * DAY);
        assert_eq!(charged, 5_904);
        h.change(at, DEAR);
        h.entry(at, EntryKind::Change, -charged, period(0, 31));
        h.change(at + 1, CHEAP);
        h.entry(at + 1, EntryKind::Change, returned, period(0, 31));
        h.active(day(11), day(31));
        assert_eq!(h.history.check_price().is_ok(), is_lawful);
    }
}
