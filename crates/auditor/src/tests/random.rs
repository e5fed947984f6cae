//! Random histories of the test engine: lawful without errors, refused with each.

use super::engine::{Bug, Engine};
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
    let mut engine = Engine::new(first, bug);
    let mut at = day(0);
    let mut payments: Vec<(u128, i64, bool)> = Vec::new();
    let mut nominal: Vec<i64> = Vec::new();
    let mut nominal_last = at;
    let mut is_recorded = true;
    for id in 0..12_u128 {
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
        let choice = random.below(if with_server { 14 } else { 10 });
        engine.prepare(nominal_last, (4..10).contains(&choice));
        match choice {
            0..4 => {
                let amount =
                    engine.recorder.terms.amount() * (1 + random.time(3)) + random.time(90);
                payments.push((id, amount, false));
                engine.pay(at, id, amount);
            }
            4 => engine.pause(at),
            5 | 6 => engine.activate(at),
            7 => {
                let sent = (with_server && random.below(2) == 0).then_some(at + 40 * DAY);
                engine.cancel(at, sent);
            }
            8 | 9 => {
                let mut next = terms(&mut random);
                if random.below(3) > 0 {
                    next.cycle = engine.recorder.terms.cycle;
                }
                next.plan = 1 + u128::from(next.cycle != engine.recorder.terms.cycle);
                let old = engine.recorder.terms;
                if (old.plan, old.quantity) != (next.plan, next.quantity) {
                    engine.change(at, next);
                }
            }
            10 | 11 => {
                if let Some((payment, amount, false)) = payments.last().copied() {
                    payments.pop();
                    engine.refund(at, payment, amount / 2);
                }
            }
            _ => {
                if let Some((payment, amount, is_disputed)) = payments.last_mut() {
                    *is_disputed = !*is_disputed;
                    if *is_disputed {
                        engine.dispute(at, *payment, *amount);
                    } else {
                        engine.win(at, *payment, *amount);
                    }
                }
            }
        }
        is_recorded = engine.recorder.history.calls.len() > nominal.len() + 1;
        if is_recorded {
            nominal.push(nominal_last);
        }
        engine.finish(at);
    }
    engine.advance(at + 70 * DAY);
    let mut history = engine.recorder.history;
    for (call, at) in history.calls.iter_mut().skip(1).zip(nominal) {
        call.at = at;
    }
    history
}

#[test]
fn random_histories_without_errors_are_lawful() {
    for seed in 0..RUNS {
        for with_server in [false, true] {
            let history = record(seed, None, with_server);
            let mut result = history.check_money().and_then(|()| history.check_access());
            if !with_server {
                result = result.and_then(|()| history.check_value());
            }
            if let Err(violation) = result {
                panic!("seed {seed}, server {with_server}: {violation}\n{history:#?}");
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
        PauseStopsLateness,
        GracePastOpenPeriod,
        DisputeWonTwice,
        DueNotApplied,
        GraceAfterCancel,
        PaymentMovesAnchor,
    ] {
        let refused = (0..RUNS).filter(|seed| {
            let history = record(*seed, Some(bug), true);
            history.check_money().is_err() || history.check_access().is_err()
        });
        assert!(refused.count() > 0, "{bug:?}");
    }
}

#[test]
fn value_law_alone_refuses_free_time() {
    for bug in [Bug::FreeResume, Bug::FreeChange] {
        let refused = (0..RUNS).filter(|seed| {
            let history = record(*seed, Some(bug), false);
            history.check_value().is_err()
        });
        assert!(refused.count() > 0, "{bug:?}");
    }
}
