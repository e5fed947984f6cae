//! `perennial user`: shows, exports and erases users, for support and data protection requests.

use anyhow::bail;
use clap::Subcommand;
use perennial_domain::Email;

use super::{
    bootstrap, event_lines,
    explain::{self, SubscriptionReport},
    pluralize, session,
    terminal::print_wrapped,
    user_selector::UserSelector,
};
use crate::{
    authentication::erase_user, db::Databases, subscription_plans::table::slugs,
    timeline::load_histories, user_export::UserRecord, users::identities_sql::LinkedIdentity,
};

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Show a user's identities, subscriptions, payments, sessions and the latest events, with who
    /// recorded each, and how the records differ from the payment provider's
    #[command(after_help = "Examples:
  perennial user show ada@example.com
  perennial user show sub_0192f0c1a2b37c4d8e5f60718293a4b5 --json
  perennial user show customer-1042                 the id in your system
  perennial user show pi_3MtwBwLkdIwHu7ix28a3tqPa   the provider's payment id")]
    Show {
        #[command(flatten)]
        user: UserSelector,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print everything stored about a user, with all sessions and events, as one JSON object
    #[command(after_help = "Example:
  perennial user export ada@example.com > ada.json")]
    Export {
        #[command(flatten)]
        user: UserSelector,
    },
    /// Erase a user's personal data and end its sessions and subscriptions; cannot be undone
    #[command(after_help = "Examples:
  perennial user erase ada@example.com          shows what would be done
  perennial user erase ada@example.com --yes")]
    Erase {
        #[command(flatten)]
        user: UserSelector,
        /// Erase the user; without this flag, only show what would be done
        #[arg(long)]
        yes: bool,
    },
}

impl UserCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        match self {
            Self::Show { user, json } => {
                let record = user.find(&db).await?;
                if json {
                    let summary = record.summary_with_events(&db).await?;
                    println!("{}", serde_json::to_string(&summary)?);
                } else {
                    print(&db, &record).await?;
                }
            }
            Self::Export { user } => {
                let export = user.find(&db).await?.full_export().await?;
                println!("{}", serde_json::to_string_pretty(&export)?);
            }
            Self::Erase { user, yes } => {
                let mut record = user.find(&db).await?;
                let id = record.user.id;
                if !yes {
                    let sessions = pluralize(record.sessions.len(), "session");
                    let subscriptions =
                        pluralize(record.count_live_subscriptions(), "subscription");
                    print_wrapped(&format!(
                        "would erase {id} and end {sessions} and {subscriptions}; this cannot be undone. Add --yes to do it"
                    ));
                    return Ok(());
                }
                let context = bootstrap::system_context();
                let clocks = bootstrap::clocks(&db).await?;
                let tx = record.connection.begin();
                let (tenant, actor) = (&record.tenant, context.actor());
                let erased = erase_user(&tx, context.ids, tenant, id, &actor, clocks).await?;
                let Some(revoked) = erased else {
                    bail!("{id} has already been erased");
                };
                tx.commit().await?;
                let sessions = pluralize(revoked.count, "session");
                print_wrapped(&format!(
                    "erased {id} and ended {sessions}; running instances apply it within a second"
                ));
            }
        }
        Ok(())
    }
}

async fn print(db: &Databases, record: &UserRecord) -> anyhow::Result<()> {
    let user = &record.user;
    let created = explain::date(user.created_at);
    let email = user
        .email
        .as_ref()
        .map_or("no email address", Email::as_str);
    println!("{}  {email}", user.id);
    if let Some(external_id) = &user.external_id {
        println!("external id: {external_id}");
    }
    explain::print_metadata("", &user.metadata);
    println!("created: {created}");
    for LinkedIdentity {
        issuer, subject, ..
    } in &record.identities
    {
        print_wrapped(&format!("identity: {subject} at {issuer}"));
    }
    if record.identities.is_empty() {
        println!("identity: none; the user has not signed up yet");
    }
    if record.subscriptions.is_empty() {
        println!("no subscription");
    }
    let report = SubscriptionReport {
        slugs: slugs(&record.connection, record.tenant.id).await?,
        payments: &record.payments,
        histories: load_histories(
            &record.connection,
            record.tenant.id,
            &record.subscription_ids(),
        )
        .await?,
        provider: &record.provider,
        now: record.now,
    };
    for subscription in &record.subscriptions {
        report.print(subscription);
    }
    event_lines::print(
        db,
        &record.connection,
        record.tenant.id,
        &record.event_subjects(),
    )
    .await?;
    if !record.sessions.is_empty() {
        println!("sessions:");
    }
    session::print(&record.sessions, false);
    Ok(())
}
