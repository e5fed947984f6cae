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

/// The keys of this section.
pub static KEYS: &[&Key] = &[&FILTER, &FORMAT];

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
        Some(Self {
            filter: filter?,
            format: format?,
        })
    }
}
