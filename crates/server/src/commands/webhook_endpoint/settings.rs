//! `perennial webhook-endpoint create`, `update` and `rotate-secret`

use anyhow::bail;
use clap::Args;
use perennial_domain::{DeliveryOrder, EndpointStatus};

use super::{EndpointArg, EndpointArgs, outbound_client, print_result, summary, update};
use crate::{
    clock::Clock,
    commands::{
        bootstrap,
        explain::date,
        request_fields::{RequestFields, into_error},
        tenant::TenantArg,
        terminal::print_wrapped,
    },
    config::Mode,
    db::Databases,
    webhooks::{self, CreatedWebhookEndpoint},
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial webhook-endpoint create --url https://example.com/webhooks
  perennial webhook-endpoint create --url https://example.com/webhooks \\
    --event-types 'subscription.*,payment.created' --order subject

The endpoint receives the events that are committed from now on. Receivers
verify requests with the secret.")]
pub struct WebhookEndpointCreateArgs {
    /// Where events are sent. Must be https in live mode, and resolve to a public address, or to one
    /// of PERENNIAL_WEBHOOK_NETWORKS
    #[arg(long)]
    url: String,
    #[command(flatten)]
    options: EndpointOptionArgs,
    /// Whether the endpoint receives events [default: enabled]
    #[arg(long)]
    status: Option<EndpointStatus>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object, which has the secret
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial webhook-endpoint update whe_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --event-types 'subscription.*'
  perennial webhook-endpoint update whe_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --event-types ''      all types")]
pub struct WebhookEndpointUpdateArgs {
    #[command(flatten)]
    endpoint: EndpointArg,
    /// Where events are sent
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    options: EndpointOptionArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The fields with a default.
#[derive(Debug, Args)]
pub struct EndpointOptionArgs {
    /// A note for operators; empty clears it
    #[arg(long)]
    description: Option<String>,
    /// Event types, such as plan.created,subscription.*; empty means all
    #[arg(long, value_name = "TYPES")]
    event_types: Option<String>,
    /// What a failed event delays: nothing (none), later events of its record (subject), or all
    /// later events (strict)
    #[arg(long)]
    order: Option<DeliveryOrder>,
}

impl EndpointOptionArgs {
    fn into_fields(self) -> RequestFields {
        RequestFields::default()
            .with_nullable("description", self.description)
            .with_list("event_types", self.event_types)
            .with("order", self.order.map(DeliveryOrder::as_str))
    }
}

impl WebhookEndpointCreateArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let home = db.home()?.connection().await?;
        let tenant = self.tenant.resolve(&home).await?;
        let body = { self.options.into_fields() }
            .with("url", Some(self.url))
            .with("status", self.status.map(EndpointStatus::as_str))
            .into_body()?;
        let details = webhooks::parse_create(body).map_err(into_error)?;
        webhooks::check_target(&outbound_client(mode)?.guard, &details.url)
            .await
            .map_err(into_error)?;
        let keys = bootstrap::derived_keys(&home, mode).await?;
        drop(home);
        let origin = bootstrap::change_origin(&tenant, Clock::System);
        let mut connection = db.cell(&tenant.cell)?.connection().await?;
        let tx = connection.begin();
        let context = origin.context(origin.clock.now(), &tx);
        let created = webhooks::insert_endpoint(&context, &keys, details).await;
        let (endpoint, secret) = created.map_err(into_error)?;
        tx.commit().await?;
        let created = CreatedWebhookEndpoint::new(&endpoint, &secret);
        if self.json {
            println!("{}", serde_json::to_string(&created)?);
        } else {
            print_wrapped(&summary(&endpoint));
            print_secret(created.secret());
        }
        Ok(())
    }
}

impl WebhookEndpointUpdateArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let fields = self.options.into_fields().with("url", self.url);
        if fields.is_empty() {
            bail!("nothing to change; see `perennial webhook-endpoint update --help`");
        }
        let updated = update(db, mode, &self.endpoint, fields).await?;
        print_result(&updated, self.json)
    }
}

pub(super) async fn rotate_secret(
    db: &Databases,
    mode: Mode,
    EndpointArgs { endpoint, json }: &EndpointArgs,
) -> anyhow::Result<()> {
    let found = endpoint.find(db).await?;
    let keys = bootstrap::derived_keys(&db.home()?.connection().await?, mode).await?;
    let (database, origin) = (found.database(db)?, found.origin());
    let view = webhooks::rotate_secret(database, &origin, &keys, endpoint.id)
        .await
        .map_err(into_error)?;
    if *json {
        println!("{}", serde_json::to_string(&view)?);
        return Ok(());
    }
    println!("{}", endpoint.id);
    print_secret(view.secret());
    if let Some(expires_at) = view.previous_secret_expires_at() {
        eprintln!("The previous secret signs too until {}.", date(expires_at));
    }
    Ok(())
}

fn print_secret(secret: &str) {
    println!("secret: {secret}");
    eprintln!("Store this secret now: it cannot be shown again.");
}
