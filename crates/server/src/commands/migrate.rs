//! `perennial migrate`: applies pending migrations.

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::{
    bootstrap::{self, ExpectedSetup},
    pluralize,
};
use crate::{
    config::StorageConfig,
    db::{self, ConnectOptions, migrate, roles},
    logging,
};

#[derive(Debug, Args)]
#[command(
    after_help = "`perennial serve` also migrates when it starts, if its role owns the tables.
Several processes can migrate at the same time."
)]
pub struct MigrateArgs {
    /// After migrating, let this database role serve: it can read and write rows, but
    /// not change the schema
    #[arg(long, value_name = "ROLE", conflicts_with = "status")]
    grant_to: Option<String>,
    /// Only print how many migrations are applied to each database; exits with 1 if a
    /// database is not current
    #[arg(long)]
    status: bool,
    /// Print one JSON object; with --status, one per cell
    #[arg(long)]
    json: bool,
}

impl MigrateArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let storage = StorageConfig::from_env()?;
        logging::init_for_command(&storage.log);
        if self.status {
            return print_status(&storage, self.json).await;
        }
        let expected = ExpectedSetup {
            mode: storage.mode,
            // Not checked: migrations do not need the master key.
            keys: None,
        };
        let applied = bootstrap::prepare(&storage.database, &expected).await?;
        if let Some(role) = &self.grant_to {
            for (cell, url) in db::cell_urls(&storage.database) {
                let granted = roles::grant(&ConnectOptions::parse(url)?, role).await;
                granted.with_context(|| format!("cell {cell}"))?;
            }
        }
        let total = migrate::MIGRATIONS.len();
        if self.json {
            let granted_to = self.grant_to;
            println!(
                "{}",
                json!({"applied": applied, "steps": total, "granted_to": granted_to})
            );
            return Ok(());
        }
        // The names were logged when each migration started.
        match applied.len() {
            0 => println!(
                "nothing to do: the schema is current ({})",
                pluralize(total, "migration")
            ),
            count => println!(
                "applied {}; the schema is current",
                pluralize(count, "migration")
            ),
        }
        if let Some(role) = self.grant_to {
            println!("the role {role} can serve, and cannot change the schema");
        }
        Ok(())
    }
}

async fn print_status(storage: &StorageConfig, json: bool) -> anyhow::Result<()> {
    let total = migrate::MIGRATIONS.len();
    let mut is_current = true;
    for (cell, url) in db::cell_urls(&storage.database) {
        let state = migrate::state(&ConnectOptions::parse(url)?, migrate::MIGRATIONS).await?;
        is_current &= state == migrate::SchemaState::Current;
        let done = match state {
            migrate::SchemaState::Empty => 0,
            migrate::SchemaState::Behind { done } => done,
            migrate::SchemaState::Current => total,
        };
        if json {
            println!("{}", json!({"cell": cell, "done": done, "steps": total}));
        } else {
            println!("{cell}: {done} of {}", pluralize(total, "migration"));
        }
    }
    if !is_current {
        anyhow::bail!("the schema is not current; run `perennial migrate`");
    }
    Ok(())
}
