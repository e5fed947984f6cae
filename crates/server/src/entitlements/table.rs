//! What a user's subscriptions and their plans say together: all its SQL.

use jiff::Timestamp;
use perennial_domain::{Grant, Id, PlanId, Slug, Status, SubscriptionId, TenantId, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{
    Engine, Error, Sql,
    row::{integer, optional_text, text},
};

/// A subscription that gives access, and what it gives.
#[derive(Debug)]
pub(super) struct Granted {
    pub subscription: SubscriptionId,
    pub plan: PlanId,
    pub slug: Slug,
    pub status: Status,
    pub renews_at: Option<Timestamp>,
    pub grant: Grant,
}

// `domain/subscription` says the same of access; a test holds them together. The user is looked for too, so that nobody
// and nothing are not the same answer.
static GRANTS: Sql = Sql::new(
    "SELECT subscriptions.id, plan_id, subscriptions.status, renews_at, ends_at, slug, tier, node_quota, features
     FROM users
     LEFT JOIN subscriptions ON subscriptions.tenant_id = $1 AND subscriptions.user_id = users.id
       AND subscriptions.deleted_at IS NULL AND subscriptions.status IN ('on_trial', 'active', 'past_due', 'cancelled')
       AND NOT suspended AND (starts_at <= $3 OR starts_at <= subscriptions.updated_at)
       AND (ends_at IS NULL OR ends_at > $3)
     LEFT JOIN subscription_plans ON subscription_plans.tenant_id = $1 AND subscription_plans.id = plan_id
     WHERE users.tenant_id = $1 AND users.id = $2 AND erased_at IS NULL
     ORDER BY subscriptions.created_at, subscriptions.id",
);

/// What a user's subscriptions give at `now`; `None` if there is no such user.
pub(super) async fn grants(
    engine: &Engine,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<Option<Vec<Granted>>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &user.uuid(), &now];
    let rows = engine.read_all(&GRANTS, &params).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    // The user alone is a row without a subscription.
    let granted: Result<Vec<Option<Granted>>, Error> = rows.iter().map(granted).collect();
    Ok(Some(granted?.into_iter().flatten().collect()))
}

fn granted(row: &Row) -> Result<Option<Granted>, Error> {
    let Some(subscription) = row.try_get::<_, Option<Uuid>>("id")? else {
        return Ok(None);
    };
    Ok(Some(Granted {
        subscription: SubscriptionId::new(subscription),
        plan: PlanId::new(row.try_get("plan_id")?),
        slug: text(row, "slug")?,
        status: text(row, "status")?,
        renews_at: row.try_get("renews_at")?,
        grant: Grant {
            tier: integer(row, "tier")?,
            node_quota: integer(row, "node_quota")?,
            features: optional_text(row, "features")?,
            ends_at: row.try_get("ends_at")?,
        },
    }))
}
