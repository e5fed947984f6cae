//! `perennial client`: a tenant's clients and their API keys (values of the `client-id` header).

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use jiff::SignedDuration;
use perennial_domain::{ClientId, ClientKind, Scope, SingleLine};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{bootstrap, tenant::TenantArg, terminal::print_wrapped, text_table::Listing};
use crate::{
    auth::{
        Client,
        clients::{self, ClientChange, table},
    },
    config::{Mode, parse_network},
};

mod update;

#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Create a client and print its API key (the value of the client-id header), which is shown
    /// only once
    Create(ClientCreateArgs),
    /// List a tenant's clients
    List {
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Change a client's name, scopes, addresses or origins; a list replaces the current one
    Update(update::ClientUpdateArgs),
    /// Rotate an API key; the old key works for a grace period
    Rotate {
        /// The client's id (cli_…)
        client: ClientId,
        #[command(flatten)]
        tenant: TenantArg,
        /// How long the old key keeps working, such as 24h or 30m; 0s revokes it immediately
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
        keep_old: SignedDuration,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Disable a client permanently
    Disable {
        /// The client's id (cli_…)
        client: ClientId,
        #[command(flatten)]
        tenant: TenantArg,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial client create --name backend
  perennial client create --kind publishable \\
    --allowed-origin https://app.example.com
  perennial client create --id DEMO --allow-address 10.0.0.0/8

Use --id for a key that your servers already send.")]
pub struct ClientCreateArgs {
    #[command(flatten)]
    tenant: TenantArg,
    /// Where it is used: secret for a server, publishable for a browser or an app
    #[arg(long, default_value = "secret")]
    kind: ClientKind,
    /// A display name
    #[arg(long)]
    name: Option<SingleLine<200>>,
    /// Use this API key instead of a generated one. In live mode it requires --allow-address,
    /// because it can be guessed
    #[arg(long)]
    id: Option<SingleLine<255>>,
    /// Accept it from these addresses only (CIDR; repeatable). Behind a proxy, set
    /// PERENNIAL_TRUSTED_PROXIES, or the address is the proxy's
    #[arg(long = "allow-address", value_name = "CIDR", value_parser = parse_network)]
    allow_addresses: Vec<IpNet>,
    /// Web origins that may use it: scheme://host[:port] (publishable only; repeatable)
    #[arg(long = "allowed-origin", value_name = "ORIGIN", value_parser = parse_origin)]
    allowed_origins: Vec<String>,
    /// What it may do (repeatable; default: all scopes of its kind)
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// Print one JSON object: id, and client_id, which is the API key
    #[arg(long)]
    json: bool,
}

impl ClientCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = bootstrap::open().await?;
        let mut home = db.home()?.connection().await?;
        let context = bootstrap::system_context();
        match self {
            Self::Create(create) => {
                let tenant = create.tenant.resolve(&home).await?.id;
                create.check(mode)?;
                let scopes = if create.scopes.is_empty() {
                    create.kind.allowed_scopes()
                } else {
                    create.scopes
                };
                let client = Client {
                    id: context.ids.generate(context.now),
                    kind: create.kind,
                    scopes,
                    allow_addresses: create.allow_addresses,
                    allowed_origins: create.allowed_origins,
                };
                let name = match create.name {
                    Some(name) => name,
                    None => create.kind.as_str().parse()?,
                };
                let id = create.id.as_ref().map(SingleLine::as_str);
                let key = clients::create(&mut home, context, tenant, &client, &name, id)
                    .await
                    .map_err(|error| match error.constraint() {
                        Some("client_values_hash") => {
                            anyhow!("--id: another client already uses this key")
                        }
                        _ => error.into(),
                    })?;
                print_key(client.id, key.expose_secret(), create.json);
            }
            Self::List { tenant, json } => {
                let tenant = tenant.resolve(&home).await?.id;
                list(&table::list(&home, tenant, context.now).await?, json);
            }
            Self::Update(args) => args.run(&mut home, mode).await?,
            Self::Rotate {
                client,
                tenant,
                keep_old,
                json,
            } => {
                let tenant = tenant.resolve(&home).await?.id;
                let outcome = clients::rotate(&mut home, context, tenant, client, keep_old).await?;
                print_key(client, into_result(client, outcome)?.expose_secret(), json);
            }
            Self::Disable { client, tenant } => {
                let tenant = tenant.resolve(&home).await?.id;
                let outcome = clients::disable(&mut home, context, tenant, client).await?;
                into_result(client, outcome)?;
                print_wrapped(&format!(
                    "disabled {client}; running instances refuse it within a second"
                ));
            }
        }
        Ok(())
    }
}

impl ClientCreateArgs {
    /// Checks rules that involve several arguments.
    fn check(&self, mode: Mode) -> anyhow::Result<()> {
        if let Some(id) = &self.id {
            if !id.as_str().bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!("--id: must contain visible ASCII characters only");
            }
            if mode == Mode::Live && self.allow_addresses.is_empty() {
                bail!("--id: requires --allow-address in live mode, because it can be guessed");
            }
        }
        clients::check_settings(self.kind, &self.scopes, &self.allowed_origins)
            .map_err(|message| anyhow!(message))
    }
}

