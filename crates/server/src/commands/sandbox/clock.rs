//! `perennial sandbox clock`: moves the billing clock, which subscriptions, payments and access
//! use.
//!
//! Sessions and tokens use the real clock. The offset of the billing clock is stored in the
//! database, and running instances follow it. Advancing applies all due transitions, day by day.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::Subcommand;
use jiff::{SignedDuration, Span, Timestamp, tz::TimeZone};
use perennial_domain::{TenantId, Transition};
use serde_json::json;

use crate::{
    app::CLOCK_POLL_INTERVAL,
    auth::tenants,
    clock::{Clock, IdGenerator},
    commands::{bootstrap, pluralize, progress::ProgressBar, terminal::print_wrapped},
    db::{Databases, instance},
    events,
    randomness::Randomness,
    subscriptions::{
        apply_due_transitions,
        lapsed::{LapsedSubscription, list_lapsed},
    },
};

/// Subscriptions per transaction.
const BATCH_SIZE: i64 = 2_000;
/// How many changed subscriptions are printed.
const MAX_EXAMPLES: i64 = 5;
const MAX_ADVANCE: SignedDuration = SignedDuration::from_hours(24 * 3_660);

#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Print the billing time
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Move the billing clock forward and apply everything that falls due
    #[command(after_help = "Examples:
  perennial sandbox clock advance 1mo
  perennial sandbox clock advance \"1y 15d\"

Units: y, mo, w, d, h, m, s.")]
    Advance {
        /// A time span such as 1mo, 2w or 36h, up to 10y
        #[arg(value_parser = parse_span, allow_hyphen_values = true)]
        by: Span,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Reset to real time; simulated changes are kept
    Reset,
}

impl ClockCommand {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        match self {
            Self::Show { json } => show(db, json).await,
            Self::Advance { by, json } => advance(db, by, json).await,
            Self::Reset => {
                set_offset(db, 0).await?;
                // A managed lifecycle that started at a simulated time would do nothing until then.
                tenants::cap_lifecycle_since(
                    &mut db.home()?.connection().await?,
                    Clock::System.now(),
                )
                .await?;
                print_wrapped(
                    "billing time is real time again; simulated changes are kept, possibly with future dates",
                );
                Ok(())
            }
        }
    }
}

async fn show(db: &Databases, json: bool) -> anyhow::Result<()> {
    let clocks = bootstrap::clocks(db).await?;
    let (real, billing) = (clocks.real.now(), clocks.billing.now());
    if json {
        println!(
            "{}",
            json!({"billing_time": format_seconds(billing), "real_time": format_seconds(real)})
        );
    } else {
        let offset = (billing.duration_since(real).as_mins() + 30) / 60;
        let offset = match offset {
            0 => "real time".to_owned(),
            hours if hours < 48 => format!("{} ahead", pluralize(hours, "hour")),
            hours => format!("{} ahead", pluralize((hours + 12) / 24, "day")),
        };
        println!("{} ({offset})", format_seconds(billing));
    }
    Ok(())
}

fn parse_span(text: &str) -> Result<Span, String> {
    let expected = || "expected a time span such as 1mo, 2w or 36h".to_owned();
    let span: Span = text.parse().map_err(|_| expected())?;
    if span.is_negative() || span.is_zero() {
        return Err(format!("the clock only moves forward; {}", expected()));
    }
    Ok(span)
}

