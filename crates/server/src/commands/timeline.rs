//! What happened, one line each, for somebody who is asked why.

use jiff::Timestamp;
use perennial_domain::TenantId;
use serde_json::Value;
use uuid::Uuid;

use super::{screen::say, story::date};
use crate::{
    db::Connection,
    events::{self, Recorded},
};

/// How many of the latest are shown.
const SHOWN: usize = 25;

/// Prints what happened to some things, the latest last.
pub async fn print(
    connection: &Connection,
    tenant: TenantId,
    subjects: &[Uuid],
) -> anyhow::Result<()> {
    let happened = events::of_subjects(connection, tenant, subjects).await?;
    if !happened.is_empty() {
        println!("what happened (UTC):");
    }
    let left_out = happened.len().saturating_sub(SHOWN);
    if left_out > 0 {
        println!("  … {left_out} before (all: perennial user export)");
    }
    for event in happened.iter().skip(left_out) {
        let at = date(event.at);
        let line = format!("  {at}  {:24} {}", event.kind, said(event));
        say(line.trim_end());
    }
    Ok(())
}

/// What changed, in a few words.
fn said(event: &Recorded) -> String {
    let text = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        // An instant to the minute; nobody reads microseconds.
        Value::String(text) => match text.parse::<Timestamp>() {
            Ok(instant) => date(instant),
            Err(_) => text.clone(),
        },
        other => other.to_string(),
    };
    let field = |name: &str| event.data.get(name).map(text);
    let Some(previous) = event.data.get("previous").and_then(Value::as_object) else {
        let amount = field("amount").zip(field("currency"));
        let amount = amount.map(|(amount, currency)| format!("{amount} {currency}, "));
        return match field("status") {
            Some(status) => format!("{}{status}", amount.unwrap_or_default()),
            None => String::new(),
        };
    };
    let mut previous: Vec<_> = previous
        .iter()
        .filter(|(name, _)| name.as_str() != "updated_at")
        .collect();
    // What matters most comes first.
    previous.sort_by_key(|(name, _)| (name.as_str() != "status", name.as_str() != "is_active"));
    let changes = previous.into_iter().map(|(name, old)| {
        let new = field(name).unwrap_or_default();
        format!("{name} {} → {new}", text(old))
    });
    changes.collect::<Vec<_>>().join(", ")
}
