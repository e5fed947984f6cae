//! Keyset pagination by creation time.
//!
//! A page starts after the sort key of the previous page's last row, so every page costs the same
//! and concurrent inserts neither skip nor repeat rows.

use jiff::Timestamp;
use uuid::Uuid;

use super::Sql;

/// Order of a list by creation time.
#[derive(Debug, Clone, Copy)]
pub enum AgeOrder {
    OldestFirst,
    NewestFirst,
}

/// The sort key of a row: creation time, then id.
#[derive(Debug, Clone, Copy)]
pub struct AgeKey {
    pub created_at: Timestamp,
    pub id: Uuid,
}

impl AgeOrder {
    /// Returns a key before the first row.
    pub fn start(self) -> AgeKey {
        match self {
            Self::OldestFirst => AgeKey {
                created_at: Timestamp::UNIX_EPOCH,
                id: Uuid::nil(),
            },
            Self::NewestFirst => AgeKey {
                created_at: Timestamp::MAX,
                id: Uuid::max(),
            },
        }
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
pub(crate) use by_age;
