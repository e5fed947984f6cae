//! `docs/reference/events.md`: every event type that clients can read, with an example recorded from the service.

use std::collections::BTreeMap;

use perennial_domain::EventKind;
use serde_json::Value;

use super::trigger::{TriggerFixture, cause_email_change, cause_repeated_refresh};
use crate::harness::generated_file;

const PAGE: &str = "docs/reference/events.md";

const INTRODUCTION: &str = "\
# Event types

Look up the types of events that `GET /events` and webhooks deliver, with an example of each. [Read
events](../how-to/read-events.md) shows how to receive them.

| member | meaning |
|---|---|
| `id` | the event's id, the same in every delivery |
| `type` | one of the types below |
| `occurred_at` | when the change took effect; a late renewal has the time at which it was due |
| `recorded_at` | when the event received its position |
| `position` | the event's place in the order of the tenant's events; positions of events for operators are skipped |
| `subject_id` | the id of the record that changed |
| `actor` | what made the change: `client` (an API key), `user` (a user through a client), `staff` (a staff member in the console), `operator` (a command), `payment_account` (a payment provider) or `system` (a background task), and its id |
| `request_id` | the `X-Request-Id` of the request that made the change; null for commands and background tasks |
| `data` | the record after the change, as the API returns it, or the facts of the event |
| `previous` | only with changes of a record: the old values of the fields that changed |

New types and members can be added at any time; ignore those that you do not know
([API versions](versioning.md)). Events never contain an email address or a credential.

The examples were recorded from a sandbox by `just reference`, and a test compares their members with those of new events.
";

/// Returns the JSON of each type's section.
fn examples(page: &str) -> BTreeMap<String, String> {
    let sections = page.split("\n## ").skip(1);
    sections
        .filter_map(|section| {
            let (kind, rest) = section.split_once('\n')?;
            let (_, rest) = rest.split_once("```json\n")?;
            let (json, _) = rest.split_once("```")?;
            Some((kind.to_owned(), json.trim_end().to_owned()))
        })
        .collect()
}

/// Writes each member on a line of its own. Keeps the order of members and the decimals of numbers, as the service sends
/// them.
fn indent(json: &str) -> String {
    let (mut text, mut depth, mut in_string, mut is_escaped) = (String::new(), 0, false, false);
    let new_line = |depth: usize| format!("\n{}", "  ".repeat(depth));
    for (at, c) in json.char_indices() {
        let next = json[at + c.len_utf8()..].chars().next();
        match c {
            _ if in_string => {
                in_string = c != '"' || is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                text.push(c);
            }
            '"' => {
                in_string = true;
                text.push(c);
            }
            '{' | '[' if matches!(next, Some('}' | ']')) => text.push(c),
            '{' | '[' => {
                depth += 1;
                text += &format!("{c}{}", new_line(depth));
            }
            '}' | ']' if text.ends_with(['{', '[']) => text.push(c),
            '}' | ']' => {
                depth -= 1;
                text += &format!("{}{c}", new_line(depth));
            }
            ',' => text += &format!(",{}", new_line(depth)),
            ':' => text += ": ",
            c if c.is_whitespace() => {}
            c => text.push(c),
        }
    }
    text
}

/// Returns the members of a value with their types, such as `/data/price number`. The pairs of metadata are left out.
fn shape(json: &str) -> Vec<String> {
    fn collect(value: &Value, pointer: &str, found: &mut Vec<(String, &'static str)>) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(members) => {
                if !pointer.ends_with("/metadata") {
                    for (name, value) in members {
                        collect(value, &format!("{pointer}/{name}"), found);
                    }
                }
                "object"
            }
        };
        found.push((pointer.to_owned(), kind));
    }
    let mut found = Vec::new();
    let value: Value = serde_json::from_str(json).unwrap();
    collect(&value, "", &mut found);
    let shape = found
        .iter()
        .map(|(pointer, kind)| format!("{pointer} {kind}"));
    shape.collect()
}

fn public_kinds() -> Vec<EventKind> {
    let mut kinds: Vec<EventKind> = EventKind::ALL.to_vec();
    kinds.retain(|kind| kind.is_public());
    kinds
}

/// Causes an event of each type and returns it.
async fn record_examples() -> BTreeMap<String, String> {
    let fixture = TriggerFixture::start().await;
    let mut recorded = BTreeMap::new();
    for kind in public_kinds() {
        let event = match kind {
            // These need a provider or a pause of half a minute, for which the test changes the database.
            EventKind::UserEmailChanged => cause_email_change(&fixture).await,
            EventKind::SessionRefreshRepeated => cause_repeated_refresh(&fixture).await,
            kind => fixture.trigger(kind).await,
        };
        let parsed: Value = serde_json::from_str(&event).unwrap();
        assert_eq!(parsed["type"], kind.as_str());
        recorded.insert(kind.to_string(), event);
    }
    recorded
}

/// `just reference` writes the page. It keeps examples whose members are current.
#[tokio::test]
async fn event_reference_is_current() {
    let known = generated_file::read(PAGE);
    let known = examples(&known);
    let mut generated = INTRODUCTION.to_owned();
    for (kind, event) in record_examples().await {
        let example = known
            .get(&kind)
            .filter(|known| shape(known) == shape(&event));
        let json = example.cloned().unwrap_or_else(|| indent(&event));
        let description = kind.parse::<EventKind>().unwrap().documentation();
        generated += &format!("\n## {kind}\n\n{description}\n\n```json\n{json}\n```\n");
    }
    generated_file::assert_current(PAGE, &generated);
}
