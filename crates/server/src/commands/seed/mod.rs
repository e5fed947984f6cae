//! `perennial seed`: something to look at in an empty sandbox.

use std::time::Instant;

use anyhow::bail;
use clap::Args;
use perennial_domain::Lifecycle;

use super::{prepare, progress::Progress, tenant::Which};
use crate::{
    callers::tenants::{self, LifecycleSettings, Settings},
    config::Mode,
};

mod demo;
mod people;

/// Fill a sandbox with something to look at.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  perennial seed --demo
  perennial sandbox clock advance 1mo")]
pub struct Seed {
    /// Three plans, 240 subscribers and 14 months of payments, the same each time; has the service move time (lifecycle
    /// managed)
    #[arg(long, required = true)]
    demo: bool,
    #[command(flatten)]
    tenant: Which,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Seed {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (db, mode) = prepare::open().await?;
        if mode != Mode::Sandbox {
            bail!("this is a {mode} database; only a sandbox is filled with made-up people");
        }
        let mut home = db.home()?.connection().await?;
        let tenant = self.tenant.tenant(&home).await?;
        let now = prepare::clocks(&db).await?.billing.now();
        let mut demo = demo::Demo::begin(&db, &tenant, now).await?;
        let settings = Settings {
            lifecycle: LifecycleSettings {
                managed: Some(true),
                since: now,
                ..LifecycleSettings::default()
            },
            ..Settings::default()
        };
        if tenant.lifecycle == Lifecycle::Recorded {
            tenants::set(&mut home, prepare::operator(), tenant.id, &settings).await?;
        }
        let progress = Progress::of(people::COUNT);
        for number in 0..people::COUNT {
            demo.live(&people::person(number, now)).await?;
            progress.show(
                number + 1,
                &format!("{} of {} subscribers", number + 1, people::COUNT),
            );
        }
        progress.clear();
        if self.json {
            println!(
                "{}",
                serde_json::json!({"plans": 3, "subscribers": people::COUNT, "payments": demo.payments})
            );
            return Ok(());
        }
        println!(
            "3 plans (free, pro, team) · {} subscribers · {} payments in 14 months · {:.1} s",
            people::COUNT,
            demo.payments,
            begun.elapsed().as_secs_f64()
        );
        println!("lifecycle is managed; next: perennial sandbox clock advance 1mo");
        Ok(())
    }
}
