//! A statement as a constant.
//!
//! The engine runs nothing else, so every statement of the service is a `static` in the source, and
//! a test can prepare each against the migrated schema: what a compiler would check, it checks.

/// One SQL statement.
#[derive(Debug)]
pub struct Sql(&'static str);

impl Sql {
    /// A statement with this text. Never `select *`: a new column would break prepared plans.
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Its text.
    pub fn text(&self) -> &'static str {
        self.0
    }

    /// What tells this statement from all others: as a `static`, its place in memory.
    pub(super) fn address(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
