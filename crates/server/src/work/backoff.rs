//! Exponential backoff with jitter.

use std::time::Duration;

use crate::randomness::jitter;

const FIRST_INTERVAL: Duration = Duration::from_millis(100);
/// Short enough that workers resume within two seconds after the database is back.
const MAX_INTERVAL: Duration = Duration::from_millis(1_500);

/// Returns the pause after this many failures in a row.
pub fn after(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(10));
    jitter(FIRST_INTERVAL.saturating_mul(factor).min(MAX_INTERVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_stays_within_bounds() {
        for failures in [0, 1, 2, 5, 100, u32::MAX] {
            assert!(after(failures) <= MAX_INTERVAL);
            assert!(after(failures) >= FIRST_INTERVAL / 2);
        }
        assert!(after(10) >= MAX_INTERVAL / 2);
    }
}
