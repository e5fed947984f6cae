//! Looks up the user that an operator names: by email address, by id, or by the id of the user's
//! session, subscription or payment.

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use perennial_domain::{
    AccountEmail, Email, Id, Payment, PaymentId, Session, SessionId, Subscription, SubscriptionId,
    SubscriptionStatus, User, UserId,
};
use uuid::Uuid;

use super::{bootstrap, explain::WithDeletedAt, tenant::TenantArg};
use crate::{
    auth::{Tenant, sessions},
    db::{CellDatabase, Databases, Error, PooledConnection},
    subscription_payments, subscriptions, users,
};

/// An email address or id that identifies a user.
#[derive(Debug, Clone)]
pub enum UserIdent {
    Email(Email),
    User(UserId),
    Session(SessionId),
    Subscription(SubscriptionId),
    Payment(PaymentId),
}

impl std::str::FromStr for UserIdent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once('_') {
            _ if text.contains('@') => text.parse().map(|AccountEmail(email)| Self::Email(email)),
            Some(("usr", _)) => text.parse().map(Self::User),
            Some(("ses", _)) => text.parse().map(Self::Session),
            Some(("sub", _)) => text.parse().map(Self::Subscription),
            Some(("pay", _)) => text.parse().map(Self::Payment),
            _ => {
                let bare = text.parse().map(Self::User);
                return bare.map_err(|_| INVALID_IDENT.to_owned());
            }
        };
        parsed.map_err(|invalid| invalid.message)
    }
}

/// Wrapped for 80 columns by hand: clap does not wrap error messages.
const INVALID_IDENT: &str = "neither an email address nor an id

  expected: ada@example.com, or the id of a user (usr_…), a session (ses_…),
  a subscription (sub_…) or a payment (pay_…)";

impl UserIdent {
    pub async fn find(
        &self,
        database: &CellDatabase,
        tenant: &Tenant,
    ) -> Result<Option<User>, Error> {
        let id = match self {
            Self::Email(email) => {
                return users::table::find_by_email(database, tenant.id, email).await;
            }
            Self::Session(id) => {
                let session = sessions::table::find(database, tenant, *id).await?;
                return Ok(session.map(|session| session.user));
            }
            Self::User(id) => Some(*id),
            Self::Subscription(id) => {
                subscriptions::table::find_owner(database, tenant.id, *id).await?
            }
            Self::Payment(id) => {
                subscription_payments::table::find_payer(database, tenant.id, *id).await?
            }
        };
        match id {
            Some(id) => users::table::find(database, tenant.id, id).await,
            None => Ok(None),
        }
    }
}

/// The argument `USER` and the flag `--tenant`.
#[derive(Debug, Args)]
pub struct UserSelector {
    /// An email address, or the id of a user, session, subscription or payment
    user: UserIdent,
    #[command(flatten)]
    tenant: TenantArg,
}

/// A user with everything that belongs to it.
pub struct UserRecord {
    /// A connection to the user's cell.
    pub connection: PooledConnection,
    pub tenant: Tenant,
    pub user: User,
    /// The session by which the user was named, if any.
    pub session: Option<SessionId>,
    /// Pairs of issuer and subject.
    pub identities: Vec<(String, String)>,
    /// Active sessions only.
    pub sessions: Vec<Session>,
    /// Oldest first.
    pub subscriptions: Vec<WithDeletedAt<Subscription>>,
    /// Oldest first.
    pub payments: Vec<WithDeletedAt<Payment>>,
    /// Billing time.
    pub now: Timestamp,
}

impl UserSelector {
    pub(super) fn new(user: UserIdent, tenant: TenantArg) -> Self {
        Self { user, tenant }
    }

    pub(super) async fn find(&self, db: &Databases) -> anyhow::Result<UserRecord> {
        db.wait_until_connected().await;
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let user = self.user.find(database, &tenant).await?;
        let user = user.context(
            "there is no such user in this tenant; check the address or id, and --tenant",
        )?;
        let session = match self.user {
            UserIdent::Session(id) => Some(id),
            _ => None,
        };
        let connection = database.connection().await?;
        let clocks = bootstrap::clocks(db).await?;
        let (real, now) = (clocks.real.now(), clocks.billing.now());
        Ok(UserRecord {
            identities: users::table::identities(&connection, tenant.id, user.id).await?,
            sessions: sessions::user_sessions_sql::list_active(&connection, &tenant, user.id, real)
                .await?,
            subscriptions: subscriptions::table::list_by_user_with_deleted(
                &connection,
                subscriptions::scope(&tenant),
                user.id,
            )
            .await?,
            payments: subscription_payments::table::list_by_user_with_deleted(
                &connection,
                tenant.id,
                user.id,
            )
            .await?,
            now,
            connection,
            tenant,
            user,
            session,
        })
    }
}

impl UserRecord {
    /// Counts the subscriptions that are neither expired nor deleted.
    pub fn count_live_subscriptions(&self) -> usize {
        let is_live = |(subscription, deleted_at): &&WithDeletedAt<Subscription>| {
            deleted_at.is_none() && subscription.status_at(self.now) != SubscriptionStatus::Expired
        };
        self.subscriptions.iter().filter(is_live).count()
    }

    /// Returns the ids whose events are the user's history: the user, its subscriptions and its
    /// payments.
    pub fn event_subjects(&self) -> Vec<Uuid> {
        let mut subjects = vec![self.user.id.uuid()];
        subjects.extend(
            self.subscriptions
                .iter()
                .map(|(subscription, _)| subscription.id.uuid()),
        );
        subjects.extend(self.payments.iter().map(|(payment, _)| payment.id.uuid()));
        subjects
    }
}
