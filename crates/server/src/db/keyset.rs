//! Keyset pagination by creation time or another time.
//!
//! A page starts after the sort key of the previous page's last row, so every page costs the same
//! and concurrent inserts neither skip nor repeat rows.

use jiff::Timestamp;
use perennial_domain::Id;
use uuid::Uuid;

use super::Sql;

/// Order of a list by creation time.
#[derive(Debug, Clone, Copy)]
pub enum AgeOrder {
    OldestFirst,
    NewestFirst,
}

/// The sort key of a row: creation time, or the time that a list is sorted by instead; then id.
#[derive(Debug, Clone, Copy)]
pub struct AgeKey {
    pub created_at: Timestamp,
    pub id: Uuid,
}

impl AgeOrder {
    /// Returns a key just before the first row of a range. An index scan starts at this key: from the end of the
    /// list, it would read all rows up to the range.
    pub fn start(self, range: TimeRange) -> AgeKey {
        let (created_at, id) = match (self, range.before) {
            (Self::OldestFirst, _) => (range.bounds().0, Uuid::nil()),
            (Self::NewestFirst, Some(before)) => (before, Uuid::nil()),
            (Self::NewestFirst, None) => (Timestamp::MAX, Uuid::max()),
        };
        AgeKey { created_at, id }
    }
}

/// Converts the ids of a filter to a parameter.
pub fn uuids<I: Id>(ids: Option<&Vec<I>>) -> Option<Vec<Uuid>> {
    ids.map(|ids| ids.iter().map(|id| id.uuid()).collect())
}

/// A half-open range of time: `from` is included, `before` is not.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct TimeRange {
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

impl TimeRange {
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }

    /// Returns both bounds, for statements whose parameters cannot be null. Nothing is created before 1970.
    pub fn bounds(&self) -> (Timestamp, Timestamp) {
        let from = self.from.unwrap_or(Timestamp::UNIX_EPOCH);
        (from, self.before.unwrap_or(Timestamp::MAX))
    }
}

/// A list statement in both orders; [`by_age!`](crate::db::by_age) creates it.
pub struct ByAgeSql {
    pub oldest_first: Sql,
    pub newest_first: Sql,
}

impl ByAgeSql {
    /// Returns the statement for an order.
    pub fn in_order(&'static self, order: AgeOrder) -> &'static Sql {
        match order {
            AgeOrder::OldestFirst => &self.oldest_first,
            AgeOrder::NewestFirst => &self.newest_first,
        }
    }
}

/// Creates a [`ByAgeSql`] from the table's `select!` macro and conditions, each followed by `AND`.
///
/// Parameters: `$1` is the tenant (a condition of `select!`), `$2` and `$3` are the key to start
/// after, and `$4` is the limit. The parameters of the conditions start at `$5`.
macro_rules! by_age {
    ($select:ident, $($conditions:tt)*) => {
        $crate::db::ByAgeSql {
            oldest_first: $crate::db::Sql::new($select!(
                $($conditions)*
                "(created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
            )),
            newest_first: $crate::db::Sql::new($select!(
                $($conditions)*
                "(created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
            )),
        }
    };
}
/// Creates a [`ByAgeSql`] for the order by another time, `$key`, instead of the creation time. `$start` is the
/// expression for the key to start after, usually `$2`. Otherwise like [`by_age!`].
macro_rules! by_key {
    ($select:ident, $key:literal, $start:literal, $($conditions:tt)*) => {
        $crate::db::ByAgeSql {
            oldest_first: $crate::db::Sql::new($select!(
                $($conditions)*
                "(", $key, ", id) > (", $start, ", $3) ORDER BY ", $key, ", id LIMIT $4"
            )),
            newest_first: $crate::db::Sql::new($select!(
                $($conditions)*
                "(", $key, ", id) < (", $start, ", $3) ORDER BY ", $key, " DESC, id DESC LIMIT $4"
            )),
        }
    };
}
/// Creates a [`ByAgeSql`] of the rows with a value in a column and in a range of `created_at`, `$5` to `$6`, from the
/// index on the column, `created_at` and `id`. Otherwise like [`by_age!`].
///
/// With `=` the planner would leave the column out of the order. If it knows only one value of the column, it then
/// prefers the smaller index without it, and a list of a rare value reads all rows. `$2` and `$3` start in the range.
macro_rules! by_value {
    ($select:ident, $column:literal, $value:literal, $($conditions:tt)*) => {
        $crate::db::ByAgeSql {
            oldest_first: $crate::db::Sql::new($select!(
                $($conditions)*
                "created_at >= $5 AND (", $column, ", created_at, id) > (", $value, ", $2, $3)
       AND (", $column, ", created_at) < (", $value, ", $6) ORDER BY ", $column, ", created_at, id LIMIT $4"
            )),
            newest_first: $crate::db::Sql::new($select!(
                $($conditions)*
                "created_at < $6 AND (", $column, ", created_at, id) < (", $value, ", $2, $3)
       AND (", $column, ", created_at) >= (", $value, ", $5)
     ORDER BY ", $column, " DESC, created_at DESC, id DESC LIMIT $4"
            )),
        }
    };
}
pub(crate) use {by_age, by_key, by_value};
