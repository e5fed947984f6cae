//! SQL of `GET /users`.
//!
//! The list by creation time has a statement with a cached generic plan. With any other filter, PostgreSQL plans
//! the statement with the actual values on every execution, so that it selects the best index. A prefix selects a
//! range of the unique index on email addresses, and its list is in that order.

use perennial_domain::{EmailPrefix, ExternalId, Id, TenantId, User, UserId};
use tokio_postgres::types::ToSql;

use super::table::{columns, from_row, select};
use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, Error, PooledConnection, Sql, TimeRange, by_age, uuids,
};

/// Conditions on the users of a list; `None` matches all.
#[derive(Debug, Default)]
pub(super) struct UserFilter {
    pub ids: Option<Vec<UserId>>,
    /// A normalized address.
    pub email: Option<String>,
    pub email_prefix: Option<EmailPrefix>,
    pub external_ids: Option<Vec<ExternalId>>,
    pub created_at: TimeRange,
}

/// The order of a list of users.
#[derive(Debug, Clone, Copy)]
pub(super) enum UserOrder {
    ByAge(AgeOrder),
    /// By normalized email address. Users without one are left out.
    ByEmail,
}

/// Where a page starts.
#[derive(Debug, Clone)]
pub(super) enum UserKey {
    Age(AgeKey),
    /// A normalized email address.
    Email(String),
}

/// The conditions of [`UserFilter`] but the prefix.
macro_rules! conditions {
    () => {
        "created_at >= $5 AND created_at < $6 AND ($7::uuid[] IS NULL OR id = ANY ($7)) AND ($8::text IS NULL OR email_key = $8)
       AND ($9::text[] IS NULL OR external_id = ANY ($9)) AND "
    };
}

static ALL: ByAgeSql = by_age!(select, "created_at >= $5 AND created_at < $6 AND ",);
static FILTERED: ByAgeSql = by_age!(select, conditions!(),);
// `!` is the first character that an address can start with. The key of a user without one is before it.
static BY_EMAIL: Sql = Sql::new(select!(
    conditions!(),
    "email_key >= $2 AND email_key < $3 AND email_key > $10 ORDER BY email_key LIMIT $4"
));

/// Returns up to `limit` users after a key.
pub(super) async fn list(
    connection: &mut PooledConnection,
    tenant: TenantId,
    filter: &UserFilter,
    (order, after): (UserOrder, Option<UserKey>),
    limit: i64,
) -> Result<Vec<User>, Error> {
    let tenant = tenant.uuid();
    let (from, before) = filter.created_at.bounds();
    let external_ids = filter.external_ids.as_ref();
    let external_ids =
        external_ids.map(|ids| ids.iter().map(ExternalId::as_str).collect::<Vec<_>>());
    let ids = uuids(filter.ids.as_ref());
    let is_all = ids.is_none() && filter.email.is_none() && external_ids.is_none();
    let rows = match order {
        UserOrder::ByAge(age) => {
            let AgeKey {
                created_at,
                id: key,
            } = match after {
                Some(UserKey::Age(key)) => key,
                _ => age.start(filter.created_at),
            };
            let mut params: Vec<&(dyn ToSql + Sync)> =
                vec![&tenant, &created_at, &key, &limit, &from, &before];
            if is_all {
                connection.query(ALL.in_order(age), &params).await?
            } else {
                let others: [&(dyn ToSql + Sync); 3] = [&ids, &filter.email, &external_ids];
                params.extend(others);
                let sql = FILTERED.in_order(age);
                connection.query_custom_plan(sql, &params).await?
            }
        }
        UserOrder::ByEmail => {
            let (first, end) = match &filter.email_prefix {
                Some(prefix) => prefix.bounds(),
                None => ("!", char::MAX.to_string()),
            };
            let after = match after {
                Some(UserKey::Email(key)) => key,
                _ => String::new(),
            };
            let params: [&(dyn ToSql + Sync); 10] = [
                &tenant,
                &first,
                &end,
                &limit,
                &from,
                &before,
                &ids,
                &filter.email,
                &external_ids,
                &after,
            ];
            connection.query_custom_plan(&BY_EMAIL, &params).await?
        }
    };
    rows.iter().map(from_row).collect()
}
