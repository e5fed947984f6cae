//! How long to wait after a failure.

use std::time::Duration;

use crate::randomness::varied;

const FIRST: Duration = Duration::from_millis(100);
/// Short enough that work goes on within two seconds of the database's return.
const LONGEST: Duration = Duration::from_millis(1_500);

/// The pause after so many failures in a row: doubled each time up to the longest, then varied.
pub fn after(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(10)));
    varied(doubled.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_stays_bounded() {
        for failures in [0, 1, 2, 5, 100, u32::MAX] {
            assert!(after(failures) <= LONGEST);
            assert!(after(failures) >= FIRST / 2);
        }
        assert!(after(10) >= LONGEST / 2);
    }
}
