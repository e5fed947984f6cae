//! Parses the worked example of the page.

use std::{collections::BTreeMap, fs};

use reqwest::Method;
use serde_json::Value;

use crate::architecture::crate_path;

/// The example as the page states it.
#[derive(Debug, PartialEq)]
pub struct Example {
    /// The requests before the first step.
    pub setup: Vec<Exchange>,
    pub steps: Vec<Step>,
    /// The rows of the whole ledger.
    pub ledger: Vec<Vec<String>>,
    /// The bars of the chart by section.
    pub chart: BTreeMap<String, Vec<Bar>>,
}

#[derive(Debug, PartialEq)]
pub struct Step {
    /// Date and time to the minute.
    pub at: String,
    pub exchanges: Vec<Exchange>,
    /// The row of figures after the step.
    pub figures: Vec<String>,
}

/// A request and the part of its response that the page shows.
#[derive(Debug, PartialEq)]
pub struct Exchange {
    pub method: Method,
    pub path: String,
    pub body: String,
    pub status: u16,
    pub response: Value,
}

/// A bar of the chart: its label, and the dates of its start and end.
#[derive(Debug, PartialEq)]
pub struct Bar(pub String, pub String, pub String);

pub fn read_page() -> String {
    let page = crate_path("../../docs/explanation/lifecycle.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("\n## A worked example\n").unwrap();
    example.split_once("\n## ").unwrap().0.to_owned()
}

impl Example {
    pub fn parse(page: &str) -> Self {
        let (rest, ledger) = page.split_once("\n### The whole ledger\n").unwrap();
        let mut parts = rest.split("\n### ");
        let setup = parts.next().unwrap();
        Self {
            setup: exchanges(setup),
            steps: parts.map(Step::parse).collect(),
            ledger: table_rows(ledger),
            chart: parse_chart(code_blocks(setup, "mermaid")[0]),
        }
    }
}

impl Step {
    fn parse(text: &str) -> Self {
        let (_, bold) = text.split_once("**").unwrap();
        let mut rows = table_rows(text);
        assert_eq!(rows.len(), 1, "one row of figures: {text}");
        Self {
            at: bold.split_once(".**").unwrap().0.to_owned(),
            exchanges: exchanges(text),
            figures: rows.remove(0),
        }
    }
}

fn code_blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let blocks = text.split(&start).skip(1);
    blocks
        .map(|block| block.split("\n```").next().unwrap())
        .collect()
}

fn exchanges(text: &str) -> Vec<Exchange> {
    let parse = |block: &str| {
        let (request, response) = block.split_once("\n\n").unwrap();
        let (line, body) = request.split_once('\n').unwrap();
        let (method, path) = line.split_once(' ').unwrap();
        let (status, response) = response.split_once(' ').unwrap();
        // The page shows some fields of the response.
        let response = response.strip_suffix(", …}").unwrap().to_owned() + "}";
        Exchange {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            body: body.to_owned(),
            status: status.parse().unwrap(),
            response: serde_json::from_str(&response).unwrap(),
        }
    };
    code_blocks(text, "http").into_iter().map(parse).collect()
}

/// Returns the cells of a table, without its heading.
fn table_rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| {
        let row = row.trim_matches('|');
        row.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

fn parse_chart(text: &str) -> BTreeMap<String, Vec<Bar>> {
    let mut chart: BTreeMap<String, Vec<Bar>> = BTreeMap::new();
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("section ") {
            section = name;
        } else if let Some((label, dates)) = line.split_once(':') {
            let (start, end) = dates.split_once(", ").unwrap();
            let bar = Bar(label.trim().to_owned(), start.to_owned(), end.to_owned());
            chart.entry(section.to_owned()).or_default().push(bar);
        }
    }
    chart
}

/// A wrong digit in a request, a response, a table or the chart is a difference that the test sees.
#[test]
fn every_figure_of_the_page_is_read() {
    let page = read_page();
    let stated = Example::parse(&page);
    let mut figures = 0;
    let mut line_start = 0;
    for line in page.split_inclusive('\n') {
        let is_figure = line.starts_with(['|', '{', '2', '4'])
            || line.contains(" :2")
            || line.starts_with("**");
        // Prose after the bold time is not compared.
        let compared = line.find(".**").unwrap_or(line.len());
        for (at, digit) in line[..compared].char_indices().filter(|_| is_figure) {
            let Some(digit) = digit.to_digit(10) else {
                continue;
            };
            let mut changed = page.clone();
            let place = line_start + at;
            changed.replace_range(place..=place, if digit == 1 { "2" } else { "1" });
            assert_ne!(Example::parse(&changed), stated, "{line}");
            figures += 1;
        }
        line_start += line.len();
    }
    assert!(figures > 1_000, "only {figures} digits were found");
}
