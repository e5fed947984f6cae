//! `perennial event`: the events of a tenant, in the order in which they were committed.

use std::time::Duration;

use clap::{Args, Subcommand};
use perennial_domain::{EventTypePattern, EventTypes};

use super::{
    bootstrap, explain::date, stop_signal, tenant::TenantArg, terminal::eprint_wrapped,
    text_table::Listing,
};
use crate::{
    auth::Tenant,
    db::Databases,
    events::{
        log::{self, EventFilter, LogPage, LoggedEvent},
        view::EventView,
    },
};

/// How often `tail` reads the log.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Events per read.
const PAGE_EVENTS: i64 = 200;

#[derive(Debug, Subcommand)]
pub enum EventCommand {
    /// List events, oldest first
    #[command(after_help = "Examples:
  perennial event list --types subscription.past_due,subscription.unpaid
  perennial event list --after 1042 --limit 20 --json

Leaves out events about tenants, clients and identity providers, as
GET /events does.")]
    List(EventListArgs),
    /// Print the latest events, and new ones until Ctrl-C
    #[command(after_help = "Examples:
  perennial event tail
  perennial event tail --types subscription.* --json")]
    Tail(EventTailArgs),
}

#[derive(Debug, Args)]
struct EventFilterArgs {
    /// Event types, such as plan.created,subscription.*
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<EventTypePattern>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object per line, as GET /events returns it
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct EventListArgs {
    /// List events after this position [default: from the oldest event]
    #[arg(
        long,
        value_name = "POSITION",
        default_value_t = 0,
        hide_default_value = true
    )]
    after: i64,
    /// List at most this many events
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    filter: EventFilterArgs,
}

#[derive(Debug, Args)]
pub struct EventTailArgs {
    /// Start with the events of this many latest positions
    #[arg(
        short = 'n',
        long = "last",
        value_name = "NUMBER",
        default_value_t = 10
    )]
    last: u32,
    #[command(flatten)]
    filter: EventFilterArgs,
}

impl EventCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        match self {
            Self::List(list) => list.run(&db).await,
            Self::Tail(tail) => tail.run(&db).await,
        }
    }
}

impl EventListArgs {
    async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let mut reader = LogReader::open(db, &self.filter, self.after).await?;
        let limit = i64::from(self.limit);
        let mut list = Listing::new(HEADER, self.filter.json);
        let mut listed = 0;
        let has_more = loop {
            let page = reader.read((limit - listed).min(PAGE_EVENTS)).await?;
            for event in &page.events {
                listed += 1;
                list.add(row(event), &serde_json::to_string(&EventView::from(event))?);
            }
            if page.read_to >= page.last_position {
                break false;
            }
            if listed >= limit {
                break true;
            }
        };
        list.print_or("no events");
        if has_more {
            let position = reader.position;
            eprint_wrapped(&format!(
                "there may be more events; continue with --after {position}"
            ));
        }
        Ok(())
    }
}

impl EventTailArgs {
    async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let mut reader = LogReader::open(db, &self.filter, 0).await?;
        let head = reader.last_position().await?;
        reader.position = head.saturating_sub(i64::from(self.last)).max(0);
        let stop = stop_signal()?;
        while !stop.is_cancelled() {
            let page = reader.read(PAGE_EVENTS).await?;
            for event in &page.events {
                if self.filter.json {
                    println!("{}", serde_json::to_string(&EventView::from(event))?);
                } else {
                    let [position, recorded, kind, subject] = row(event);
                    println!("{position:>8}  {recorded}  {kind:28}  {subject}");
                }
            }
            if page.read_to >= page.last_position {
                let _ = tokio::time::timeout(POLL_INTERVAL, stop.cancelled()).await;
            }
        }
        Ok(())
    }
}

const HEADER: [&str; 4] = ["POSITION", "RECORDED", "TYPE", "SUBJECT"];

fn row(event: &LoggedEvent) -> [String; 4] {
    [
        event.position.to_string(),
        date(event.recorded_at),
        event.kind.to_string(),
        EventView::from(event).subject_id().to_owned(),
    ]
}

/// Reads a tenant's log from a position on.
struct LogReader<'a> {
    db: &'a Databases,
    tenant: Tenant,
    filter: EventFilter,
    position: i64,
}

impl<'a> LogReader<'a> {
    async fn open(
        db: &'a Databases,
        args: &EventFilterArgs,
        position: i64,
    ) -> anyhow::Result<Self> {
        let tenant = args.tenant.resolve(&db.home()?.connection().await?).await?;
        Ok(Self {
            db,
            tenant,
            filter: EventFilter {
                types: EventTypes::new(args.types.clone()),
                subject: None,
            },
            position,
        })
    }

    async fn last_position(&self) -> anyhow::Result<i64> {
        let connection = self.db.cell(&self.tenant.cell)?.connection().await?;
        let head = log::head(&connection, self.tenant.id).await?;
        Ok(head.last_position)
    }

    async fn read(&mut self, limit: i64) -> anyhow::Result<LogPage> {
        let mut connection = self.db.cell(&self.tenant.cell)?.connection().await?;
        let (tenant, after) = (self.tenant.id, self.position);
        let page = log::read_after(&mut connection, tenant, after, &self.filter, limit).await?;
        self.position = page.read_to;
        Ok(page)
    }
}
