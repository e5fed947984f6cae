//! `perennial sandbox clock`: moves the time of subscriptions, payments and access.
//!
//! Sign-ins and tokens go by the real clock. How far billing time is ahead is kept in the database, and every running
//! instance follows it. While it moves, everything that falls due happens, day by day.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::Subcommand;
use jiff::{SignedDuration, Span, Timestamp, tz::TimeZone};
use perennial_domain::{TenantId, Turn};
use serde_json::json;

use crate::{
    app::FOLLOWED,
    callers::tenants,
    clock::{Clock, Ids},
    commands::{prepare, progress::Progress, screen::say, so_many},
    db::{Db, instance},
    events,
    randomness::Randomness,
    subscriptions::{
        lifecycle::move_due,
        report::{Noticed, noticed},
    },
};

/// How many subscriptions are moved at once.
const BATCH: i64 = 2_000;
/// How many are told of by name.
const NAMED: i64 = 5;

/// See and move the time that subscriptions live in.
#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Print what time it is for subscriptions
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Move it ahead, and let everything happen that falls due
    #[command(after_help = "Examples:
  perennial sandbox clock advance 1mo
  perennial sandbox clock advance \"1y 15d\"

Units: y, mo, w, d, h, m, s.")]
    Advance {
        /// By how much: a span such as 1mo, 2w or 36h, up to 10y at once
        #[arg(value_parser = span, allow_hyphen_values = true)]
        by: Span,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Put it back to the real time; what has happened stays
    Reset,
}

impl ClockCommand {
    pub(super) async fn run(self, db: &Db) -> anyhow::Result<()> {
        match self {
            Self::Show { json } => show(db, json).await,
            Self::Advance { by, json } => advance(db, by, json).await,
            Self::Reset => {
                set(db, 0).await?;
                // Whoever's time is moved from a later instant on would wait for that.
                tenants::since_now_at_most(
                    &mut db.home()?.connection().await?,
                    Clock::System.now(),
                )
                .await?;
                say(
                    "billing time is the real time again; what happened meanwhile stays, and may be dated ahead",
                );
                Ok(())
            }
        }
    }
}

async fn show(db: &Db, json: bool) -> anyhow::Result<()> {
    let clocks = prepare::clocks(db).await?;
    let (real, billing) = (clocks.real.now(), clocks.billing.now());
    if json {
        println!(
            "{}",
            json!({"billing_time": seconds(billing), "real_time": seconds(real)})
        );
    } else {
        let ahead = (billing.duration_since(real).as_mins() + 30) / 60;
        let ahead = match ahead {
            0 => "the real time".to_owned(),
            hours if hours < 48 => format!("{} ahead", so_many(hours, "hour")),
            hours => format!("{} ahead", so_many((hours + 12) / 24, "day")),
        };
        println!("{} ({ahead})", seconds(billing));
    }
    Ok(())
}

/// A span of time, as people write it.
fn span(text: &str) -> Result<Span, String> {
    let wrong = || "expected a span such as 1mo, 2w or 36h".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    if span.is_negative() || span.is_zero() {
        return Err(format!("time only goes ahead; {}", wrong()));
    }
    Ok(span)
}

