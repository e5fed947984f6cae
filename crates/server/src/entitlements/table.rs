//! What a user's subscriptions and their plans say together: all its SQL.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{Grant, Id, PlanId, Slug, Status, SubscriptionId, TenantId, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{Engine, Error, Sql, row::Reader};

/// Subscriptions that give access, oldest first, and their plans, each once.
#[derive(Debug, Default)]
pub(super) struct Granted {
    pub plans: Vec<Arc<GrantingPlan>>,
    pub subscriptions: Vec<GrantingSubscription>,
}

/// A plan, and what it grants.
#[derive(Debug)]
pub(super) struct GrantingPlan {
    pub id: PlanId,
    pub slug: Slug,
    pub grant: Grant,
}

/// A subscription that gives access.
#[derive(Debug)]
pub(super) struct GrantingSubscription {
    pub id: SubscriptionId,
    pub plan: Arc<GrantingPlan>,
    pub status: Status,
    pub renews_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
}

// `domain/subscription` says the same of access; a test holds them together. The user is a row of its own, without a
// subscription, so that nobody and nothing are not the same answer: joined with it, the rows would have to be sorted, which
// the index has done.
static GRANTS: Sql = Sql::new(
    "(SELECT subscriptions.id, status, renews_at, ends_at, plan_id, slug, tier, node_quota, features
      FROM subscriptions
      JOIN subscription_plans ON subscription_plans.tenant_id = $1 AND subscription_plans.id = plan_id
      WHERE subscriptions.tenant_id = $1 AND user_id = $2 AND subscriptions.deleted_at IS NULL
        AND status IN ('on_trial', 'active', 'past_due', 'cancelled') AND NOT suspended
        AND (starts_at <= $3 OR starts_at <= subscriptions.updated_at) AND (ends_at IS NULL OR ends_at > $3)
      ORDER BY subscriptions.created_at, subscriptions.id)
     UNION ALL
     SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
     FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL",
);

/// What a user's subscriptions give at `now`; `None` if there is no such user.
pub(super) async fn granted(
    engine: &Engine,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<Option<Granted>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &user.uuid(), &now];
    let rows = engine.read_all(&GRANTS, &params).await?;
    let mut granted = Granted::default();
    let mut known = false;
    for row in &rows {
        known |= !granted.add(row)?;
    }
    Ok(known.then_some(granted))
}

impl Granted {
    /// Adds the subscription of a row, if it has one.
    fn add(&mut self, row: &Row) -> Result<bool, Error> {
        let row = Reader::of(row);
        let Some(id) = row.get::<Option<Uuid>>("id")? else {
            return Ok(false);
        };
        let subscription = GrantingSubscription {
            id: SubscriptionId::new(id),
            status: row.text("status")?,
            renews_at: row.get("renews_at")?,
            ends_at: row.get("ends_at")?,
            plan: self.plan(&row)?,
        };
        self.subscriptions.push(subscription);
        Ok(true)
    }

    /// The plan of a row. Whoever has many subscriptions has them to few plans.
    fn plan(&mut self, row: &Reader<'_>) -> Result<Arc<GrantingPlan>, Error> {
        let id = PlanId::new(row.get("plan_id")?);
        if let Some(known) = self.plans.iter().find(|plan| plan.id == id) {
            return Ok(known.clone());
        }
        let plan = Arc::new(GrantingPlan {
            id,
            slug: row.text("slug")?,
            grant: Grant {
                tier: row.integer("tier")?,
                node_quota: row.integer("node_quota")?,
                features: row.optional_text("features")?,
            },
        });
        self.plans.push(plan.clone());
        Ok(plan)
    }
}
