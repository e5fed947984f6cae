//! `perennial user`: for whoever answers the user, or the law.

use anyhow::bail;
use clap::Subcommand;

use super::{
    prepare,
    screen::say,
    so_many,
    story::{self, Story},
    timeline,
    who::{Found, Who},
};
use crate::{authentication::erase, events::By, subscription_plans::table::slugs};

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
    #[command(after_help = "Example:
  perennial user export ada@example.com > ada.json")]
    Export {
        #[command(flatten)]
        who: Who,
    },
    /// Erase a user: ends its sessions and subscriptions and forgets who it was, for good
    #[command(after_help = "Examples:
  perennial user erase ada@example.com          says what would be done
  perennial user erase ada@example.com --yes")]
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
                    println!("{}", found.json()?);
                    return Ok(());
                }
                let user = &found.user;
                let since = story::date(user.created_at);
                say(&format!(
                    "{} {}, since {since}",
                    user.id,
                    user.email.as_str()
                ));
                for (issuer, subject) in &found.identities {
                    say(&format!("identity: {subject} at {issuer}"));
                }
                if found.identities.is_empty() {
                    say("identity: none; nobody has signed up with the address yet");
                }
                print_subscriptions(&found).await?;
                timeline::print(&found.connection, found.tenant.id, &found.subjects()).await?;
                if !found.sessions.is_empty() {
                    println!("signed in:");
                }
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
                    let sessions = so_many(found.sessions.len(), "session");
                    let live = so_many(found.live_subscriptions(), "subscription");
                    say(&format!(
                        "would erase {id} and end {sessions} and {live}; nothing brings it back. Add --yes to do it"
                    ));
                    return Ok(());
                }
                let operator = prepare::operator();
                let tx = found.connection.begin();
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
                let ended = so_many(ended.len(), "session");
                say(&format!(
                    "erased {id} and ended {ended}; instances follow within a second"
                ));
            }
        }
        Ok(())
    }
}

/// Prints subscriptions for people.
async fn print_subscriptions(found: &Found) -> anyhow::Result<()> {
    if found.subscriptions.is_empty() {
        println!("no subscription");
    }
    let story = Story {
        slugs: slugs(&found.connection, found.tenant.id).await?,
        payments: &found.payments,
        lifecycle: &found.tenant.lifecycle,
        now: found.now,
    };
    for one in &found.subscriptions {
        story.print(one);
    }
    Ok(())
}
