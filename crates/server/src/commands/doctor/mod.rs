//! `perennial doctor`: checks the installation and suggests fixes.
//!
//! The command changes nothing. A failed check does not stop the others.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{pluralize, terminal::print_wrapped};
use crate::config::{Config, EnvReader};

mod checks;
mod key_checks;
mod payment_checks;
mod worker_checks;

const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if there is a problem (✘). A warning (!) is not a problem.")]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Ok,
    Warning,
    Problem,
}

impl Severity {
    const fn mark(self) -> &'static str {
        match self {
            Self::Ok => "✔",
            Self::Warning => "!",
            Self::Problem => "✘",
        }
    }

    /// Returns the value of `severity` in the JSON output.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "error",
        }
    }
}

/// The result of one check.
#[derive(Debug)]
struct Finding {
    severity: Severity,
    message: String,
    /// The suggested action and the document that explains it.
    fix: Option<String>,
}

impl Finding {
    fn ok(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            message: message.into(),
            fix: None,
        }
    }

    fn warning(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            message: message.into(),
            fix: Some(fix.into()),
        }
    }

    fn problem(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            severity: Severity::Problem,
            message: message.into(),
            fix: Some(fix.into()),
        }
    }
}

impl DoctorArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut findings = Vec::new();
        let mut reader = EnvReader::from_env();
        let config = Config::read(&mut reader).filter(|_| reader.errors.is_empty());
        for error in &reader.errors {
            let fix = "`perennial config show` prints where each value comes from; see docs/reference/configuration";
            findings.push(Finding::problem(error.clone(), fix));
        }
        if let Some(config) = config {
            let mode = config.mode;
            findings.push(Finding::ok(format!("configuration, {mode} mode")));
            findings.extend(checks::run_all(&config).await);
        }
        if self.json {
            let findings = findings.iter().map(|finding| {
                json!({
                    "severity": finding.severity.as_str(),
                    "message": finding.message,
                    "fix": finding.fix,
                })
            });
            println!("{}", json!({"findings": findings.collect::<Vec<_>>()}));
        } else {
            for finding in &findings {
                let mark = finding.severity.mark();
                print_wrapped(&format!("{mark} {}", finding.message));
                if let Some(fix) = &finding.fix {
                    print_wrapped(&format!("    {fix}"));
                }
            }
        }
        let problems = findings.iter();
        let problems = problems.filter(|finding| finding.severity == Severity::Problem);
        match problems.count() {
            0 => Ok(()),
            count => anyhow::bail!("found {}", pluralize(count, "problem")),
        }
    }
}
