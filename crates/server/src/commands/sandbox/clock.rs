//! `perennial sandbox clock`: moves the billing clock, which subscriptions, payments and access
//! use.

use anyhow::anyhow;
use clap::Subcommand;
use jiff::{Span, Timestamp};
use perennial_domain::{TenantId, Transition};
use serde_json::json;

use crate::{
    auth::tenants,
    clock::Clock,
    commands::{bootstrap, pluralize, progress::ProgressBar, terminal::print_wrapped},
    db::Databases,
    sandbox::{self, ClockReport, add_span, parse_span},
};

/// How many changed subscriptions are printed.
const MAX_EXAMPLES: i64 = 5;

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
                sandbox::reset(db, Clock::System.now()).await?;
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

fn format_seconds(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn advance(db: &Databases, by: Span, json: bool) -> anyhow::Result<()> {
    let clocks = bootstrap::clocks(db).await?;
    let from = clocks.billing.now();
    let to = add_span(from, by).map_err(|message| anyhow!(message))?;
    let days = usize::try_from(to.duration_since(from).as_hours() / 24).unwrap_or(0) + 1;
    let bar = ProgressBar::new(days);
    let progress = |passed, instant: Timestamp| {
        bar.update(passed, &instant.strftime("%Y-%m-%d").to_string());
    };
    sandbox::advance(db, clocks, to, progress).await?;
    bar.clear();
    let home = db.home()?.connection().await?;
    let tenants = tenants::table::list(&home).await?;
    drop(home);
    let tenants: Vec<TenantId> = tenants.iter().map(|(tenant, _)| tenant.id).collect();
    let report = ClockReport::load(db, &tenants, (from, to), MAX_EXAMPLES + 1).await?;
    if json {
        println!("{}", to_json(&report, to));
    } else {
        print(&report, to);
    }
    Ok(())
}

fn to_json(report: &ClockReport, to: Timestamp) -> serde_json::Value {
    let subscriptions = report.lapsed.iter().map(|subscription| {
        json!({
            "email": subscription.email,
            "subscription_id": subscription.subscription.to_string(),
            "status": subscription.status.as_str(),
        })
    });
    json!({
        "billing_time": format_seconds(to),
        "renewed": report.count(Transition::Renewed),
        "past_due": report.count(Transition::PastDue),
        "unpaid": report.count(Transition::Unpaid),
        "expired": report.count(Transition::Expired),
        "events": report.count_events(),
        "subscriptions": subscriptions.collect::<Vec<_>>(),
    })
}

fn print(report: &ClockReport, to: Timestamp) {
    println!(
        "{}: {} renewed · {} past_due · {} unpaid · {} expired · {}",
        to.strftime("%Y-%m-%d"),
        report.count(Transition::Renewed),
        report.count(Transition::PastDue),
        report.count(Transition::Unpaid),
        report.count(Transition::Expired),
        pluralize(report.count_events(), "event")
    );
    let max_examples = usize::try_from(MAX_EXAMPLES).unwrap_or(usize::MAX);
    for subscription in report.lapsed.iter().take(max_examples) {
        let (email, status) = (&subscription.email, subscription.status);
        print_wrapped(&format!("  {email}: {status} ({})", subscription.reason()));
    }
    if report.lapsed.len() > max_examples {
        println!("  … and others (`perennial user show` explains each)");
    }
}
