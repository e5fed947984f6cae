//! A user with everything that belongs to it.

use jiff::Timestamp;
use perennial_domain::{Id, Payment, Session, Subscription, SubscriptionStatus, User};
use uuid::Uuid;

use super::{WithDeletedAt, provider_state::ProviderReport};
use crate::{
    auth::{Tenant, sessions},
    clock::Clocks,
    db::{Error, PooledConnection},
    subscription_payments, subscriptions,
    users::identities_sql::{self, LinkedIdentity},
};

/// A user with everything that belongs to it.
pub struct UserRecord {
    /// A connection to the user's cell.
    pub connection: PooledConnection,
    pub tenant: Tenant,
    pub user: User,
    pub identities: Vec<LinkedIdentity>,
    /// Active sessions only.
    pub sessions: Vec<Session>,
    /// Oldest first.
    pub subscriptions: Vec<WithDeletedAt<Subscription>>,
    /// Oldest first.
    pub payments: Vec<WithDeletedAt<Payment>>,
    pub provider: ProviderReport,
    /// Billing time.
    pub now: Timestamp,
}

impl UserRecord {
    /// Reads what belongs to a user, with a connection to the cell of the user's tenant.
    pub async fn load(
        mut connection: PooledConnection,
        tenant: Tenant,
        user: User,
        clocks: Clocks,
    ) -> Result<Self, Error> {
        let (real, now) = (clocks.real.now(), clocks.billing.now());
        let subscriptions = subscriptions::table::list_by_user_with_deleted(
            &connection,
            subscriptions::scope(&tenant),
            user.id,
        )
        .await?;
        let payments = subscription_payments::table::list_by_user_with_deleted(
            &connection,
            tenant.id,
            user.id,
        )
        .await?;
        let provider =
            ProviderReport::load(&mut connection, tenant.id, &subscriptions, &payments, now)
                .await?;
        Ok(Self {
            identities: identities_sql::identities(&connection, tenant.id, user.id).await?,
            sessions: sessions::user_sessions_sql::list_active(&connection, &tenant, user.id, real)
                .await?,
            subscriptions,
            payments,
            provider,
            now,
            connection,
            tenant,
            user,
        })
    }

    /// Counts the subscriptions that are neither expired nor deleted.
    pub fn count_live_subscriptions(&self) -> usize {
        let is_live = |(subscription, deleted_at): &&WithDeletedAt<Subscription>| {
            deleted_at.is_none() && subscription.status_at(self.now) != SubscriptionStatus::Expired
        };
        self.subscriptions.iter().filter(is_live).count()
    }

    pub fn subscription_ids(&self) -> Vec<Uuid> {
        let records = self.subscriptions.iter();
        records
            .map(|(subscription, _)| subscription.id.uuid())
            .collect()
    }

    /// Returns the ids whose events are the user's history: the user, its subscriptions and its
    /// payments.
    pub fn event_subjects(&self) -> Vec<Uuid> {
        let mut subjects = vec![self.user.id.uuid()];
        subjects.extend(self.subscription_ids());
        subjects.extend(self.payments.iter().map(|(payment, _)| payment.id.uuid()));
        subjects
    }
}
