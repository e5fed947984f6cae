//! Lists of subscriptions: all their SQL.
//!
//! Most lists are of one user, of one plan, of one status or of everybody: those have a statement each, which the database plans
//! once. Any other combination of filters wants another index, and is planned when it is asked for.

use jiff::Timestamp;
use perennial_domain::{ExternalId, Id, PlanId, Status, Subscription, TenantId, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::table::{self, select};
use crate::db::{Connection, Error, Sql};

/// Which subscriptions of a tenant are listed: those that are one of each.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub users: Option<Vec<UserId>>,
    pub plans: Option<Vec<PlanId>>,
    /// As they are shown, not as they were written down.
    pub statuses: Option<Vec<Status>>,
    pub is_active: Option<bool>,
    pub external_ids: Option<Vec<ExternalId>>,
    pub renews_at: Range,
    pub ends_at: Range,
}

/// What a filter narrows a list to.
enum Narrows {
    ByNothing,
    ToUser(UserId),
    ToPlan(PlanId),
    /// Any but expired, which is also whoever has passed an end.
    ToStatus(Status),
    ToPlanAndStatus(PlanId, Status),
    Otherwise,
}

impl Filter {
    fn narrows(&self) -> Narrows {
        let Self {
            users,
            plans,
            statuses,
            is_active,
            external_ids,
            renews_at,
            ends_at,
        } = self;
        let others = is_active.is_some()
            || external_ids.is_some()
            || [renews_at, ends_at]
                .into_iter()
                .any(|range| *range != Range::default());
        match (users.as_deref(), plans.as_deref(), statuses.as_deref()) {
            _ if others => Narrows::Otherwise,
            (None, None, None) => Narrows::ByNothing,
            (Some([user]), None, None) => Narrows::ToUser(*user),
            (None, Some([plan]), None) => Narrows::ToPlan(*plan),
            (_, _, Some([Status::Expired])) => Narrows::Otherwise,
            (None, None, Some([status])) => Narrows::ToStatus(*status),
            (None, Some([plan]), Some([status])) => Narrows::ToPlanAndStatus(*plan, *status),
            _ => Narrows::Otherwise,
        }
    }
}

/// From an instant on, and before another.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Range {
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

/// Which come first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Oldest,
    Newest,
}

/// Where a page begins: after the subscription with these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub created_at: Timestamp,
    pub id: Uuid,
}

/// Up to `limit` subscriptions after a place, as they are at `now`.
pub(super) async fn list(
    connection: &mut Connection,
    tenant: TenantId,
    filter: &Filter,
    (order, after): (Order, Option<Place>),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Subscription>, Error> {
    let place = after.unwrap_or(match order {
        Order::Oldest => Place {
            created_at: Timestamp::UNIX_EPOCH,
            id: Uuid::nil(),
        },
        Order::Newest => Place {
            created_at: Timestamp::MAX,
            id: Uuid::max(),
        },
    });
    let start = (tenant, order, place, limit);
    let rows = match filter.narrows() {
        Narrows::ByNothing => page(connection, &EVERYBODYS, start, &[]).await?,
        Narrows::ToUser(user) => page(connection, &OF_USER, start, &[&user.uuid()]).await?,
        Narrows::ToPlan(plan) => page(connection, &OF_PLAN, start, &[&plan.uuid()]).await?,
        Narrows::ToStatus(status) => {
            page(connection, &IN_STATUS, start, &[&status.as_str(), &now]).await?
        }
        Narrows::ToPlanAndStatus(plan, status) => {
            let which: [&(dyn ToSql + Sync); 3] = [&plan.uuid(), &status.as_str(), &now];
            page(connection, &OF_PLAN_IN_STATUS, start, &which).await?
        }
        Narrows::Otherwise => filtered(connection, filter, start, now).await?,
    };
    rows.iter().map(table::subscription).collect()
}

/// One list in both orders: after the place of `$2` and `$3`, up to `$4`; `$5` and so on say what of.
struct Pages {
    oldest: Sql,
    newest: Sql,
}

static EVERYBODYS: Pages = Pages {
    oldest: Sql::new(select!(
        "(created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
    )),
    newest: Sql::new(select!(
        "(created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
    )),
};
static OF_USER: Pages = Pages {
    oldest: Sql::new(select!(
        "user_id = $5 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
    )),
    newest: Sql::new(select!(
        "user_id = $5 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
    )),
};
// `=`, here and below, because of several the database cannot rely on the order of an index.
static OF_PLAN: Pages = Pages {
    oldest: Sql::new(select!(
        "plan_id = $5 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
    )),
    newest: Sql::new(select!(
        "plan_id = $5 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
    )),
};
static IN_STATUS: Pages = Pages {
    oldest: Sql::new(select!(
        "status = $5 AND (ends_at IS NULL OR ends_at > $6) AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
    )),
    newest: Sql::new(select!(
        "status = $5 AND (ends_at IS NULL OR ends_at > $6)
       AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
    )),
};
static OF_PLAN_IN_STATUS: Pages = Pages {
    oldest: Sql::new(select!(
        "plan_id = $5 AND status = $6 AND (ends_at IS NULL OR ends_at > $7)
       AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
    )),
    newest: Sql::new(select!(
        "plan_id = $5 AND status = $6 AND (ends_at IS NULL OR ends_at > $7)
       AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
    )),
};

/// Where a list begins and how far it goes.
type Start = (TenantId, Order, Place, i64);

async fn page(
    connection: &Connection,
    pages: &'static Pages,
    (tenant, order, place, limit): Start,
    which: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let sql = match order {
        Order::Oldest => &pages.oldest,
        Order::Newest => &pages.newest,
    };
    let (tenant, Place { created_at, id }) = (tenant.uuid(), place);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&tenant, &created_at, &id, &limit];
    params.extend(which);
    connection.query(sql, &params).await
}

