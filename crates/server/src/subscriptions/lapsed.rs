//! Subscriptions that lapsed in a period. `perennial sandbox clock advance` prints them.

use jiff::Timestamp;
use perennial_domain::{Id, SubscriptionId, SubscriptionStatus, TenantId, Transition};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, PooledConnection, RowReader, Sql};

/// A subscription that became past due, unpaid or expired because time passed, not by a request.
#[derive(Debug)]
pub struct LapsedSubscription {
    /// The subscriber's email address, or external id without one.
    pub email: String,
    pub subscription: SubscriptionId,
    /// The current status.
    pub status: SubscriptionStatus,
    /// Whether the subscription has any payment.
    pub has_payment: bool,
    pub renews_at: Option<Timestamp>,
}

impl LapsedSubscription {
    /// Returns a human-readable reason for the current status.
    pub fn reason(&self) -> String {
        match (self.status, self.renews_at) {
            (SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid, _) if !self.has_payment => {
                "no payment recorded".to_owned()
            }
            (SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid, Some(renewal)) => {
                let date = renewal.strftime("%Y-%m-%d");
                format!("the period from {date} is unpaid")
            }
            (SubscriptionStatus::Expired, _) => "expired".to_owned(),
            _ => "lapsed, then recovered".to_owned(),
        }
    }
}

// Newest first: a developer who advances the sandbox clock most likely tests the subscription that
// was created last.
static LAPSED: Sql = Sql::new(
    "WITH lapsed AS MATERIALIZED (
        SELECT DISTINCT tenant_id, subject_id FROM events
        WHERE tenant_id = ANY ($1) AND at > $2 AND at <= $3 AND kind = ANY ($4))
     SELECT email, subscription.id, subscription.status, subscription.renews_at, (
        SELECT id FROM subscription_payments
        WHERE subscription_payments.tenant_id = lapsed.tenant_id AND subscription_id = subscription.id LIMIT 1) IS NOT NULL AS has_payment
     FROM lapsed,
        LATERAL (SELECT id, user_id, status, renews_at, created_at FROM subscriptions
            WHERE subscriptions.tenant_id = lapsed.tenant_id AND subscriptions.id = subject_id AND deleted_at IS NULL
            LIMIT 1) AS subscription,
        LATERAL (SELECT coalesce(nullif(email, ''), external_id, 'a user without an email address') AS email FROM users
            WHERE users.tenant_id = lapsed.tenant_id AND users.id = subscription.user_id LIMIT 1) AS subscriber
     ORDER BY subscription.created_at DESC LIMIT $5",
);

/// Returns up to `limit` subscriptions that lapsed after `from` and not after `to`, newest first.
pub async fn list_lapsed(
    connection: &PooledConnection,
    tenants: &[TenantId],
    (from, to): (Timestamp, Timestamp),
    limit: i64,
) -> Result<Vec<LapsedSubscription>, Error> {
    let tenants: Vec<Uuid> = tenants.iter().map(|tenant| tenant.uuid()).collect();
    let kinds = [Transition::PastDue, Transition::Unpaid, Transition::Expired]
        .map(|transition| transition.event_kind().as_str());
    let params: [&(dyn ToSql + Sync); 5] = [&tenants, &from, &to, &kinds.as_slice(), &limit];
    let rows = connection.query(&LAPSED, &params).await?;
    rows.iter()
        .map(|row| {
            Ok(LapsedSubscription {
                email: row.try_get("email")?,
                subscription: SubscriptionId::new(row.try_get("id")?),
                status: RowReader::new(row).parse("status")?,
                has_payment: row.try_get("has_payment")?,
                renews_at: row.try_get("renews_at")?,
            })
        })
        .collect()
}
