//! `perennial session`: lists and revokes sessions.

use clap::Subcommand;
use perennial_domain::Session;

use super::{
    bootstrap, explain::date, pluralize, text_table::Listing, user_export::session_json,
    user_selector::UserSelector,
};
use crate::{
    auth::sessions::{self, RevokeReason},
    events::Actor,
};

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List a user's active sessions, newest first
    #[command(after_help = "Example:
  perennial session list ada@example.com")]
    List {
        #[command(flatten)]
        user: UserSelector,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke one session, or all sessions of a user
    #[command(after_help = "Examples:
  perennial session revoke ses_0192f0c1a2b37c4d8e5f60718293a4b5    one session
  perennial session revoke ada@example.com                         all of them")]
    Revoke {
        #[command(flatten)]
        user: UserSelector,
    },
}

impl SessionCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        match self {
            Self::List { user, json } => {
                let record = user.find(&db).await?;
                print(&record.sessions, json);
            }
            Self::Revoke { user } => {
                let mut record = user.find(&db).await?;
                let context = bootstrap::system_context();
                let tx = record.connection.begin();
                let (tenant, user) = (record.tenant.id, record.user.id);
                let selected = match record.session {
                    Some(session) => vec![session],
                    None => sessions::table::list_ids(&tx, tenant, user, false).await?,
                };
                let cause = (RevokeReason::Operator, &Actor::default());
                let (ids, now) = (context.ids, context.now);
                let revoked = sessions::revoke(&tx, ids, tenant, &selected, cause, now).await?;
                tx.commit().await?;
                println!(
                    "revoked {}; running instances apply it within a second",
                    pluralize(revoked.len(), "session")
                );
            }
        }
        Ok(())
    }
}

pub(super) fn print(sessions: &[Session], json: bool) {
    let header = ["SESSION", "ADDRESS", "LAST USED", "EXPIRES", "DEVICE"];
    let mut list = Listing::new(header, json);
    for session in sessions {
        let row = [
            session.id.to_string(),
            session.address.to_string(),
            date(session.last_used_at),
            date(session.expires_at),
            session.user_agent.clone().unwrap_or_default(),
        ];
        list.add(row, session_json(session));
    }
    list.print_or("no active session");
}
