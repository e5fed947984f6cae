//! Which user an operator means: by e-mail address, by its own id, or by the id of something that is the user's.

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use perennial_domain::{
    Email, Id, Payment, PaymentId, Session, SessionId, Status, Subscription, SubscriptionId,
    TenantId, User, UserId,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    prepare,
    story::{self, Kept},
    tenant::Which,
};
use crate::{
    callers::{Tenant, sessions},
    db::{Connection, Db, Engine},
    events,
    subscription_payments::{self, PaymentView},
    subscriptions::{self, SubscriptionView},
    users,
};

/// A user, as an operator names it.
#[derive(Debug, Clone)]
pub enum Named {
    Email(Email),
    User(UserId),
    Session(SessionId),
    Subscription(SubscriptionId),
    Payment(PaymentId),
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = match text.split_once('_') {
            _ if text.contains('@') => text.parse().map(Self::Email),
            Some(("usr", _)) => text.parse().map(Self::User),
            Some(("ses", _)) => text.parse().map(Self::Session),
            Some(("sub", _)) => text.parse().map(Self::Subscription),
            Some(("pay", _)) => text.parse().map(Self::Payment),
            _ => {
                let bare = text.parse().map(Self::User);
                return bare.map_err(|_| NEITHER.to_owned());
            }
        };
        read.map_err(|wrong| wrong.message)
    }
}

/// Broken for 80 columns by hand: nobody breaks what is said of a wrong argument.
const NEITHER: &str = "neither an e-mail address nor an id

  accepted: ada@example.com, or the id of a user (usr_…), a session (ses_…),
  a subscription (sub_…) or a payment (pay_…)";

/// Which user is meant.
#[derive(Debug, Args)]
pub struct Who {
    /// An e-mail address, or the id of a user, a session, a subscription or a payment
    who: Named,
    #[command(flatten)]
    tenant: Which,
}

/// A user that was found, and what is known of it.
pub struct Found {
    /// Where its data is.
    pub connection: Connection,
    /// Whose it is.
    pub tenant: Tenant,
    /// The user.
    pub user: User,
    /// By which session it was named, if by one.
    pub session: Option<SessionId>,
    /// As issuer and subject.
    pub identities: Vec<(String, String)>,
    /// Those that live.
    pub sessions: Vec<Session>,
    /// What it has and had, oldest first.
    pub subscriptions: Vec<Kept<Subscription>>,
    /// What it paid, oldest first.
    pub payments: Vec<Kept<Payment>>,
    /// What time it is for subscriptions.
    pub now: Timestamp,
}

impl Who {
    /// Looks it up.
    pub(super) async fn find(&self, db: &Db) -> anyhow::Result<Found> {
        db.opened().await;
        let tenant = self.tenant.tenant(&db.home()?.connection().await?).await?;
        let engine = db.cell(&tenant.cell)?;
        let (user, session) = match &self.who {
            Named::Email(email) => (
                users::table::find_by_email(engine, tenant.id, email).await?,
                None,
            ),
            Named::User(id) => (users::table::find(engine, tenant.id, *id).await?, None),
            Named::Session(id) => {
                let found = sessions::table::find(engine, tenant.id, *id).await?;
                (found.map(|found| found.user), Some(*id))
            }
            Named::Subscription(id) => {
                let owner = subscriptions::table::owner(engine, tenant.id, *id).await?;
                (user_of(engine, tenant.id, owner).await?, None)
            }
            Named::Payment(id) => {
                let payer = subscription_payments::table::payer(engine, tenant.id, *id).await?;
                (user_of(engine, tenant.id, payer).await?, None)
            }
        };
        let user = user.context(
            "there is no such user in this tenant; is it another address, or another tenant (--tenant)?",
        )?;
        let connection = engine.connection().await?;
        let clocks = prepare::clocks(db).await?;
        let (real, now) = (clocks.real.now(), clocks.billing.now());
        Ok(Found {
            identities: users::table::identities(&connection, tenant.id, user.id).await?,
            sessions: sessions::table::list(&connection, tenant.id, user.id, real).await?,
            subscriptions: subscriptions::table::of_user(&connection, tenant.id, user.id).await?,
            payments: subscription_payments::table::of_user(&connection, tenant.id, user.id)
                .await?,
            now,
            connection,
            tenant,
            user,
            session,
        })
    }
}

