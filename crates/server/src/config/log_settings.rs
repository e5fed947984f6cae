//! Configuration of logs and traces.

use tracing_subscriber::EnvFilter;
use url::Url;

use super::env::{EnvReader, EnvVar};

static FILTER: EnvVar = EnvVar {
    name: "PERENNIAL_LOG",
    doc: "Log level: `error`, `warn`, `info`, `debug` or `trace`, optionally per module \
          (`info,perennial::db=debug`). Tokens, secret client ids and email addresses are never logged, \
          at any level.",
    default: Some("info"),
    secret: false,
};

static FORMAT: EnvVar = EnvVar {
    name: "PERENNIAL_LOG_FORMAT",
    doc: "Log format: `text`, `json`, or `auto` for text on a terminal and JSON otherwise.",
    default: Some("auto"),
    secret: false,
};

static OTLP_ENDPOINT: EnvVar = EnvVar {
    name: "PERENNIAL_OTLP_ENDPOINT",
    doc: "URL of an OpenTelemetry collector that receives traces by OTLP over HTTP, such as \
          `http://127.0.0.1:4318`. If it is not set, no traces are sent. Each request is a span with a \
          child span per database statement. Traces continue the `traceparent` of the request.",
    default: None,
    secret: false,
};

static OTLP_SAMPLE_RATIO: EnvVar = EnvVar {
    name: "PERENNIAL_OTLP_SHARE",
    doc: "Fraction of requests that are traced, from 0 to 1.",
    default: Some("1"),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&FILTER, &FORMAT, &OTLP_ENDPOINT, &OTLP_SAMPLE_RATIO];

#[derive(Debug, Clone)]
pub struct OtlpConfig {
    /// URL of the collector, without a trailing slash.
    pub endpoint: String,
    /// Fraction of requests to trace, from 0 to 1.
    pub sample_ratio: f64,
}

perennial_domain::string_enum! {
    /// The format of log lines.
    pub enum LogFormat: "a log format" {
        /// Text on a terminal, JSON otherwise.
        Auto = "auto",
        Text = "text",
        Json = "json",
    }
}

#[derive(Debug, Clone)]
pub struct LogConfig {
    /// Filter in the syntax of `tracing-subscriber`.
    pub filter: String,
    pub format: LogFormat,
    /// The receiver of traces. If `None`, no traces are sent.
    pub otlp: Option<OtlpConfig>,
}

impl LogConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let filter = reader.get(&FILTER);
        if let Some(Err(error)) = filter.as_deref().map(str::parse::<EnvFilter>) {
            reader.push_error(&FILTER, &error.to_string());
        }
        let format = reader.parse(&FORMAT);
        let endpoint = reader.get(&OTLP_ENDPOINT);
        let is_http = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        if let Some(text) = &endpoint
            && !Url::parse(text).is_ok_and(|url| is_http(&url))
        {
            let message =
                format!("must be an HTTP URL, such as http://127.0.0.1:4318; got \"{text}\"");
            reader.push_error(&OTLP_ENDPOINT, &message);
        }
        let expected = "must be a number from 0 to 1, such as 0.1";
        let in_range = |ratio: &f64| (0.0..=1.0).contains(ratio);
        let sample_ratio = reader.parse_if(&OTLP_SAMPLE_RATIO, expected, in_range);
        let otlp = endpoint
            .zip(sample_ratio)
            .map(|(endpoint, sample_ratio)| OtlpConfig {
                endpoint: endpoint.trim_end_matches('/').to_owned(),
                sample_ratio,
            });
        Some(Self {
            filter: filter?,
            format: format?,
            otlp,
        })
    }
}
