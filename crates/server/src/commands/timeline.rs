//! Prints the events of some records, one line each, and who recorded them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{ClientId, TenantId};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{bootstrap, explain::date, terminal::print_wrapped};
use crate::{
    auth::clients,
    db::{Databases, PooledConnection},
    events::{self, RecordedEvent},
};

/// How many of the latest events are printed.
pub const MAX_EVENTS: usize = 25;

/// Changed fields that are not printed, because others say the same.
const OMITTED: [&str; 4] = [
    "updated_at",
    "current_period_starts_at",
    "current_period_ends_at",
    "paid_until",
];

/// The fields of an event's data, as text, so that amounts keep the currency's decimals.
type Fields = BTreeMap<String, Box<RawValue>>;

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

/// Returns the changed fields of an update. For any other event, returns the status, and for a payment
/// also the amount.
fn summarize(event: &RecordedEvent) -> String {
    let parse = |raw: &RawValue| serde_json::from_str::<Fields>(raw.get()).ok();
    let fields = parse(&event.data).unwrap_or_default();
    let field = |name: &str| fields.get(name).map(|value| format_value(value));
    let Some(previous) = fields.get("previous").and_then(|previous| parse(previous)) else {
        let amount = field("amount").zip(field("currency"));
        let amount = amount.map(|(amount, currency)| format!("{amount} {currency}, "));
        return match field("status") {
            Some(status) => format!("{}{status}", amount.unwrap_or_default()),
            None => String::new(),
        };
    };
    let mut previous: Vec<_> = previous
        .iter()
        .filter(|(name, _)| !OMITTED.contains(&name.as_str()))
        .collect();
    // The most important fields first.
    previous.sort_by_key(|(name, _)| (name.as_str() != "status", name.as_str() != "is_active"));
    let changes = previous.into_iter().map(|(name, old)| {
        let new = field(name).unwrap_or_default();
        format!("{name} {} → {new}", format_value(old))
    });
    changes.collect::<Vec<_>>().join(", ")
}

/// Formats a JSON value: instants to the minute, other strings without quotes, numbers as they were
/// written.
fn format_value(value: &RawValue) -> String {
    match serde_json::from_str::<Option<String>>(value.get()) {
        Ok(None) => "none".to_owned(),
        Ok(Some(text)) => match text.parse::<Timestamp>() {
            Ok(instant) => date(instant),
            Err(_) => text,
        },
        Err(_) => value.get().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary_of(data: &str) -> String {
        summarize(&RecordedEvent {
            at: Timestamp::UNIX_EPOCH,
            kind: "subscription_payment.created".to_owned(),
            client: None,
            user: None,
            operator: None,
            payment_account: None,
            data: RawValue::from_string(data.to_owned()).unwrap(),
        })
    }

    #[test]
    fn amounts_keep_the_decimals_of_their_currency() {
        let created = r#"{"status": "completed", "amount": 10.00, "currency": "USD"}"#;
        assert_eq!(summary_of(created), "10.00 USD, completed");
        let updated = r#"{"price": 20.50, "previous": {"price": 10.00}}"#;
        assert_eq!(summary_of(updated), "price 10.00 → 20.50");
    }

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

    #[test]
    fn updates_show_the_status_first_and_instants_to_the_minute() {
        let updated = r#"{"ends_at": null, "status": "active", "previous":
            {"ends_at": "2026-11-15T09:30:00.123456Z", "status": "past_due", "updated_at": "x"}}"#;
        assert_eq!(
            summary_of(updated),
            "status past_due → active, ends_at 2026-11-15 09:30 → none"
        );
    }
}
