//! `perennial webhook-endpoint test`, `attempts` and `replay`

use anyhow::bail;
use clap::Args;

use super::{EndpointArg, EndpointArgs, outbound_client};
use crate::{
    commands::{
        bootstrap,
        explain::date,
        pluralize,
        request_fields::{RequestFields, into_error},
        terminal::print_wrapped,
        text_table::Listing,
    },
    config::Mode,
    db::{AgeOrder, Databases},
    webhooks::{
        self, EndpointKey, WebhookAttemptView, WebhookReplayView,
        attempts_sql::{self, WebhookAttempt},
    },
};

#[derive(Debug, Args)]
pub struct WebhookAttemptsArgs {
    #[command(flatten)]
    endpoint: EndpointArg,
    /// List at most this many attempts
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial webhook-endpoint replay whe_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --event evt_0192f0c1a2b37c4d8e5f60718293a4b5
  perennial webhook-endpoint replay whe_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --from 2026-11-15T00:00:00Z --to 2026-11-16T00:00:00Z
  perennial webhook-endpoint replay whe_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --from 2026-11-15T00:00:00Z --only-failed

Receivers recognize repeated events by the header webhook-id.")]
pub struct WebhookReplayArgs {
    #[command(flatten)]
    endpoint: EndpointArg,
    /// Send this event only
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Send events that were recorded at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME", required_unless_present = "event")]
    from: Option<String>,
    /// Send events that were recorded before this time (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Event types, such as plan.created,subscription.* [default: those of the endpoint]
    #[arg(long, value_name = "TYPES")]
    event_types: Option<String>,
    /// Send only events whose attempts were given up
    #[arg(long)]
    only_failed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn send_test(
    db: &Databases,
    mode: Mode,
    EndpointArgs { endpoint, json }: &EndpointArgs,
) -> anyhow::Result<()> {
    let found = endpoint.find(db).await?;
    let keys = bootstrap::derived_keys(&db.home()?.connection().await?, mode).await?;
    let (database, origin, outbound) =
        (found.database(db)?, found.origin(), outbound_client(mode)?);
    let attempt = webhooks::test_endpoint(database, &origin, &keys, &outbound, endpoint.id)
        .await
        .map_err(into_error)?;
    if *json {
        let view = WebhookAttemptView::from(&attempt);
        println!("{}", serde_json::to_string(&view)?);
    } else {
        print_wrapped(&format!(
            "{}  {}, {}",
            attempt.event,
            result(&attempt),
            duration(&attempt)
        ));
    }
    if !attempt.is_success {
        bail!("the endpoint did not accept the test message with a status from 200 to 299");
    }
    Ok(())
}

fn result(attempt: &WebhookAttempt) -> String {
    match (attempt.status_code, &attempt.error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => String::new(),
    }
}

fn duration(attempt: &WebhookAttempt) -> String {
    format!("{} ms", attempt.duration_ms)
}

impl WebhookAttemptsArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let found = self.endpoint.find(db).await?;
        let connection = found.database(db)?.connection().await?;
        let key = EndpointKey {
            tenant: found.tenant.id,
            endpoint: self.endpoint.id,
        };
        let start = (AgeOrder::NewestFirst, None);
        let attempts = attempts_sql::list(&connection, key, start, self.limit.into()).await?;
        let header = ["EVENT", "TYPE", "ATTEMPT", "RESULT", "DURATION", "SENT"];
        let mut list = Listing::new(header, self.json);
        for attempt in &attempts {
            let row = [
                attempt.event.to_string(),
                attempt.kind.clone(),
                attempt.number.to_string(),
                result(attempt),
                duration(attempt),
                date(attempt.created_at),
            ];
            let object = serde_json::to_string(&WebhookAttemptView::from(attempt))?;
            list.add(row, &object);
        }
        list.print_or("no attempts");
        Ok(())
    }
}

impl WebhookReplayArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let body = RequestFields::default()
            .with("event_id", self.event)
            .with("from", self.from)
            .with("to", self.to)
            .with_list("event_types", self.event_types)
            .with("only_failed", Some(self.only_failed))
            .into_body()?;
        let mut range = webhooks::parse_replay(body).map_err(into_error)?;
        let found = self.endpoint.find(db).await?;
        let origin = found.origin();
        let mut connection = found.database(db)?.connection().await?;
        let positions = webhooks::find_positions(&connection, found.tenant.id, &mut range)
            .await
            .map_err(into_error)?;
        let tx = connection.begin();
        let context = origin.context(origin.clock.now(), &tx);
        let replay = webhooks::insert_replay(&context, self.endpoint.id, range, positions).await;
        let replay = replay.map_err(into_error)?;
        tx.commit().await?;
        if self.json {
            let view = WebhookReplayView::from(&replay);
            println!("{}", serde_json::to_string(&view)?);
        } else {
            let (first, last) = positions;
            let count = pluralize(last - first, "position");
            print_wrapped(&format!(
                "{}  sends the matching events of {count} of the log",
                replay.id
            ));
        }
        Ok(())
    }
}
