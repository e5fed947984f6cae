//! `perennial doctor`: checks the installation and suggests fixes.
//!
//! The command changes nothing. A failed check does not stop the others.

use clap::Args;
use serde_json::json;

use super::{pluralize, terminal::print_wrapped};
use crate::{
    config::{Config, EnvReader},
    health::{HealthCheck, HealthStatus},
};

mod checks;

#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if there is a problem (✘). A warning (!) is not a problem.")]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const fn mark(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Ok => "✔",
        HealthStatus::Warning => "!",
        HealthStatus::Failed => "✘",
    }
}

/// Returns the value of `severity` in the JSON output.
const fn severity(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Ok => "ok",
        HealthStatus::Warning => "warning",
        HealthStatus::Failed => "error",
    }
}

impl DoctorArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut checks = Vec::new();
        let mut reader = EnvReader::from_env();
        let config = Config::read(&mut reader).filter(|_| reader.errors.is_empty());
        let name = "configuration";
        for error in &reader.errors {
            checks.push(
                HealthCheck::failed(name, error.clone())
                    .fix("`perennial config show` prints where each value comes from")
                    .see("reference/configuration"),
            );
        }
        if let Some(config) = config {
            let mode = config.mode;
            checks.push(HealthCheck::ok(name, format!("configuration, {mode} mode")));
            checks.extend(checks::run_all(&config).await);
        }
        if self.json {
            let findings = checks.iter().map(|check| {
                json!({
                    "severity": severity(check.status),
                    "message": check.detail,
                    "fix": check.advice(),
                })
            });
            println!("{}", json!({"findings": findings.collect::<Vec<_>>()}));
        } else {
            for check in &checks {
                print_wrapped(&format!("{} {}", mark(check.status), check.detail));
                if let Some(advice) = check.advice() {
                    print_wrapped(&format!("    {advice}"));
                }
            }
        }
        let failed = checks.iter();
        let failed = failed.filter(|check| check.status == HealthStatus::Failed);
        match failed.count() {
            0 => Ok(()),
            count => anyhow::bail!("found {}", pluralize(count, "problem")),
        }
    }
}
