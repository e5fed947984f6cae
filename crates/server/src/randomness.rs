//! The one source of randomness: the operating system's.

use std::{cell::RefCell, time::Duration};

/// Hands out random bytes. A parameter where it is needed, so that it can be seen who needs it.
#[derive(Debug, Clone, Copy)]
pub struct Randomness;

impl Randomness {
    /// `N` bytes that nobody can guess.
    #[expect(
        clippy::disallowed_methods,
        clippy::expect_used,
        reason = "this is the one place; a system without randomness cannot run this service at all"
    )]
    pub fn bytes<const N: usize>(self) -> [u8; N] {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).expect("the operating system hands out random bytes");
        bytes
    }
}

impl Randomness {
    /// `N` bytes for a name that need not be guessed by nobody, only be nobody else's. The system is asked for many at
    /// once: there is a new name with every request.
    pub fn name<const N: usize>(self) -> [u8; N] {
        thread_local! {
            static LEFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        LEFT.with_borrow_mut(|left| {
            if left.len() < N {
                *left = self.bytes::<1024>().to_vec();
            }
            let taken = left.last_chunk().copied();
            left.truncate(left.len().saturating_sub(N));
            taken.unwrap_or_else(|| self.bytes())
        })
    }
}

/// Between half of `pause` and all of it, so that those who began together do not stay together.
pub fn varied(pause: Duration) -> Duration {
    let [random] = Randomness.bytes();
    pause.mul_f64(0.5 + f64::from(random) / 512.0)
}
