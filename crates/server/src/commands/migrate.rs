//! `perennial migrate`: brings the databases to this binary's schema.

use clap::Args;
use serde_json::json;

use super::{
    prepare::{self, Expected},
    so_many,
};
use crate::{
    config::Storage,
    db::{self, Address, migrate},
    logging,
};

/// Bring the databases to the schema that this binary knows.
#[derive(Debug, Args)]
#[command(
    after_help = "Starting `perennial serve` does the same. Safe to run from several places at
once."
)]
pub struct Migrate {
    /// Only say how far each database has come; exit with 1 if one is not current
    #[arg(long)]
    status: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Migrate {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let storage = Storage::from_environment()?;
        logging::start_lines(&storage.log);
        if !self.status {
            let expected = Expected {
                mode: storage.mode,
                master: None,
            };
            let applied = prepare::prepare(&storage.database, &expected).await?;
            if self.json {
                println!(
                    "{}",
                    json!({"applied": applied, "steps": migrate::MIGRATIONS.len()})
                );
                return Ok(());
            }
            // Each step was told when it began, which matters for one that takes an hour.
            let all = so_many(migrate::MIGRATIONS.len(), "step");
            match applied.len() {
                0 => println!("nothing to do: the schema is current ({all})"),
                done => println!("applied {}; the schema is current", so_many(done, "step")),
            }
            return Ok(());
        }
        let mut current = true;
        for (cell, url) in db::addresses(&storage.database) {
            let state = migrate::state(&Address::parse(url)?).await?;
            let done = match state {
                migrate::State::Empty => 0,
                migrate::State::Behind { done } => done,
                migrate::State::Current => migrate::MIGRATIONS.len(),
            };
            current &= state == migrate::State::Current;
            let steps = migrate::MIGRATIONS.len();
            if self.json {
                println!("{}", json!({"cell": cell, "done": done, "steps": steps}));
            } else {
                println!("{cell}: {done} of {}", so_many(steps, "step"));
            }
        }
        if current {
            Ok(())
        } else {
            anyhow::bail!("not current; run `perennial migrate`")
        }
    }
}
