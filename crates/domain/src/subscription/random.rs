//! Random numbers for simulations.

/// `SplitMix64`, a deterministic random number generator.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low).unwrap() + 1;
        low + i64::try_from(self.below(span)).unwrap()
    }

    /// Returns true in one of `odds` cases.
    pub(crate) fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let len = u64::try_from(from.len()).unwrap();
        from[usize::try_from(self.below(len)).unwrap()]
    }
}

/// Returns the number of cases to run: the environment variable, or the short form.
pub(crate) fn cases(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(count) => count.parse().unwrap(),
        Err(_) => default,
    }
}
