//! SQL statements as constants.
//!
//! The module `db` runs only statements of the type [`Sql`], so every statement of the service is a
//! `static` in the source. A test prepares each of them against the migrated schema.

/// One SQL statement.
#[derive(Debug)]
pub struct Sql(&'static str);

impl Sql {
    /// Wraps the text of a statement. The text must list its columns: with `select *`, a new column
    /// would break prepared plans.
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    pub fn text(&self) -> &'static str {
        self.0
    }

    /// Returns a key that identifies the statement: its address, which is fixed for a `static`.
    pub(super) fn key(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns a tracing span for one execution. The text is a constant and contains no values.
    pub(super) fn span(&'static self) -> tracing::Span {
        tracing::debug_span!("sql", db.query.text = self.text())
    }
}
