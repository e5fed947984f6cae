//! What is logged, and how.

use std::str::FromStr;

use super::key::{Key, Reader};

static FILTER: Key = Key {
    name: "PERENNIAL_LOG",
    doc: "What is logged: `error`, `warn`, `info`, `debug` or `trace`, or such a level per module \
          (`info,perennial::db=debug`). No level logs tokens, secret client ids or e-mail addresses.",
    default: Some("info"),
    secret: false,
};

static FORMAT: Key = Key {
    name: "PERENNIAL_LOG_FORMAT",
    doc: "`text` for people, `json` for machines, or `auto`: text on a terminal, JSON elsewhere.",
    default: Some("auto"),
    secret: false,
};

static OTLP_ENDPOINT: Key = Key {
    name: "PERENNIAL_OTLP_ENDPOINT",
    doc: "Where traces are sent, by OTLP over HTTP, such as `http://127.0.0.1:4318`. Not set: nowhere. A \
          request is one span, each statement that it sent to the database one under it; a caller's \
          `traceparent` is gone on with.",
    default: None,
    secret: false,
};

static OTLP_SHARE: Key = Key {
    name: "PERENNIAL_OTLP_SHARE",
    doc: "The share of traces that is sent, from 0 to 1.",
    default: Some("1"),
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[&FILTER, &FORMAT, &OTLP_ENDPOINT, &OTLP_SHARE];

/// Where traces go.
#[derive(Debug, Clone)]
pub struct Traces {
    /// The collector's address, without a slash at its end.
    pub endpoint: String,
    /// The share of them that is sent, from 0 to 1.
    pub share: f64,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected auto, text or json".to_owned()),
        }
    }
}

/// What is logged, and how.
#[derive(Debug, Clone)]
pub struct Log {
    /// The filter, in the syntax of `tracing-subscriber`.
    pub filter: String,
    /// How a line looks.
    pub format: Format,
    /// Where traces go, if anywhere.
    pub traces: Option<Traces>,
}

impl Log {
    pub(super) fn read(reader: &mut Reader) -> Option<Self> {
        let filter = reader.text(&FILTER);
        if let Some(Err(error)) = filter
            .as_deref()
            .map(str::parse::<tracing_subscriber::EnvFilter>)
        {
            reader.wrong(&FILTER, &error.to_string());
        }
        let format = reader.value(&FORMAT);
        let endpoint = reader.text(&OTLP_ENDPOINT);
        let is_http = |url: &url::Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        if let Some(text) = &endpoint
            && !url::Url::parse(text).is_ok_and(|url| is_http(&url))
        {
            let what = format!("{text}: expected an address such as http://127.0.0.1:4318");
            reader.wrong(&OTLP_ENDPOINT, &what);
        }
        let expected = "expected a number from 0 to 1, such as 0.1";
        let share = reader.checked(&OTLP_SHARE, expected, |share| (0.0..=1.0).contains(share));
        let traces = endpoint.zip(share).map(|(endpoint, share)| Traces {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            share,
        });
        Some(Self {
            traces,
            filter: filter?,
            format: format?,
        })
    }
}
