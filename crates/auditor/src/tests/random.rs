//! Random histories of the test engine: lawful without errors, refused with each.

use super::engine::{Bug, Edit, Engine};
use super::*;

const RUNS: u64 = 2_000;

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn time(&mut self, limit: i64) -> i64 {
        i64::try_from(self.below(limit.unsigned_abs())).unwrap()
    }
}

fn terms(random: &mut Random) -> Terms {
    let cycle = [
        Cycle::Monthly,
        Cycle::Monthly,
        Cycle::Weekly,
        Cycle::Daily,
        Cycle::Yearly,
    ];
    let cycle = cycle[usize::try_from(random.below(5)).unwrap()];
    let quantity = u32::try_from(1 + random.below(4)).unwrap();
    Terms {
        plan: 1,
        quantity,
        price: 997,
        cycle,
    }
}

/// Drives the engine with random calls; user verbs only unless `with_server`.
fn record(seed: u64, bug: Option<Bug>, with_server: bool) -> History {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    random.below(2);
    let first = terms(&mut random);
    let trial_days = if random.below(4) == 0 { 14 } else { 0 };
    let mut engine = Engine::new(first, bug, trial_days);
    let mut at = day(0);
    let mut nominal: Vec<i64> = Vec::new();
    let mut nominal_last = at;
    let mut is_recorded = true;
    for id in 0..16_u128 {
        // A call of the same instant as the previous change takes effect 1 µs later.
        let last = at;
        let due = engine.next_instant().filter(|due| *due >= last);
        let mut delay = 0;
        at += match (random.below(6), due) {
            (0, Some(due)) => {
                delay = 1;
                due - last + 1
            }
            (1, _) => {
                delay = if is_recorded {
                    1 + last - nominal_last
                } else {
                    0
                };
                1
            }
            (2, _) => 1 + random.time(DAY),
            (3, _) => DAY * (1 + random.time(9)),
            _ => 1 + random.time(20 * DAY),
        };
        nominal_last = at - delay;
        let mut choice = random.below(if with_server { 18 } else { 10 });
        if !engine.is_managed && (4..10).contains(&choice) {
            choice = 17;
        }
        engine.prepare(nominal_last, (4..10).contains(&choice));
        call(&mut engine, &mut random, (at, id, choice), with_server);
        is_recorded = engine.recorder.history.calls.len() > nominal.len() + 1;
        if is_recorded {
            nominal.push(nominal_last);
        }
        engine.finish(at);
        at = engine.now;
    }
    engine.advance(at + 70 * DAY);
    let mut history = engine.recorder.history;
    for (call, at) in history.calls.iter_mut().skip(1).zip(nominal) {
        call.at = at;
    }
    history
}

/// Sends a call of a kind; the last kinds are a server's.
fn call(
    engine: &mut Engine,
    random: &mut Random,
    (at, id, choice): (i64, u128, u64),
    with_server: bool,
) {
    let index = engine.payments.len().checked_sub(1);
    let index = index.map(|last| last - usize::try_from(random.below(2)).unwrap().min(last));
    match choice {
        0..4 => {
            let amount = engine.recorder.terms.amount() * (1 + random.time(3)) + random.time(90);
            let is_disputed = with_server && random.below(8) == 0;
            engine.pay(at, id, amount, is_disputed);
        }
        4 => engine.pause(at),
        5 | 6 => engine.activate(at),
        7 => {
            let sent = (with_server && random.below(2) == 0).then_some(at + 40 * DAY);
            engine.cancel(at, sent);
        }
        8 | 9 => {
            let next = other_terms(engine, random);
            let trial_days = if random.below(2) == 0 { 7 } else { 0 };
            let old = engine.recorder.terms;
            if (old.plan, old.quantity) != (next.plan, next.quantity) {
                engine.change(at, next, trial_days);
            }
        }
        10 | 11 => {
            if let Some(index) = index {
                let total = engine.payments[index].amount * random.time(5) / 4;
                engine.refund(at, index, total);
            }
        }
        12 | 13 => {
            if let Some(index) = index {
                match (engine.payments[index].is_disputed, random.below(3)) {
                    (false, _) => engine.dispute(at, index),
                    (true, 0) => engine.lose(at, index),
                    (true, _) => engine.win(at, index),
                }
            }
        }
        14 | 15 if engine.is_managed => engine.free_until(at, 1 + random.time(60 * DAY)),
        _ if engine.is_managed => engine.leave(at),
        _ => {
            let edit = match random.below(4) {
                0 => Edit::LaterRenewal(1 + random.time(40 * DAY)),
                1 => Edit::Terms(other_terms(engine, random)),
                _ => Edit::None,
            };
            engine.enter(at, edit);
        }
    }
}

