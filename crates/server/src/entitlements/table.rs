//! SQL that reads a user's subscriptions with access and their plans.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{
    Grant, Id, PlanId, Slug, SubscriptionId, SubscriptionStatus, TenantId, UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{CellDatabase, Error, RowReader, Sql};

/// The subscriptions of a user that give access, and their plans.
#[derive(Debug, Default)]
pub(super) struct UserAccess {
    /// Without duplicates.
    pub plans: Vec<Arc<GrantingPlan>>,
    /// Oldest first.
    pub subscriptions: Vec<GrantingSubscription>,
}

#[derive(Debug)]
pub(super) struct GrantingPlan {
    pub id: PlanId,
    pub slug: Slug,
    pub grant: Grant,
}

#[derive(Debug)]
pub(super) struct GrantingSubscription {
    pub id: SubscriptionId,
    pub plan: Arc<GrantingPlan>,
    pub status: SubscriptionStatus,
    pub renews_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
}

// The condition for access must match `Subscription::has_access`, which a test verifies. `updated_at` covers
// changes by an instance whose clock is ahead. The result must distinguish a user without access from a user
// who does not exist, so an existing user adds a row of NULLs. Joining the user instead would require a
// sort, because the rows would no longer come in index order.
static FIND: Sql = Sql::new(
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

/// Returns the access of a user at `now`, or `None` if the user does not exist.
pub(super) async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<Option<UserAccess>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &user.uuid(), &now];
    let rows = database.read_all(&FIND, &params).await?;
    let mut access = UserAccess::default();
    let mut user_exists = false;
    for row in &rows {
        user_exists |= !access.add(row)?;
    }
    Ok(user_exists.then_some(access))
}

impl UserAccess {
    /// Adds the subscription of a row. Returns false if the row is the user's row of NULLs.
    fn add(&mut self, row: &Row) -> Result<bool, Error> {
        let row = RowReader::new(row);
        let Some(id) = row.get::<Option<Uuid>>("id")? else {
            return Ok(false);
        };
        let subscription = GrantingSubscription {
            id: SubscriptionId::new(id),
            status: row.parse("status")?,
            renews_at: row.get("renews_at")?,
            ends_at: row.get("ends_at")?,
            plan: self.plan(&row)?,
        };
        self.subscriptions.push(subscription);
        Ok(true)
    }

    /// Returns the plan of a row, parsed once per plan.
    fn plan(&mut self, row: &RowReader<'_>) -> Result<Arc<GrantingPlan>, Error> {
        let id = PlanId::new(row.get("plan_id")?);
        if let Some(plan) = self.plans.iter().find(|plan| plan.id == id) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(GrantingPlan {
            id,
            slug: row.parse("slug")?,
            grant: Grant {
                tier: row.integer("tier")?,
                node_quota: row.integer("node_quota")?,
                features: row.parse_optional("features")?,
            },
        });
        self.plans.push(plan.clone());
        Ok(plan)
    }
}
