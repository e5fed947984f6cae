//! The one source of randomness: the operating system's.

use std::time::Duration;

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

/// Between half of `pause` and all of it, so that those who began together do not stay together.
pub fn varied(pause: Duration) -> Duration {
    let [random] = Randomness.bytes();
    pause.mul_f64(0.5 + f64::from(random) / 512.0)
}