async fn user_of(
    engine: &Engine,
    tenant: TenantId,
    user: Option<UserId>,
) -> anyhow::Result<Option<User>> {
    match user {
        Some(user) => Ok(users::table::find(engine, tenant, user).await?),
        None => Ok(None),
    }
}

/// A session as it is shown.
pub fn session_json(session: &Session) -> Value {
    json!({
        "id": session.id.to_string(),
        "client_id": session.client.to_string(),
        "issuer": session.issuer,
        "ip": session.address.to_string(),
        "user_agent": session.user_agent,
        "created_at": session.created_at.to_string(),
        "last_used_at": session.last_used_at.to_string(),
        "expires_at": session.expires_at.to_string(),
        "ended_at": session.ended_at.map(|instant| instant.to_string()),
    })
}

impl Found {
    /// Everything but what happened.
    pub fn json(&self) -> serde_json::Result<Value> {
        let identities = self.identities.iter();
        let identities =
            identities.map(|(issuer, subject)| json!({"issuer": issuer, "subject": subject}));
        let subscriptions = self
            .subscriptions
            .iter()
            .map(|(one, deleted)| story::json(SubscriptionView::at(one, self.now), *deleted));
        let payments = self
            .payments
            .iter()
            .map(|(one, deleted)| story::json(PaymentView::from(one), *deleted));
        Ok(json!({
            "user": {
                "id": self.user.id.to_string(),
                "email": self.user.email.as_str(),
                "created_at": self.user.created_at.to_string(),
            },
            "identities": identities.collect::<Vec<_>>(),
            "sessions": self.sessions.iter().map(session_json).collect::<Vec<_>>(),
            "subscriptions": subscriptions.collect::<Result<Vec<_>, _>>()?,
            "payments": payments.collect::<Result<Vec<_>, _>>()?,
        }))
    }

    /// How many of its subscriptions are neither over nor deleted.
    pub fn live_subscriptions(&self) -> usize {
        let live = |(one, deleted): &&Kept<Subscription>| {
            deleted.is_none() && one.status_at(self.now) != Status::Expired
        };
        self.subscriptions.iter().filter(live).count()
    }

    /// The user and what is the user's, but for sessions: what has a history.
    pub fn subjects(&self) -> Vec<Uuid> {
        let mut all = vec![self.user.id.uuid()];
        all.extend(self.subscriptions.iter().map(|(one, _)| one.id.uuid()));
        all.extend(self.payments.iter().map(|(one, _)| one.id.uuid()));
        all
    }

    /// The same with everything that is kept: also sessions that have ended, and what happened to the user and to all
    /// that is the user's, oldest first.
    pub async fn everything(&self) -> anyhow::Result<Value> {
        let (connection, tenant) = (&self.connection, self.tenant.id);
        let all_sessions = sessions::table::list_all(connection, tenant, self.user.id).await?;
        let mut subjects = self.subjects();
        subjects.extend(all_sessions.iter().map(|session| session.id.uuid()));
        let happened = events::of_subjects(connection, tenant, &subjects).await?;
        let shown = |event: &events::Recorded| json!({"at": event.at.to_string(), "kind": event.kind, "data": event.data});
        let mut all = self.json()?;
        if let Some(object) = all.as_object_mut() {
            let sessions: Vec<Value> = all_sessions.iter().map(session_json).collect();
            object.insert("sessions".to_owned(), sessions.into());
            let events: Vec<Value> = happened.iter().map(shown).collect();
            object.insert("events".to_owned(), events.into());
        }
        Ok(all)
    }
}
