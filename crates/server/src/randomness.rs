//! The only source of randomness: the operating system.

use std::{cell::RefCell, time::Duration};

/// The operating system's random number generator.
#[derive(Debug, Clone, Copy)]
pub struct Randomness;

impl Randomness {
    /// Returns cryptographically secure random bytes.
    #[expect(
        clippy::disallowed_methods,
        clippy::expect_used,
        reason = "the only call of `getrandom`; the service cannot run without randomness"
    )]
    pub fn bytes<const N: usize>(self) -> [u8; N] {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
        bytes
    }

    /// Returns random bytes for an identifier, from a buffer per thread. They need to be unique, but
    /// not secret. The buffer saves a system call per request.
    pub fn identifier_bytes<const N: usize>(self) -> [u8; N] {
        thread_local! {
            static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < N {
                *buffer = self.bytes::<1024>().to_vec();
            }
            let bytes = buffer.last_chunk().copied();
            buffer.truncate(buffer.len().saturating_sub(N));
            bytes.unwrap_or_else(|| self.bytes())
        })
    }
}

/// Returns a random duration between half of `duration` and all of it, so that tasks that started
/// together spread out.
pub fn jitter(duration: Duration) -> Duration {
    let [random] = Randomness.bytes();
    duration.mul_f64(0.5 + f64::from(random) / 512.0)
}
