//! Prints the events of some records, one line each, and who recorded them.

use std::collections::BTreeMap;

use perennial_domain::{ClientId, TenantId};
use serde::Serialize;
use uuid::Uuid;

use super::{bootstrap, explain::date, terminal::print_wrapped};
use crate::{
    auth::clients,
    db::{Databases, PooledConnection},
    events::{self, RecordedEvent},
    timeline::summarize,
};

/// How many of the latest events are printed.
pub const MAX_EVENTS: usize = 25;

/// Who recorded an event, as JSON. All fields are null for background tasks.
#[derive(Debug, Serialize)]
pub struct EventAuthor {
    client_id: Option<String>,
    client_name: Option<String>,
    /// The user on whose behalf the client called.
    user_id: Option<String>,
    operator: Option<String>,
    /// The account whose payment provider reported the change.
    payment_account_id: Option<String>,
}

/// The names of a tenant's clients, to name the authors of events.
pub struct ClientNames(BTreeMap<ClientId, String>);

impl ClientNames {
    pub async fn load(db: &Databases, tenant: TenantId) -> anyhow::Result<Self> {
        let home = db.home()?.connection().await?;
        let now = bootstrap::system_context().now;
        let clients = clients::table::list(&home, tenant, now).await?.into_iter();
        Ok(Self(
            clients.map(|client| (client.id, client.name)).collect(),
        ))
    }

    pub fn author(&self, event: &RecordedEvent) -> EventAuthor {
        let client_name = event.client.and_then(|client| self.0.get(&client).cloned());
        EventAuthor {
            client_id: event.client.map(|client| client.to_string()),
            client_name,
            user_id: event.user.map(|user| user.to_string()),
            operator: event.operator.clone(),
            payment_account_id: event.payment_account.map(|account| account.to_string()),
        }
    }
}

impl std::fmt::Display for EventAuthor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let client = self.client_name.as_ref().or(self.client_id.as_ref());
        match (&self.operator, client, &self.user_id) {
            (Some(operator), ..) => write!(f, "by {operator}"),
            (None, Some(client), Some(_)) => write!(f, "by the user, client {client}"),
            (None, Some(client), None) => write!(f, "by client {client}"),
            (None, None, _) => match &self.payment_account_id {
                Some(account) => write!(f, "by payment account {account}"),
                None => f.write_str("by the service"),
            },
        }
    }
}

/// Prints the latest events of the given records, oldest first.
pub async fn print(
    connection: &PooledConnection,
    clients: &ClientNames,
    tenant: TenantId,
    subjects: &[Uuid],
) -> anyhow::Result<()> {
    let events = events::list_for_subjects(connection, tenant, subjects).await?;
    if !events.is_empty() {
        println!("events (UTC):");
    }
    let omitted = events.len().saturating_sub(MAX_EVENTS);
    if omitted > 0 {
        println!("  … {omitted} earlier (all: perennial user export)");
    }
    for event in events.iter().skip(omitted) {
        let at = date(event.at);
        let author = clients.author(event);
        let mut line = format!("  {at}  {:24} {}", event.kind, summarize(event));
        line.truncate(line.trim_end().len());
        print_wrapped(&format!("{line}  {author}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn author_is_the_operator_or_the_client_or_the_service() {
        let author = |operator: Option<&str>, client: Option<&str>, user: Option<&str>| {
            let author = EventAuthor {
                client_id: client.map(|_| "cli_1".to_owned()),
                client_name: client.map(str::to_owned),
                user_id: user.map(str::to_owned),
                operator: operator.map(str::to_owned),
                payment_account_id: None,
            };
            author.to_string()
        };
        assert_eq!(author(Some("ada@db-1"), None, None), "by ada@db-1");
        assert_eq!(author(None, Some("backend"), None), "by client backend");
        let with_user = author(None, Some("web"), Some("usr_1"));
        assert_eq!(with_user, "by the user, client web");
        assert_eq!(author(None, None, None), "by the service");
    }
}
