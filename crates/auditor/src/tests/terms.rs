//! Changes of plan and quantity in a trial.

use super::*;

const DEAR: Terms = Terms {
    plan: 5,
    quantity: 1,
    price: 10_000,
    cycle: Cycle::Monthly,
};

fn on_trial() -> Recorder {
    let mut h = Recorder::new(BASIC);
    h.create(None, None, None, 14);
    h.entry(day(0), EntryKind::Extension, 0, period(0, 14));
    h.probe(day(1), Status::OnTrial, true, Some(day(14)));
    h
}

#[test]
fn trial_stays_if_the_new_plan_has_one() {
    let mut h = on_trial();
    h.change_with_trial(day(2), DEAR, 7);
    h.terms = DEAR;
    h.probe(day(3), Status::OnTrial, true, Some(day(14)));
    h.assert_lawful();
}

#[test]
fn change_to_a_plan_without_a_trial_starts_a_paid_period() {
    let mut h = on_trial();
    h.pay(day(1) + 9, 1, 10_100);
    h.change(day(2), DEAR);
    h.entry(day(2), EntryKind::Period, -10_000, period(2, 33));
    h.active(day(3), day(33));
    h.assert_lawful();

    // The dear plan for the price of nothing.
    let mut h = on_trial();
    h.change(day(2), DEAR);
    h.probe(day(3), Status::OnTrial, true, Some(day(14)));
    h.assert_access_broken("starts with a credit of 0");
}

#[test]
fn paused_trial_that_ends_by_a_change_lapses() {
    let mut h = on_trial();
    h.pay(day(1) + 9, 1, 10_100);
    h.set_status(day(2), Status::Paused);
    h.change(day(3), DEAR);
    h.probe(day(4), Status::Paused, false, Some(day(3)));
    h.set_status(day(5), Status::Active);
    h.entry(day(5), EntryKind::Period, -10_000, period(5, 36));
    h.active(day(6), day(36));
    h.assert_lawful();
}

#[test]
fn cancelled_trial_that_ends_by_a_change_stays_cancelled() {
    let mut h = on_trial();
    h.pay(day(1) + 9, 1, 10_100);
    let (status, ends_at) = (Status::Cancelled, Some(day(40)));
    h.call(day(2), Verb::SetStatus { status, ends_at });
    h.ends_at = ends_at;
    h.change(day(3), DEAR);
    h.entry(day(3), EntryKind::Period, -10_000, period(3, 34));
    h.probe(day(4), Status::Cancelled, true, Some(day(34)));
    h.probe(day(34), Status::Expired, false, Some(day(34)));
    h.assert_lawful();
}
