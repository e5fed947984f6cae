//! A progress bar on standard error; prints nothing if standard error is not a terminal.

use std::io::{IsTerminal, Write, stderr};

/// The width of the bar in characters.
const WIDTH: usize = 20;

pub struct ProgressBar {
    total: usize,
    is_terminal: bool,
}

impl ProgressBar {
    pub fn new(total: usize) -> Self {
        let is_terminal = stderr().is_terminal();
        Self { total, is_terminal }
    }

    pub fn update(&self, done: usize, label: &str) {
        if self.is_terminal {
            let filled = (WIDTH * done).checked_div(self.total).unwrap_or(WIDTH);
            let filled = filled.min(WIDTH);
            let (filled, empty) = ("█".repeat(filled), "░".repeat(WIDTH - filled));
            let _ = write!(stderr(), "\r[{filled}{empty}] {label}\x1b[K");
        }
    }

    /// Erases the bar.
    pub fn clear(self) {
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
