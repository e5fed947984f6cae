//! A bar that grows while something takes its time, for somebody at a terminal.

use std::io::{IsTerminal, Write, stderr};

/// How many characters a full bar has.
const WIDTH: usize = 20;

/// A bar on standard error; nothing at all if that is no terminal.
pub struct Progress {
    all: usize,
    shown: bool,
}

impl Progress {
    /// An empty one, for so many things to do.
    pub fn of(all: usize) -> Self {
        let shown = stderr().is_terminal();
        Self { all, shown }
    }

    /// So many are done; what it is about now.
    pub fn show(&self, done: usize, about: &str) {
        if self.shown {
            let full = (WIDTH * done).checked_div(self.all).unwrap_or(WIDTH);
            let full = full.min(WIDTH);
            let (full, empty) = ("█".repeat(full), "░".repeat(WIDTH - full));
            let _ = write!(stderr(), "\r[{full}{empty}] {about}\x1b[K");
        }
    }

    /// Makes room for what comes next.
    pub fn clear(self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
