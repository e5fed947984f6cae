//! `perennial user`: for whoever answers the user, or the law.

use anyhow::bail;
use clap::Subcommand;
use jiff::Timestamp;
use perennial_domain::PaymentStatus;

use super::{
    prepare, subscription, timeline,
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
                    "{} {}, since {:.0}",
                    user.id,
                    user.email.as_str(),
                    user.created_at
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
    let mut table = super::table([
        "SUBSCRIPTION",
        "STATUS",
        "ACCESS",
        "RENEWS",
        "ENDS",
        "PAYMENTS",
    ]);
    for (one, shown) in found.subscriptions.iter().zip(found.shown_subscriptions()) {
        let payments = found.payments.iter();
        let completed = payments.filter(|payment| {
            payment.subscription == one.id && payment.status == PaymentStatus::Completed
        });
        let [status, access] = shown.summary();
        let date = |instant: Option<Timestamp>| {
            instant.map_or_else(|| "-".to_owned(), |instant| format!("{instant:.0}"))
        };
        table.add_row([
            one.id.to_string(),
            status,
            access,
            date(one.renews_at),
            date(one.ends_at),
            completed.count().to_string(),
        ]);
    }
    if found.subscriptions.is_empty() {
        println!("no subscription");
        return;
    }
    println!("{table}");
    for one in &found.subscriptions {
        println!("{}: {}", one.id, subscription::why(one, found.now));
    }
}
