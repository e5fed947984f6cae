//! `perennial doctor`: is everything as it should be, and if not, what to do?
//!
//! Each check answers one finding. It reads and changes nothing, and whatever it finds it goes on to the next.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::screen::say;
use crate::config::{Config, Reader};

mod checks;

/// How long one check may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Look for what is wrong.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if something is wrong; what is only worth knowing (!) does not
count."
)]
pub struct Doctor {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Fine,
    Notable,
    Wrong,
}

impl Level {
    const fn mark(self) -> &'static str {
        match self {
            Self::Fine => "✔",
            Self::Notable => "!",
            Self::Wrong => "✘",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Notable => "notable",
            Self::Wrong => "wrong",
        }
    }
}

/// What a check found.
#[derive(Debug)]
struct Finding {
    level: Level,
    /// What is so.
    what: String,
    /// What to do about it, and where to read on.
    todo: Option<String>,
}

impl Finding {
    fn fine(what: impl Into<String>) -> Self {
        Self {
            level: Level::Fine,
            what: what.into(),
            todo: None,
        }
    }

    fn notable(what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            level: Level::Notable,
            what: what.into(),
            todo: Some(todo.into()),
        }
    }

    fn wrong(what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            level: Level::Wrong,
            what: what.into(),
            todo: Some(todo.into()),
        }
    }
}

impl Doctor {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut findings = Vec::new();
        let mut reader = Reader::of_environment();
        let config = Config::read(&mut reader).filter(|_| reader.errors.is_empty());
        for error in &reader.errors {
            let todo = "perennial config show names each value's origin → docs/configuration";
            findings.push(Finding::wrong(error.clone(), todo));
        }
        if let Some(config) = config {
            findings.push(Finding::fine(format!(
                "configuration, {} mode",
                config.mode
            )));
            findings.extend(checks::all(&config).await);
        }
        if self.json {
            let all: Vec<_> = findings
                .iter()
                .map(|one| json!({"level": one.level.word(), "what": one.what, "todo": one.todo}))
                .collect();
            println!("{}", json!({"findings": all}));
        } else {
            for one in &findings {
                say(&format!("{} {}", one.level.mark(), one.what));
                if let Some(todo) = &one.todo {
                    say(&format!("    {todo}"));
                }
            }
        }
        let wrong = findings
            .iter()
            .filter(|one| one.level == Level::Wrong)
            .count();
        match wrong {
            0 => Ok(()),
            1 => anyhow::bail!("one thing is wrong"),
            many => anyhow::bail!("{many} things are wrong"),
        }
    }
}
