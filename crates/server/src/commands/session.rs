//! `perennial session`: where a user is signed in, and ending that.

use clap::Subcommand;
use perennial_domain::Session;

use super::{
    prepare, so_many,
    story::date,
    table::Table,
    who::{Who, session_json},
};
use crate::{
    callers::sessions::{self, Reason},
    events::By,
};

/// List and end sessions.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List a user's sessions, newest first
    #[command(after_help = "Example:
  perennial session list ada@example.com")]
    List {
        #[command(flatten)]
        who: Who,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// End a session, or all sessions of a user
    #[command(after_help = "Examples:
  perennial session revoke ses_0192f0c1a2b37c4d8e5f60718293a4b5    this one
  perennial session revoke ada@example.com                         all of them")]
    Revoke {
        #[command(flatten)]
        who: Who,
    },
}

impl SessionCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = prepare::open().await?;
        match self {
            Self::List { who, json } => {
                let found = who.find(&db).await?;
                if json {
                    for session in &found.sessions {
                        println!("{}", session_json(session));
                    }
                } else {
                    print(&found.sessions);
                }
            }
            Self::Revoke { who } => {
                let mut found = who.find(&db).await?;
                let operator = prepare::operator();
                let tx = found.connection.begin();
                let (tenant, user) = (found.tenant.id, found.user.id);
                let meant = match found.session {
                    Some(one) => vec![one],
                    None => sessions::table::of_user(&tx, tenant, user, false).await?,
                };
                let why = (Reason::Operator, &By::default());
                let (ids, now) = (operator.ids, operator.now);
                let ended = sessions::end(&tx, ids, tenant, &meant, why, now).await?;
                tx.commit().await?;
                println!(
                    "ended {}; instances follow within a second",
                    so_many(ended.len(), "session")
                );
            }
        }
        Ok(())
    }
}

/// Prints sessions for people.
pub(super) fn print(all: &[Session]) {
    let mut table = Table::new(["SESSION", "ADDRESS", "LAST USED", "EXPIRES", "DEVICE"]);
    for session in all {
        table.add_row([
            session.id.to_string(),
            session.address.to_string(),
            date(session.last_used_at),
            date(session.expires_at),
            session.user_agent.clone().unwrap_or_default(),
        ]);
    }
    if all.is_empty() {
        println!("signed in nowhere");
    } else {
        table.print();
    }
}
