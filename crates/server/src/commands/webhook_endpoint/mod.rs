//! `perennial webhook-endpoint`: a tenant's webhook endpoints, by the rules of the API.

use anyhow::Context;
use clap::{Args, Subcommand};
use perennial_domain::{DisabledReason, EndpointStatus, WebhookEndpoint, WebhookEndpointId};

use super::{
    bootstrap,
    explain::date,
    request_fields::{RequestFields, into_error},
    tenant::TenantArg,
    terminal::print_wrapped,
    text_table::Listing,
};
use crate::{
    auth::Tenant,
    clock::Clock,
    config::{Mode, StorageConfig},
    db::{CellDatabase, Databases},
    http::{etag::IfMatch, outbound::OutboundClient},
    record::ChangeOrigin,
    webhooks::{self, WebhookEndpointView, table},
};

mod deliveries;
mod settings;

#[derive(Debug, Subcommand)]
pub enum WebhookEndpointCommand {
    /// Create an endpoint and print its secret, which is shown only once
    Create(settings::WebhookEndpointCreateArgs),
    /// List a tenant's endpoints, newest first
    List {
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show an endpoint
    Show(EndpointArgs),
    /// Change an endpoint's URL, description, event types or order
    Update(settings::WebhookEndpointUpdateArgs),
    /// Delete an endpoint
    Delete {
        #[command(flatten)]
        endpoint: EndpointArg,
    },
    /// Enable an endpoint; it continues with the first event that it has not received
    Enable(EndpointArgs),
    /// Disable an endpoint; it keeps its position in the event log
    Disable(EndpointArgs),
    /// Rotate an endpoint's secret; requests are signed with the old one too for 24 hours
    RotateSecret(EndpointArgs),
    /// Send a signed test message once; fails if the endpoint does not accept it
    Test(EndpointArgs),
    /// List the attempts to deliver events, newest first; they are kept for 30 days
    Attempts(deliveries::WebhookAttemptsArgs),
    /// Send the events of a time range again, after those that are new
    Replay(deliveries::WebhookReplayArgs),
}

/// An endpoint of a tenant.
#[derive(Debug, Args)]
pub struct EndpointArg {
    /// The endpoint's id (whe_…)
    #[arg(value_name = "ENDPOINT")]
    id: WebhookEndpointId,
    #[command(flatten)]
    tenant: TenantArg,
}

#[derive(Debug, Args)]
pub struct EndpointArgs {
    #[command(flatten)]
    endpoint: EndpointArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl WebhookEndpointCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = bootstrap::open().await?;
        db.wait_until_connected().await;
        match self {
            Self::Create(args) => args.run(&db, mode).await,
            Self::List { tenant, json } => list(&db, &tenant, json).await,
            Self::Show(EndpointArgs { endpoint, json }) => {
                let found = endpoint.find(&db).await?;
                if json {
                    return print_json(&found.record);
                }
                print_details(&found.record);
                Ok(())
            }
            Self::Update(args) => args.run(&db, mode).await,
            Self::Delete { endpoint } => {
                let found = endpoint.find(&db).await?;
                let (database, origin) = (found.database(&db)?, found.origin());
                webhooks::delete_endpoint(database, &origin, endpoint.id, &IfMatch::ABSENT)
                    .await
                    .map_err(into_error)?;
                println!("deleted {}", endpoint.id);
                Ok(())
            }
            Self::Enable(EndpointArgs { endpoint, json }) => {
                let found = endpoint.find(&db).await?;
                let (database, origin) = (found.database(&db)?, found.origin());
                let enabled = webhooks::enable_endpoint(database, &origin, endpoint.id);
                print_result(&enabled.await.map_err(into_error)?, json)
            }
            Self::Disable(EndpointArgs { endpoint, json }) => {
                let status = Some(EndpointStatus::Disabled.as_str());
                let fields = RequestFields::default().with("status", status);
                let disabled = update(&db, mode, &endpoint, fields).await?;
                print_result(&disabled, json)
            }
            Self::RotateSecret(args) => settings::rotate_secret(&db, mode, &args).await,
            Self::Test(args) => deliveries::send_test(&db, mode, &args).await,
            Self::Attempts(args) => args.run(&db).await,
            Self::Replay(args) => args.run(&db).await,
        }
    }
}

/// An endpoint, and the tenant that it belongs to.
struct FoundEndpoint {
    tenant: Tenant,
    record: WebhookEndpoint,
}

