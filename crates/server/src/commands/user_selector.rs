//! Looks up the user that an operator names: by email address, by id, by the id of the user's session,
//! subscription or payment, or by an id of the identity provider or the payment provider.

use anyhow::{Context, bail};
use clap::Args;
use perennial_domain::{
    Email, Id, PaymentId, SessionId, SubscriptionId, TenantId, User, UserId, ValidationError,
};

use super::{bootstrap, tenant::TenantArg};
use crate::{
    auth::{Tenant, sessions},
    db::{CellDatabase, Databases, Error},
    subscription_payments, subscriptions,
    user_export::UserRecord,
    users,
};

/// Text that identifies a user.
#[derive(Debug, Clone)]
pub struct UserIdent {
    text: String,
    /// What the text is in this service. A provider's id can have the same form: Stripe's ids of
    /// subscriptions start with `sub_`, and subjects of Keycloak are UUIDs.
    own: Result<OwnIdent, ValidationError>,
}

/// An email address or an id of this service.
#[derive(Debug, Clone)]
enum OwnIdent {
    Email(Email),
    User(UserId),
    Session(SessionId),
    Subscription(SubscriptionId),
    Payment(PaymentId),
}

impl std::str::FromStr for UserIdent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let own = match text.split_once('_') {
            _ if text.contains('@') => text.parse().map(OwnIdent::Email),
            Some(("ses", _)) => text.parse().map(OwnIdent::Session),
            Some(("sub", _)) => text.parse().map(OwnIdent::Subscription),
            Some(("pay", _)) => text.parse().map(OwnIdent::Payment),
            _ => text.parse().map(OwnIdent::User),
        };
        let text = text.to_owned();
        Ok(Self { text, own })
    }
}

impl UserIdent {
    async fn find(&self, database: &CellDatabase, tenant: &Tenant) -> anyhow::Result<Option<User>> {
        let own = match &self.own {
            Ok(own) => own.find(database, tenant).await?,
            Err(_) => None,
        };
        match own {
            Some(user) => Ok(Some(user)),
            None => self.find_by_provider_id(database, tenant.id).await,
        }
    }

    /// Returns the user, or an error that lists what the text can be.
    pub async fn find_existing(
        &self,
        database: &CellDatabase,
        tenant: &Tenant,
    ) -> anyhow::Result<User> {
        let user = self.find(database, tenant).await?;
        user.with_context(|| self.not_found())
    }

    /// Explains that no user was found.
    fn not_found(&self) -> String {
        let has_own_prefix =
            ["usr_", "ses_", "sub_", "pay_"].map(|prefix| self.text.starts_with(prefix));
        let mistake = match &self.own {
            Err(invalid) if has_own_prefix.contains(&true) => format!(" ({})", invalid.message),
            _ => String::new(),
        };
        format!(
            "there is no such user in this tenant: {}{mistake}; expected an email address, the id of a user (usr_…), a \
             session (ses_…), a subscription (sub_…) or a payment (pay_…), the subject at an identity provider, or an \
             external user, subscription or payment id; check --tenant too",
            self.text
        )
    }

    /// Looks up the text as an external user id, an external subscription id, an external payment id, and the
    /// subject of an identity.
    async fn find_by_provider_id(
        &self,
        database: &CellDatabase,
        tenant: TenantId,
    ) -> anyhow::Result<Option<User>> {
        let text = &self.text;
        let mut ids = users::identities_sql::find_by_subject(database, tenant, text).await?;
        if let Ok(external_id) = text.parse() {
            let found =
                users::table::find_ids_by_external_id(database, tenant, &[external_id]).await?;
            ids.extend(found);
        }
        let subscription =
            subscriptions::table::find_by_external_id(database, tenant, text).await?;
        if let Some(id) = subscription {
            ids.extend(subscriptions::table::find_owner(database, tenant, id).await?);
        }
        let payment =
            subscription_payments::table::find_by_external_id(database, tenant, text).await?;
        if let Some(id) = payment {
            ids.extend(subscription_payments::table::find_payer(database, tenant, id).await?);
        }
        ids.sort_unstable_by_key(|id| id.uuid());
        ids.dedup();
        match ids.as_slice() {
            [] => Ok(None),
            [id] => Ok(users::table::find(database, tenant, *id).await?),
            several => {
                let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
                bail!(
                    "{text} is an id of several users; name one of them:\n  {}",
                    ids.join("\n  ")
                )
            }
        }
    }
}

impl OwnIdent {
    async fn find(&self, database: &CellDatabase, tenant: &Tenant) -> Result<Option<User>, Error> {
        let id = match self {
            Self::Email(email) => {
                return users::table::find_by_email(database, tenant.id, email).await;
            }
            Self::Session(id) => {
                let session = sessions::table::find(database, tenant, *id).await?;
                session.map(|session| session.user.id)
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
    /// An email address; the id of a user, session, subscription or payment; the subject at an
    /// identity provider; or an external user, subscription or payment id
    user: UserIdent,
    #[command(flatten)]
    tenant: TenantArg,
}

impl UserSelector {
    pub(super) fn new(user: UserIdent, tenant: TenantArg) -> Self {
        Self { user, tenant }
    }

    /// Returns the session by which the user is named, if any.
    pub(super) fn session(&self) -> Option<SessionId> {
        match self.user.own {
            Ok(OwnIdent::Session(id)) => Some(id),
            _ => None,
        }
    }

    pub(super) async fn find(&self, db: &Databases) -> anyhow::Result<UserRecord> {
        db.wait_until_connected().await;
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let user = self.user.find_existing(database, &tenant).await?;
        let connection = database.connection().await?;
        let clocks = bootstrap::clocks(db).await?;
        Ok(UserRecord::load(connection, tenant, user, clocks).await?)
    }
}