fn into_result<T>(client: ClientId, outcome: ClientChange<T>) -> anyhow::Result<T> {
    match outcome {
        ClientChange::Applied(value) => Ok(value),
        ClientChange::NotFound => bail!("there is no client {client}; see `perennial client list`"),
        ClientChange::Disabled => bail!("{client} is disabled"),
        ClientChange::Refused(message) => bail!(message),
    }
}

fn print_key(id: ClientId, key: &str, json: bool) {
    if json {
        println!("{}", json!({"id": id.to_string(), "client_id": key}));
    } else {
        println!("{id}\nclient-id: {key}");
        eprintln!("Store this key now: it cannot be shown again.");
    }
}

fn client_json(client: &table::ClientRow) -> Value {
    json!({
        "id": client.id.to_string(),
        "kind": client.kind,
        "name": client.name,
        "scopes": client.scopes,
        "allow_addresses": client.allow_addresses,
        "allowed_origins": client.allowed_origins,
        "live_values": client.live_values,
        "created_at": client.created_at.to_string(),
        "disabled_at": client.disabled_at.map(|at| at.to_string()),
    })
}

fn list(clients: &[table::ClientRow], json: bool) {
    let header = [
        "ID",
        "KIND",
        "NAME",
        "SCOPES",
        "ADDRESSES",
        "ORIGINS",
        "KEYS",
        "STATE",
    ];
    let mut list = Listing::new(header, json);
    for client in clients {
        let kind = client.kind.parse::<ClientKind>();
        let has_all_scopes =
            kind.is_ok_and(|kind| kind.allowed_scopes().len() == client.scopes.len());
        let state = match client.disabled_at {
            Some(_) => "disabled",
            None => "enabled",
        };
        let row = [
            client.id.to_string(),
            client.kind.clone(),
            client.name.clone(),
            if has_all_scopes {
                "all".to_owned()
            } else {
                client.scopes.join(" ")
            },
            client.allow_addresses.join(" "),
            client.allowed_origins.join(" "),
            client.live_values.to_string(),
            state.to_owned(),
        ];
        list.add(row, &client_json(client));
    }
    list.print();
}

/// Parses an origin as browsers send it: no path, no trailing slash, no default port.
fn parse_origin(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    let origin = url.origin();
    if !["http", "https"].contains(&url.scheme()) || !origin.is_tuple() {
        return Err("expected scheme://host[:port]".to_owned());
    }
    let canonical = origin.ascii_serialization();
    if text.trim_end_matches('/') != canonical {
        return Err(format!("an origin has no path; did you mean {canonical}?"));
    }
    Ok(canonical)
}

fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    match text.parse::<SignedDuration>() {
        Ok(duration) if !duration.is_negative() => Ok(duration),
        _ => Err("expected a duration such as 24h, 30m or 0s".to_owned()),
    }
}