impl EndpointArg {
    async fn find(&self, db: &Databases) -> anyhow::Result<FoundEndpoint> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let record = table::find(db.cell(&tenant.cell)?, tenant.id, self.id).await?;
        let record = record.with_context(|| {
            format!(
                "there is no webhook endpoint {}; see `perennial webhook-endpoint list`",
                self.id
            )
        })?;
        Ok(FoundEndpoint { tenant, record })
    }
}

impl FoundEndpoint {
    fn database<'a>(&self, db: &'a Databases) -> anyhow::Result<&'a CellDatabase> {
        Ok(db.cell(&self.tenant.cell)?)
    }

    fn origin(&self) -> ChangeOrigin<'_> {
        bootstrap::change_origin(&self.tenant, Clock::System)
    }
}

/// Returns a client with the address rules of deliveries.
pub fn outbound_client(mode: Mode) -> anyhow::Result<OutboundClient> {
    let networks = StorageConfig::webhooks_from_env()?.networks;
    OutboundClient::new(&networks, mode == Mode::Live)
}

async fn update(
    db: &Databases,
    mode: Mode,
    endpoint: &EndpointArg,
    fields: RequestFields,
) -> anyhow::Result<WebhookEndpoint> {
    let found = endpoint.find(db).await?;
    let (database, origin) = (found.database(db)?, found.origin());
    let guard = outbound_client(mode)?.guard;
    let (id, body) = (endpoint.id, fields.into_body()?);
    webhooks::update_endpoint(database, &origin, &guard, id, &IfMatch::ABSENT, body)
        .await
        .map_err(into_error)
}

async fn list(db: &Databases, tenant: &TenantArg, json: bool) -> anyhow::Result<()> {
    let tenant = tenant.resolve(&db.home()?.connection().await?).await?;
    let connection = db.cell(&tenant.cell)?.connection().await?;
    let mut list = Listing::new(["ID", "URL", "TYPES", "ORDER", "STATE"], json);
    for endpoint in webhooks::list_all(&connection, tenant.id).await? {
        let details = &endpoint.details;
        let row = [
            endpoint.id.to_string(),
            details.url.as_str().to_owned(),
            types(&endpoint),
            details.order.to_string(),
            state(&endpoint),
        ];
        let object = serde_json::to_string(&WebhookEndpointView::from(&endpoint))?;
        list.add(row, &object);
    }
    list.print_or("no webhook endpoints; create one with `perennial webhook-endpoint create`");
    Ok(())
}

fn types(endpoint: &WebhookEndpoint) -> String {
    match endpoint.details.event_types.names().as_slice() {
        [] => "all".to_owned(),
        names => names.join(" "),
    }
}

fn state(endpoint: &WebhookEndpoint) -> String {
    match (endpoint.disabled, endpoint.failing_since) {
        (Some((DisabledReason::Request, _)), _) => "disabled".to_owned(),
        (Some((DisabledReason::Gone, _)), _) => "disabled: responded with 410".to_owned(),
        (Some((DisabledReason::Failures, _)), _) => "disabled: failed for 5 days".to_owned(),
        (None, Some(since)) => format!("failing since {}", date(since)),
        (None, None) => "enabled".to_owned(),
    }
}

fn summary(endpoint: &WebhookEndpoint) -> String {
    let url = endpoint.details.url.as_str();
    format!("{}  {url}, {}", endpoint.id, state(endpoint))
}

fn print_json(endpoint: &WebhookEndpoint) -> anyhow::Result<()> {
    let view = WebhookEndpointView::from(endpoint);
    println!("{}", serde_json::to_string(&view)?);
    Ok(())
}

/// Prints an endpoint after a change.
fn print_result(endpoint: &WebhookEndpoint, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(endpoint);
    }
    print_wrapped(&summary(endpoint));
    Ok(())
}

fn print_details(endpoint: &WebhookEndpoint) {
    print_wrapped(&summary(endpoint));
    let details = &endpoint.details;
    let description = details.description.as_ref().map(ToString::to_string);
    let lines = [
        ("description", description.unwrap_or_default()),
        ("event types", types(endpoint)),
        ("order", details.order.to_string()),
        ("created", date(endpoint.created_at)),
        ("updated", date(endpoint.updated_at)),
        (
            "disabled",
            endpoint
                .disabled
                .map_or_else(String::new, |(_, at)| date(at)),
        ),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        print_wrapped(&format!("    {name}: {value}"));
    }
}
