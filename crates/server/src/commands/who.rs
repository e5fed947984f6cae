//! Which user an operator means: by e-mail address, by its own id, or by the id of a session.

use anyhow::Context;
use clap::Args;
use perennial_domain::{Email, Invalid, Session, SessionId, TenantId, User, UserId};
use serde_json::{Value, json};

use super::{prepare, tenant::Which};
use crate::{
    callers::{Tenant, sessions},
    db::{Connection, Db},
    events, users,
};

/// A user, as an operator names it.
#[derive(Debug, Clone)]
pub enum Named {
    Email(Email),
    User(UserId),
    Session(SessionId),
}

impl std::str::FromStr for Named {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.contains('@') {
            text.parse().map(Self::Email)
        } else if text.starts_with("ses_") {
            text.parse().map(Self::Session)
        } else {
            text.parse().map(Self::User)
        }
    }
}

/// Which user is meant.
#[derive(Debug, Args)]
pub struct Who {
    /// An e-mail address, a user's id, or the id of a session
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
        };
        let user = user.context("there is no such user in this tenant")?;
        let connection = engine.connection().await?;
        let now = prepare::operator().now;
        Ok(Found {
            identities: users::table::identities(&connection, tenant.id, user.id).await?,
            sessions: sessions::table::list(&connection, tenant.id, user.id, now).await?,
            connection,
            tenant,
            user,
            session,
        })
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
    })
}

impl Found {
    /// Everything but what happened.
    pub fn json(&self) -> Value {
        let identities = self.identities.iter();
        let identities =
            identities.map(|(issuer, subject)| json!({"issuer": issuer, "subject": subject}));
        json!({
            "user": {
                "id": self.user.id.to_string(),
                "email": self.user.email.as_str(),
                "created_at": self.user.created_at.to_string(),
            },
            "identities": identities.collect::<Vec<_>>(),
            "sessions": self.sessions.iter().map(session_json).collect::<Vec<_>>(),
        })
    }

    /// What happened to the user, oldest first.
    pub async fn events(&self) -> anyhow::Result<Vec<Value>> {
        let tenant: TenantId = self.tenant.id;
        let all = events::of_subject(&self.connection, tenant, self.user.id).await?;
        let shown = |event: &events::Recorded| json!({"at": event.at.to_string(), "kind": event.kind, "data": event.data});
        Ok(all.iter().map(shown).collect())
    }
}