/// Without fractions, for people.
fn seconds(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn set(db: &Db, micros: i64) -> anyhow::Result<()> {
    let mut home = db.home()?.connection().await?;
    let tx = home.begin();
    instance::set_clock_ahead(&tx, micros).await?;
    tx.commit().await?;
    Ok(())
}

async fn advance(db: &Db, by: Span, json: bool) -> anyhow::Result<()> {
    let clocks = prepare::clocks(db).await?;
    let from = clocks.billing.now();
    let to = TimeZone::UTC
        .to_datetime(from)
        .checked_add(by)
        .and_then(|to| TimeZone::UTC.to_timestamp(to))
        .context("so far ahead there is no calendar")?;
    if to.duration_since(from).as_hours() > 24 * 3_660 {
        bail!("that is more than ten years; go there in steps");
    }
    let day = SignedDuration::from_hours(24);
    let days = usize::try_from(to.duration_since(from).as_hours() / 24).unwrap_or(0) + 1;
    let progress = Progress::of(days);
    let mut instant = from;
    let mut passed = 0;
    while instant < to {
        instant = instant.saturating_add(day)?.min(to);
        passed += 1;
        progress.show(passed, &instant.strftime("%Y-%m-%d").to_string());
        let ahead = instant.duration_since(clocks.real.now());
        set(db, i64::try_from(ahead.as_micros())?).await?;
        for cell in db.cells() {
            move_all(db, cell, instant).await?;
        }
    }
    progress.clear();
    // Running instances have followed when this returns.
    tokio::time::sleep(FOLLOWED * 2).await;
    let report = Report::of(db, from, to).await?;
    if json {
        println!("{}", report.json());
    } else {
        report.print();
    }
    Ok(())
}

/// Lets everything happen in a cell that is due by then.
async fn move_all(db: &Db, cell: &str, now: Timestamp) -> anyhow::Result<()> {
    let mut connection = db.cell(cell)?.connection().await?;
    loop {
        let tx = connection.begin();
        let moved = move_due(db.home()?, cell, &tx, (Ids(Randomness), now), BATCH).await?;
        tx.commit().await?;
        if moved == 0 {
            return Ok(());
        }
    }
}

/// What happened between two instants.
struct Report {
    to: Timestamp,
    counts: BTreeMap<String, i64>,
    noticed: Vec<Noticed>,
}

impl Report {
    async fn of(db: &Db, from: Timestamp, to: Timestamp) -> anyhow::Result<Self> {
        let home = db.home()?.connection().await?;
        let tenants = tenants::table::list(&home).await?;
        let tenants: Vec<TenantId> = tenants.iter().map(|(tenant, _)| tenant.id).collect();
        let (mut counts, mut all) = (BTreeMap::new(), Vec::new());
        for cell in db.cells() {
            let connection = db.cell(cell)?.connection().await?;
            for (kind, count) in events::count(&connection, &tenants, from, to).await? {
                *counts.entry(kind).or_default() += count;
            }
            all.extend(noticed(&connection, &tenants, (from, to), NAMED + 1).await?);
        }
        Ok(Self {
            to,
            counts,
            noticed: all,
        })
    }

    fn count(&self, turn: Turn) -> i64 {
        let count = self.counts.get(turn.event().as_str());
        count.copied().unwrap_or_default()
    }

    fn events(&self) -> i64 {
        self.counts.values().sum()
    }

    fn json(&self) -> serde_json::Value {
        let noticed: Vec<_> = self
            .noticed
            .iter()
            .map(|one| json!({"email": one.email, "subscription_id": one.subscription.to_string(), "status": one.status.as_str()}))
            .collect();
        json!({
            "billing_time": seconds(self.to),
            "renewed": self.count(Turn::Renewed),
            "past_due": self.count(Turn::PastDue),
            "unpaid": self.count(Turn::Unpaid),
            "expired": self.count(Turn::Expired),
            "events": self.events(),
            "subscriptions": noticed,
        })
    }

    fn print(&self) {
        println!(
            "{}: {} renewed · {} past_due · {} unpaid · {} expired · {}",
            self.to.strftime("%Y-%m-%d"),
            self.count(Turn::Renewed),
            self.count(Turn::PastDue),
            self.count(Turn::Unpaid),
            self.count(Turn::Expired),
            so_many(self.events(), "event")
        );
        let named = usize::try_from(NAMED).unwrap_or(usize::MAX);
        for one in self.noticed.iter().take(named) {
            say(&format!("  {}: {} ({})", one.email, one.status, one.why()));
        }
        if self.noticed.len() > named {
            println!("  … and others (perennial user show tells somebody's story)");
        }
    }
}
