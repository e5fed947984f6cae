//! Switches between recorded and managed mode.

use super::*;

const YEARLY: Terms = Terms {
    plan: 7,
    quantity: 1,
    price: 36_500,
    cycle: Cycle::Yearly,
};

fn shown(h: &Recorder, status: Status, renews_at: Option<i64>) -> Shown {
    Shown {
        status,
        terms: h.terms,
        starts_at: h.starts_at,
        renews_at,
        ends_at: h.ends_at,
        late_since: None,
    }
}

impl Recorder {
    fn enter(&mut self, at: i64, status: Status, renews_at: i64) {
        let shown = shown(self, status, Some(renews_at));
        self.call(at, Verb::EnterManaged { shown });
    }
}

#[test]
fn first_switch_covers_a_future_renewal() {
    let mut h = Recorder::new(BASIC);
    h.create(Some(Status::Active), None, None, 0);
    let (payment, amount) = (1, 3_100);
    h.call(day(3), Verb::Pay { payment, amount });
    h.refund(day(3) + 9, 1, 100);
    h.probe(day(4), Status::Active, true, Some(day(31)));
    h.enter(day(10), Status::Active, day(31));
    h.entry(day(10), EntryKind::Extension, 0, period(10, 31));
    h.active(day(11), day(31));
    h.refund(day(12), 1, 200);
    h.probe(day(31), Status::PastDue, true, Some(day(31)));
    h.assert_money_and_access();
}

#[test]
fn switch_there_and_back_keeps_every_status() {
    let leave = |h: &mut Recorder, at: i64| h.call(at, Verb::LeaveManaged);

    let mut h = Recorder::new(BASIC);
    h.create(None, None, None, 14);
    h.entry(day(0), EntryKind::Extension, 0, period(0, 14));
    leave(&mut h, day(2));
    h.enter(day(3), Status::OnTrial, day(14));
    h.probe(day(4), Status::OnTrial, true, Some(day(14)));
    h.assert_money_and_access();

    let mut h = Recorder::paid(BASIC, 3_100);
    h.set_status(day(1), Status::Paused);
    leave(&mut h, day(2));
    h.enter(day(3), Status::Paused, day(31));
    h.probe(day(4), Status::Paused, false, Some(day(31)));
    h.set_status(day(5), Status::Active);
    h.active(day(6), day(31));
    h.assert_money_and_access();

    let mut h = Recorder::paid(BASIC, 6_200);
    h.set_status(day(1), Status::Cancelled);
    h.ends_at = Some(day(59));
    h.probe(day(1) + 5, Status::Cancelled, true, Some(day(31)));
    leave(&mut h, day(2));
    h.enter(day(3), Status::Cancelled, day(31));
    h.probe(day(4), Status::Cancelled, true, Some(day(31)));
    h.assert_money_and_access();

    for (at, status) in [(32, Status::PastDue), (40, Status::Unpaid)] {
        let mut h = Recorder::paid(BASIC, 3_100);
        leave(&mut h, day(at));
        let late_since = Some(day(31));
        let shown = Shown {
            late_since,
            ..shown(&h, status, late_since)
        };
        h.call(day(at + 1), Verb::EnterManaged { shown });
        h.probe(
            day(at + 2),
            status,
            status == Status::PastDue,
            Some(day(31)),
        );
        h.pay(day(at + 3), 2, 3_100);
        h.entry(day(at + 3), EntryKind::Period, -3_100, period(31, 59));
        h.active(day(at + 4), day(59));
        h.assert_money_and_access();
    }

    let mut h = Recorder::pending(BASIC);
    leave(&mut h, day(2));
    let shown = shown(&h, Status::Pending, None);
    h.call(day(3), Verb::EnterManaged { shown });
    h.probe(day(4), Status::Pending, false, None);
    h.assert_money_and_access();
}

#[test]
fn switch_after_a_new_price_keeps_the_period() {
    let mut h = Recorder::paid(BASIC, 3_100);
    let terms = Terms { price: 99, ..BASIC };
    h.call(day(1), Verb::SetPrice { terms });
    h.terms = terms;
    h.call(day(2), Verb::LeaveManaged);
    h.enter(day(3), Status::Active, day(31));
    h.active(day(4), day(31));
    h.assert_money_and_access();
}

#[test]
fn grace_that_ended_in_recorded_mode_starts_at_the_switch() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(32), Verb::LeaveManaged);
    let late_since = Some(day(31));
    let shown = Shown {
        late_since,
        ..shown(&h, Status::PastDue, late_since)
    };
    h.call(day(39), Verb::EnterManaged { shown });
    h.probe(day(40), Status::PastDue, true, Some(day(39)));
    h.probe(day(46), Status::Unpaid, false, Some(day(39)));
    h.assert_money_and_access();
}

#[test]
fn later_renewal_covers_only_the_rest() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::LeaveManaged);
    h.enter(day(3), Status::Active, day(40));
    h.entry(day(3), EntryKind::Extension, 0, period(31, 40));
    h.active(day(4), day(40));
    h.change(
        day(10),
        Terms {
            price: 0,
            plan: 9,
            ..BASIC
        },
    );
    h.entry(day(10), EntryKind::Change, 2_100, period(0, 40));
    h.active(day(11), day(40));
    h.assert_money_and_access();
}

#[test]
fn changed_terms_cover_the_rest_as_free_time() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::LeaveManaged);
    h.terms = YEARLY;
    h.enter(day(3), Status::Active, day(31));
    h.entry(day(3), EntryKind::Extension, 0, period(3, 31));
    h.active(day(4), day(31));
    h.assert_money_and_access();
}

#[test]
fn money_of_managed_payments_is_posted_in_recorded_mode() {
    let mut h = Recorder::paid(BASIC, 3_100);
    h.call(day(2), Verb::LeaveManaged);
    let (payment, amount) = (2, 500);
    h.call(day(3), Verb::Pay { payment, amount });
    h.call(day(3), Verb::PayDisputed { payment: 3, amount });
    h.call(day(4), Verb::WinDispute { payment: 3 });
    h.refund(day(5), 2, 500);
    h.refund(day(6), 1, 100);
    h.money(day(6), EntryKind::Refund, 1, -100);
    h.entry(day(6), EntryKind::Waiver, 100, None);
    h.call(day(7), Verb::Dispute { payment: 1 });
    h.money(day(7), EntryKind::Refund, 1, -3_000);
    h.enter(day(8), Status::Active, day(31));
    h.probe(day(9), Status::PastDue, true, Some(day(31)));
    h.call(day(10), Verb::WinDispute { payment: 1 });
    h.money(day(10), EntryKind::Payment, 1, 3_000);
    h.active(day(11), day(31));
    h.refund(day(12), 1, 0);
    h.money(day(12), EntryKind::Payment, 1, 100);
    h.entry(day(12), EntryKind::Waiver, -100, None);
    h.active(day(13), day(31));
    h.assert_money_and_access();

    h.call(day(14), Verb::LeaveManaged);
    h.pay(day(15), 4, 500);
    h.assert_money_broken("no call explains");
}
