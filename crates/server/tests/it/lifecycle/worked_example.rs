//! The worked example of `docs/explanation/lifecycle.md`. The test sends the page's requests in order,
//! and compares every response, every figure, the ledger and the chart with the service's.

mod page;

use std::{collections::BTreeMap, fs};

use jiff::Timestamp;
use serde_json::{Value, json};

use self::page::{Bar, Example, Exchange, read_page};
use super::start_managed;
use crate::{architecture::crate_path, harness::api::ApiClient};

fn minute(text: &str) -> Timestamp {
    format!("{}:00Z", text.replace(' ', "T")).parse().unwrap()
}

/// Formats a timestamp of a response as the page does.
fn shown_time(value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return value.to_string();
    };
    let at: Timestamp = text.parse().unwrap();
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

fn shown_amount(value: &Value) -> String {
    format!("{:.2}", value.as_f64().unwrap())
}

fn shown_code(value: &Value) -> String {
    format!("`{}`", value.as_str().unwrap())
}

/// Asserts that `actual` has every field of `stated`.
fn assert_contains(actual: &Value, stated: &Value) {
    match (actual, stated) {
        (Value::Object(actual), Value::Object(stated)) => {
            for (name, stated) in stated {
                assert_contains(actual.get(name).unwrap_or(&json!("missing")), stated);
            }
        }
        (Value::Array(actual), Value::Array(stated)) => {
            assert_eq!(actual.len(), stated.len(), "{actual:?}");
            for (actual, stated) in actual.iter().zip(stated) {
                assert_contains(actual, stated);
            }
        }
        // An amount that is an integer on one side only is equal too.
        (Value::Number(actual), Value::Number(stated)) => {
            assert_eq!(actual.as_f64(), stated.as_f64());
        }
        _ => assert_eq!(actual, stated),
    }
}

/// Sends the page's requests with ids in place of the page's placeholders.
struct Runner {
    api: ApiClient,
    ids: BTreeMap<String, String>,
}

impl Runner {
    fn fill(&self, text: &str) -> String {
        let replace =
            |text: String, (placeholder, id): (&String, &String)| text.replace(placeholder, id);
        self.ids.iter().fold(text.to_owned(), replace)
    }

    async fn send(&mut self, exchange: &Exchange) {
        let api = self.api.with("content-type", "application/json");
        let (path, body) = (self.fill(&exchange.path), self.fill(&exchange.body));
        let response = api
            .send(exchange.method.clone(), &path, Some(body.into_bytes()))
            .await;
        assert_eq!(
            response.status, exchange.status,
            "{exchange:?}: {}",
            response.text
        );
        let record = response.json();
        assert_contains(&record, &exchange.response);
        if response.status == 201 {
            let id = record["id"].as_str().unwrap();
            let placeholder = match record["slug"].as_str() {
                Some(slug) => format!("plan_{slug}"),
                None => format!("{}…", &id[..4]),
            };
            self.ids.insert(placeholder, id.to_owned());
        }
    }