// The database plans these anew each time, knowing the values: what is null falls away, and of what is left it takes
// the index that narrows most. `domain/subscription` says the same of status and access; a test holds them together.
// `updated_at` is there for what an instance has changed whose clock is ahead; of its end that needs no word, since what
// has ended when it is changed is written down as expired.
static LIST_OLDEST: Sql = Sql::new(select!(
    "($2::uuid[] IS NULL OR user_id = ANY ($2)) AND ($3::uuid[] IS NULL OR plan_id = ANY ($3))
       AND ($4::text[] IS NULL
            OR status = ANY ($4) AND (status = 'expired' OR ends_at IS NULL OR ends_at > $5::timestamptz)
            OR 'expired' = ANY ($4) AND ends_at <= $5)
       AND ($6::boolean IS NULL
            OR $6 AND status IN ('on_trial', 'active', 'past_due', 'cancelled') AND NOT suspended AND (starts_at <= $5 OR starts_at <= updated_at)
               AND (ends_at IS NULL OR ends_at > $5)
            OR NOT $6 AND (status IN ('pending', 'paused', 'unpaid', 'expired') OR suspended
               OR starts_at > $5 AND starts_at > updated_at OR ends_at <= $5))
       AND ($7::text[] IS NULL OR external_id = ANY ($7))
       AND ($8::timestamptz IS NULL OR renews_at >= $8) AND ($9::timestamptz IS NULL OR renews_at < $9)
       AND ($10::timestamptz IS NULL OR ends_at >= $10) AND ($11::timestamptz IS NULL OR ends_at < $11)
       AND (created_at, id) > ($12::timestamptz, $13::uuid) ORDER BY created_at, id LIMIT $14"
));
static LIST_NEWEST: Sql = Sql::new(select!(
    "($2::uuid[] IS NULL OR user_id = ANY ($2)) AND ($3::uuid[] IS NULL OR plan_id = ANY ($3))
       AND ($4::text[] IS NULL
            OR status = ANY ($4) AND (status = 'expired' OR ends_at IS NULL OR ends_at > $5::timestamptz)
            OR 'expired' = ANY ($4) AND ends_at <= $5)
       AND ($6::boolean IS NULL
            OR $6 AND status IN ('on_trial', 'active', 'past_due', 'cancelled') AND NOT suspended AND (starts_at <= $5 OR starts_at <= updated_at)
               AND (ends_at IS NULL OR ends_at > $5)
            OR NOT $6 AND (status IN ('pending', 'paused', 'unpaid', 'expired') OR suspended
               OR starts_at > $5 AND starts_at > updated_at OR ends_at <= $5))
       AND ($7::text[] IS NULL OR external_id = ANY ($7))
       AND ($8::timestamptz IS NULL OR renews_at >= $8) AND ($9::timestamptz IS NULL OR renews_at < $9)
       AND ($10::timestamptz IS NULL OR ends_at >= $10) AND ($11::timestamptz IS NULL OR ends_at < $11)
       AND (created_at, id) < ($12::timestamptz, $13::uuid) ORDER BY created_at DESC, id DESC LIMIT $14"
));

/// Those that pass a filter.
async fn filtered(
    connection: &mut Connection,
    filter: &Filter,
    (tenant, order, place, limit): Start,
    now: Timestamp,
) -> Result<Vec<Row>, Error> {
    let sql = match order {
        Order::Oldest => &LIST_OLDEST,
        Order::Newest => &LIST_NEWEST,
    };
    let uuids = |ids: &mut dyn Iterator<Item = Uuid>| ids.collect::<Vec<_>>();
    let users = filter.users.as_ref();
    let users = users.map(|ids| uuids(&mut ids.iter().map(|id| id.uuid())));
    let plans = filter.plans.as_ref();
    let plans = plans.map(|ids| uuids(&mut ids.iter().map(|id| id.uuid())));
    let statuses = filter.statuses.as_ref();
    let statuses = statuses.map(|all| all.iter().map(|one| one.as_str()).collect::<Vec<_>>());
    let external_ids = filter.external_ids.as_ref();
    let external_ids =
        external_ids.map(|ids| ids.iter().map(ExternalId::as_str).collect::<Vec<_>>());
    let params: [&(dyn ToSql + Sync); 14] = [
        &tenant.uuid(),
        &users,
        &plans,
        &statuses,
        &now,
        &filter.is_active,
        &external_ids,
        &filter.renews_at.from,
        &filter.renews_at.before,
        &filter.ends_at.from,
        &filter.ends_at.before,
        &place.created_at,
        &place.id,
        &limit,
    ];
    connection.query_planned_anew(sql, &params).await
}