fn format_seconds(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn set_offset(db: &Databases, micros: i64) -> anyhow::Result<()> {
    let mut home = db.home()?.connection().await?;
    let tx = home.begin();
    instance::set_clock_offset(&tx, micros).await?;
    tx.commit().await?;
    Ok(())
}

async fn advance(db: &Databases, by: Span, json: bool) -> anyhow::Result<()> {
    let clocks = bootstrap::clocks(db).await?;
    let from = clocks.billing.now();
    let to = TimeZone::UTC
        .to_datetime(from)
        .checked_add(by)
        .and_then(|to| TimeZone::UTC.to_timestamp(to))
        .context("the resulting date is out of range")?;
    if to.duration_since(from).as_hours() > MAX_ADVANCE.as_hours() {
        bail!("cannot advance more than ten years in one step");
    }
    let day = SignedDuration::from_hours(24);
    let days = usize::try_from(to.duration_since(from).as_hours() / 24).unwrap_or(0) + 1;
    let progress = ProgressBar::new(days);
    let mut instant = from;
    let mut passed = 0;
    while instant < to {
        instant = instant.saturating_add(day)?.min(to);
        passed += 1;
        progress.update(passed, &instant.strftime("%Y-%m-%d").to_string());
        let offset = instant.duration_since(clocks.real.now());
        set_offset(db, i64::try_from(offset.as_micros())?).await?;
        for cell in db.cell_names() {
            apply_all_due(db, cell, instant).await?;
        }
    }
    progress.clear();
    // Wait until running instances use the new time.
    tokio::time::sleep(CLOCK_POLL_INTERVAL * 2).await;
    let report = ClockReport::load(db, from, to).await?;
    if json {
        println!("{}", report.json());
    } else {
        report.print();
    }
    Ok(())
}

/// Applies all transitions of a cell that are due at `now`.
pub async fn apply_all_due(db: &Databases, cell: &str, now: Timestamp) -> anyhow::Result<()> {
    let mut connection = db.cell(cell)?.connection().await?;
    loop {
        let tx = connection.begin();
        let applied = apply_due_transitions(
            db.home()?,
            cell,
            &tx,
            (IdGenerator(Randomness), now),
            BATCH_SIZE,
        )
        .await?;
        tx.commit().await?;
        if applied == 0 {
            return Ok(());
        }
    }
}

/// What changed while the clock advanced.
struct ClockReport {
    to: Timestamp,
    /// Events by kind.
    counts: BTreeMap<String, i64>,
    /// Subscriptions that are no longer paid, at most `MAX_EXAMPLES + 1` per cell.
    lapsed: Vec<LapsedSubscription>,
}

impl ClockReport {
    async fn load(db: &Databases, from: Timestamp, to: Timestamp) -> anyhow::Result<Self> {
        let home = db.home()?.connection().await?;
        let tenants = tenants::table::list(&home).await?;
        let tenants: Vec<TenantId> = tenants.iter().map(|(tenant, _)| tenant.id).collect();
        let (mut counts, mut lapsed) = (BTreeMap::new(), Vec::new());
        for cell in db.cell_names() {
            let connection = db.cell(cell)?.connection().await?;
            for (kind, count) in events::count_by_kind(&connection, &tenants, from, to).await? {
                *counts.entry(kind).or_default() += count;
            }
            let limit = MAX_EXAMPLES + 1;
            lapsed.extend(list_lapsed(&connection, &tenants, (from, to), limit).await?);
        }
        Ok(Self { to, counts, lapsed })
    }

    fn count(&self, transition: Transition) -> i64 {
        let count = self.counts.get(transition.event_kind().as_str());
        count.copied().unwrap_or_default()
    }

    fn count_events(&self) -> i64 {
        self.counts.values().sum()
    }

    fn json(&self) -> serde_json::Value {
        let subscriptions = self.lapsed.iter().map(|subscription| {
            json!({
                "email": subscription.email,
                "subscription_id": subscription.subscription.to_string(),
                "status": subscription.status.as_str(),
            })
        });
        json!({
            "billing_time": format_seconds(self.to),
            "renewed": self.count(Transition::Renewed),
            "past_due": self.count(Transition::PastDue),
            "unpaid": self.count(Transition::Unpaid),
            "expired": self.count(Transition::Expired),
            "events": self.count_events(),
            "subscriptions": subscriptions.collect::<Vec<_>>(),
        })
    }

    fn print(&self) {
        println!(
            "{}: {} renewed · {} past_due · {} unpaid · {} expired · {}",
            self.to.strftime("%Y-%m-%d"),
            self.count(Transition::Renewed),
            self.count(Transition::PastDue),
            self.count(Transition::Unpaid),
            self.count(Transition::Expired),
            pluralize(self.count_events(), "event")
        );
        let max_examples = usize::try_from(MAX_EXAMPLES).unwrap_or(usize::MAX);
        for subscription in self.lapsed.iter().take(max_examples) {
            let (email, status) = (&subscription.email, subscription.status);
            print_wrapped(&format!("  {email}: {status} ({})", subscription.reason()));
        }
        if self.lapsed.len() > max_examples {
            println!("  … and others (`perennial user show` explains each)");
        }
    }
}
