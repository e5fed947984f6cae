//! `perennial session`: lists and revokes sessions.

use clap::Subcommand;
use perennial_domain::Session;

use super::{bootstrap, explain::date, text_table::Listing, user_selector::UserSelector};
use crate::user_export::session_json;

pub(super) mod revoke;

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
    /// Revoke one session, or all sessions of a user, issuer, tenant or installation
    #[command(after_help = "Examples:
  perennial session revoke ses_0192f0c1a2b37c4d8e5f60718293a4b5  one session
  perennial session revoke --user ada@example.com                all of a user
  perennial session revoke --issuer https://id.example.com       only counts
  perennial session revoke --issuer https://id.example.com --yes
  perennial session revoke --tenant acme --yes
  perennial session revoke --all --yes

With --tenant alone, revokes all sessions of the tenant.")]
    Revoke(revoke::SessionRevokeArgs),
}

impl SessionCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        match self {
            Self::List { user, json } => {
                let record = user.find(&db).await?;
                print(&record.sessions, json);
                Ok(())
            }
            Self::Revoke(args) => args.run(&db).await,
        }
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
        list.add(row, &session_json(session));
    }
    list.print_or("no active session");
}
