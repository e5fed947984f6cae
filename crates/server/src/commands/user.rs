//! `perennial user`: for whoever answers the user, or the law.

use anyhow::bail;
use clap::Subcommand;

use super::{
    prepare, story, timeline,
    who::{Found, Who},
};
use crate::{authentication::erase, events::By};

/// Look up, export and erase users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Show a user: its identities, what it has and paid, and where it is signed in
    #[command(after_help = "Examples:
  perennial user show ada@example.com
  perennial user show sub_0192f0c1a2b37c4d8e5f60718293a4b5 --json")]
    Show {
        #[command(flatten)]
        who: Who,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print all that is known of a user: sessions, subscriptions, payments and what happened to them, as one JSON
    /// object
    Export {
        #[command(flatten)]
        who: Who,
    },
    /// Erase a user: ends its sessions and subscriptions and forgets who it was, for good
    Erase {
        #[command(flatten)]
        who: Who,
        /// Do it; without this, say what would be done
        #[arg(long)]
        yes: bool,
    },
}

impl UserCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = prepare::open().await?;
        match self {
            Self::Show { who, json } => {
                let found = who.find(&db).await?;
                if json {
                    println!("{}", found.json());
                    return Ok(());
                }
                let user = &found.user;
                println!(
                    "{} {}, since {}",
                    user.id,
                    user.email.as_str(),
                    story::date(user.created_at)
                );
                for (issuer, subject) in &found.identities {
                    println!("identity: {subject} at {issuer}");
                }
                if found.identities.is_empty() {
                    println!(
                        "identity: none; made ahead of time, and nobody has signed up with the address yet"
                    );
                }
                print_subscriptions(&found);
                timeline::print(&found.connection, found.tenant.id, &found.subjects()).await?;
                super::session::print(&found.sessions);
            }
            Self::Export { who } => {
                let found = who.find(&db).await?;
                let everything = found.everything().await?;
                println!("{}", serde_json::to_string_pretty(&everything)?);
            }
            Self::Erase { who, yes } => {
                let mut found = who.find(&db).await?;
                let id = found.user.id;
                if !yes {
                    let sessions = found.sessions.len();
                    let live = found
                        .shown_subscriptions()
                        .iter()
                        .filter(|one| !one.is_over())
                        .count();
                    println!(
                        "would erase {id} and end {sessions} sessions and {live} subscriptions; nothing brings it back. Add --yes to do it"
                    );
                    return Ok(());
                }
                let operator = prepare::operator();
                let tx = found.connection.begin().await?;
                let nobody = By::default();
                let erased = erase(
                    &tx,
                    operator.ids,
                    found.tenant.id,
                    id,
                    &nobody,
                    prepare::clocks(&db).await?,
                );
                let Some(ended) = erased.await? else {
                    bail!("{id} was erased by somebody else just now");
                };
                tx.commit().await?;
                println!(
                    "erased {id} and ended {} sessions; instances follow within a second",
                    ended.len()
                );
            }
        }
        Ok(())
    }
}

/// Prints subscriptions for people.
fn print_subscriptions(found: &Found) {
    if found.subscriptions.is_empty() {
        println!("no subscription");
    }
    for one in &found.subscriptions {
        story::print(one, &found.payments, &found.tenant.lifecycle, found.now);
    }
}