    async fn ledger(&self) -> Vec<Value> {
        let path = self.fill("/subscriptions/sub_…/ledger?limit=200");
        self.api.get_json(&path).await["data"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Returns the row of figures, with the entries after the first `known`.
    async fn figures(&self, known: usize) -> Vec<String> {
        let subscription = self.api.get_json(&self.fill("/subscriptions/sub_…")).await;
        let entries = self.ledger().await.split_off(known);
        let shown = |entry: &Value| {
            format!(
                "{} {}",
                shown_code(&entry["type"]),
                shown_amount(&entry["amount"])
            )
        };
        let shown: Vec<String> = entries.iter().map(shown).collect();
        let access = subscription["is_active"].as_bool().unwrap();
        vec![
            shown_code(&subscription["status"]),
            (if access { "yes" } else { "no" }).to_owned(),
            shown_amount(&subscription["credit"]),
            shown_amount(&subscription["amount_due"]),
            shown_time(&subscription["paid_until"]),
            if shown.is_empty() {
                "none".to_owned()
            } else {
                shown.join(", ")
            },
        ]
    }
}

/// Returns a bar from each change of the value, given by date, to the next.
fn bars(values: &BTreeMap<String, String>) -> Vec<Bar> {
    let mut changes: Vec<(&String, &String)> = values.iter().collect();
    changes.dedup_by_key(|(_, value)| *value);
    let bar =
        |pair: &[(&String, &String)]| Bar(pair[0].1.clone(), pair[0].0.clone(), pair[1].0.clone());
    changes.windows(2).map(bar).collect()
}

fn date(time: &str) -> String {
    time[..10].to_owned()
}

#[tokio::test]
async fn worked_example_matches_the_service() {
    let stated = Example::parse(&read_page());
    assert_eq!((stated.setup.len(), stated.steps.len()), (2, 18));
    let (service, api) = start_managed(minute(&stated.steps[0].at)).await;
    let user = api
        .create("/users", &json!({"email": "ada@example.com"}))
        .await;
    let user = user["id"].as_str().unwrap().to_owned();
    let mut runner = Runner {
        api,
        ids: BTreeMap::from([("usr_…".to_owned(), user)]),
    };
    for exchange in &stated.setup {
        runner.send(exchange).await;
    }

    let (mut statuses, mut credits) = (BTreeMap::new(), BTreeMap::new());
    let mut known = 0;
    for step in &stated.steps {
        service.server.set_time(minute(&step.at));
        service.server.catch_up().await;
        for exchange in &step.exchanges {
            runner.send(exchange).await;
        }
        let figures = runner.figures(known).await;
        assert_eq!(figures, step.figures, "{}", step.at);
        known = runner.ledger().await.len();
        statuses.insert(date(&step.at), figures[0].trim_matches('`').to_owned());
        credits.insert(date(&step.at), figures[2].clone());
    }

    let row = |entry: &Value| {
        let [from, to] =
            ["period_starts_at", "period_ends_at"].map(|name| shown_time(&entry[name]));
        let [amount, credit] = ["amount", "credit_after"].map(|name| shown_amount(&entry[name]));
        let [kind, cause] = ["type", "cause"].map(|name| shown_code(&entry[name]));
        vec![
            shown_time(&entry["at"]),
            kind,
            cause,
            amount,
            credit,
            from,
            to,
        ]
    };
    let ledger: Vec<Vec<String>> = runner.ledger().await.iter().map(row).collect();
    assert_eq!(ledger, stated.ledger);

    let periods = ledger.iter().filter(|row| row[1] == "`period`");
    let period = |row: &Vec<String>| Bar(row[3].replace('-', ""), date(&row[5]), date(&row[6]));
    let mut credit_bars = bars(&credits);
    credit_bars.retain(|bar| bar.0 != "0.00");
    let chart = BTreeMap::from([
        ("Status".to_owned(), bars(&statuses)),
        ("Charged periods".to_owned(), periods.map(period).collect()),
        ("Credit".to_owned(), credit_bars),
    ]);
    assert_eq!(chart, stated.chart);

    // The served page shows an image instead of the chart.
    let image = fs::read_to_string(crate_path("../../docs/diagrams/billing-example.svg")).unwrap();
    let description = image
        .split_once("<desc")
        .unwrap()
        .1
        .split_once("</desc>")
        .unwrap()
        .0;
    for Bar(label, start, end) in chart.values().flatten() {
        let day = |date: &String| {
            minute(&format!("{date} 00:00"))
                .strftime("%B %-d")
                .to_string()
        };
        let dates = format!("{} to {}", day(start), day(end));
        let is_described = [" from ", " for "]
            .iter()
            .any(|word| description.contains(&format!("{label}{word}{dates}")));
        assert!(is_described, "{label} {dates}: {description}");
    }
}
