//! Ten years of random calls: the ledger does not depend on when the worker runs.
//!
//! `SEEDS` sets the number of subscriptions.

use crate::subscription::{
    billing::laws::simulate,
    random::{SplitMix64, cases},
};

const SEEDS: u64 = 100;
const YEARS: i64 = 10;

#[test]
fn ledger_does_not_depend_on_when_the_worker_runs() {
    let (mut subscriptions, mut entries, mut payments) = (0, 0, 0);
    for seed in 0..cases("SEEDS", SEEDS) {
        let Some(at_calls_only) = simulate(seed, YEARS, None) else {
            continue;
        };
        let with_worker = simulate(seed, YEARS, Some(SplitMix64(seed))).unwrap();
        let first = at_calls_only
            .entries
            .iter()
            .zip(&with_worker.entries)
            .find(|(left, right)| left != right);
        assert_eq!(first, None, "seed {seed}: the first entry that differs");
        assert_eq!(
            at_calls_only.entries.len(),
            with_worker.entries.len(),
            "seed {seed}"
        );
        assert_eq!(at_calls_only.sub, with_worker.sub, "seed {seed}");
        assert_eq!(at_calls_only.payments, with_worker.payments, "seed {seed}");
        subscriptions += 1;
        entries += at_calls_only.entries.len();
        payments += at_calls_only.payments.len();
    }
    println!("{subscriptions} subscriptions: {entries} entries, {payments} payments");
    assert!(entries > 50 * subscriptions, "{entries} entries");
}