/// Returns other terms; another cycle is another plan.
fn other_terms(engine: &Engine, random: &mut Random) -> Terms {
    let mut next = terms(random);
    let old = engine.recorder.terms;
    if random.below(3) > 0 {
        next.cycle = old.cycle;
    }
    next.plan = 1 + u128::from(next.cycle != old.cycle);
    next
}

#[test]
fn random_histories_without_errors_are_lawful() {
    for seed in 0..RUNS {
        for with_server in [false, true] {
            let history = record(seed, None, with_server);
            let mut result = history.check_money().and_then(|()| history.check_access());
            result = result.and_then(|()| history.check_price());
            if !with_server {
                result = result.and_then(|()| history.check_value());
            }
            if let Err(violation) = result {
                let History { calls, entries, .. } = history;
                let mut lines: Vec<_> = calls.iter().map(|c| (c.at, format!("{c:?}"))).collect();
                lines.extend(entries.iter().map(|e| (e.at, format!("  {e:?}"))));
                lines.sort_by_key(|line| line.0);
                let lines: Vec<_> = lines.into_iter().map(|line| line.1).collect();
                panic!(
                    "seed {seed}, server {with_server}: {violation}\n{}",
                    lines.join("\n")
                );
            }
        }
    }
}

#[test]
fn random_histories_with_an_error_are_refused() {
    use Bug::*;
    for bug in [
        FreeResume,
        UndoMovesRenewal,
        SentEndCovers,
        FreeChange,
        ReturnRoundedUp,
        WaiverNotDeducted,
        WaiverKept,
        PauseStopsLateness,
        GracePastOpenPeriod,
        DisputeWonTwice,
        DueNotApplied,
        GraceAfterCancel,
        PaymentMovesAnchor,
        StartedDaysCharged,
        HoursRoundedUp,
        HoursRoundedDown,
        LateAtNewAmount,
        FreeTimeReturned,
        FreeTimeNotSpread,
        TrialOfAnyPlan,
        SwitchWipesCost,
        SwitchStartsGrace,
        RecordedPaymentPosted,
    ] {
        let is_refused = (0..20 * RUNS).any(|seed| {
            let history = record(seed, Some(bug), true);
            history.check_money().is_err() || history.check_access().is_err()
        });
        assert!(is_refused, "{bug:?}");
    }
}

#[test]
fn price_law_alone_refuses_wrong_prices() {
    use Bug::*;
    for bug in [
        FreeChange,
        StartedDaysCharged,
        HoursRoundedUp,
        HoursRoundedDown,
        LateAtNewAmount,
    ] {
        let is_refused = (0..20 * RUNS).any(|seed| {
            let history = record(seed, Some(bug), true);
            history.check_price().is_err()
        });
        assert!(is_refused, "{bug:?}");
    }
}

#[test]
fn value_law_alone_refuses_free_time() {
    for bug in [Bug::FreeResume, Bug::FreeChange, Bug::LateAtNewAmount] {
        let is_refused = (0..20 * RUNS).any(|seed| {
            let history = record(seed, Some(bug), false);
            history.check_value().is_err()
        });
        assert!(is_refused, "{bug:?}");
    }
}
