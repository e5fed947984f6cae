//! `perennial client`: a tenant's clients and their API keys (values of the `client-id` header).

use anyhow::bail;
use clap::{Args, Subcommand};
use ipnet::IpNet;
use jiff::SignedDuration;
use perennial_domain::{ClientId, ClientKind, Scope, SingleLine};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{
    bootstrap, request_fields::into_error, tenant::TenantArg, terminal::print_wrapped,
    text_table::Listing,
};
use crate::{
    clients::{self, ClientView, NewClient, ScopeLimit, parse_origin, table},
    clock::Clock,
    config::{Mode, parse_network},
    http::etag::IfMatch,
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
    /// What it may do (repeatable; default: all scopes of its kind, except
    /// those of clients, identity providers, staff, health and the sandbox)
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
        match self {
            Self::Create(create) => {
                let tenant = create.tenant.resolve(&home).await?;
                create.check(mode)?;
                let name = match create.name {
                    Some(name) => name,
                    None => create.kind.as_str().parse()?,
                };
                let client = NewClient {
                    kind: create.kind,
                    name,
                    scopes: Some(create.scopes).filter(|scopes| !scopes.is_empty()),
                    allow_addresses: create.allow_addresses,
                    allowed_origins: create.allowed_origins,
                };
                let origin = bootstrap::change_origin(&tenant, Clock::System);
                let tx = home.begin();
                let context = origin.context(origin.clock.now(), &tx);
                let key = create.id.as_ref().map(SingleLine::as_str);
                let created = clients::insert_client(&context, ScopeLimit::All, client, key).await;
                let (client, key) = created.map_err(into_error)?;
                tx.commit().await?;
                print_key(client.id, key.expose_secret(), create.json);
            }
            Self::List { tenant, json } => {
                let tenant = tenant.resolve(&home).await?.id;
                list(&table::list(&home, tenant).await?, json);
            }
            Self::Update(args) => args.run(&mut home, mode).await?,
            Self::Rotate {
                client,
                tenant,
                keep_old,
                json,
            } => {
                let tenant = tenant.resolve(&home).await?;
                let origin = bootstrap::change_origin(&tenant, Clock::System);
                let limit = ScopeLimit::All;
                let rotated =
                    clients::rotate_api_key(&mut home, &origin, limit, client, keep_old).await;
                print_key(client, &rotated.map_err(into_error)?.client_id, json);
            }
            Self::Disable { client, tenant } => {
                let tenant = tenant.resolve(&home).await?;
                let origin = bootstrap::change_origin(&tenant, Clock::System);
                clients::disable_client(&mut home, &origin, client, &IfMatch::ABSENT)
                    .await
                    .map_err(into_error)?;
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
        Ok(())
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
        let settings = &client.settings;
        let default_scopes = client.kind.default_scopes();
        let has_default_scopes = default_scopes.len() == settings.scopes.len()
            && default_scopes
                .iter()
                .all(|scope| settings.scopes.iter().any(|own| own == scope.as_str()));
        let state = match client.disabled_at {
            Some(_) => "disabled",
            None => "enabled",
        };
        let row = [
            client.id.to_string(),
            client.kind.to_string(),
            settings.name.clone(),
            if has_default_scopes {
                "default".to_owned()
            } else {
                settings.scopes.join(" ")
            },
            settings.allow_addresses.join(" "),
            settings.allowed_origins.join(" "),
            client.live_values.to_string(),
            state.to_owned(),
        ];
        list.add(row, &json!(ClientView::from(client)));
    }
    list.print();
}

fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    match text.parse::<SignedDuration>() {
        Ok(duration) if !duration.is_negative() => Ok(duration),
        _ => Err("expected a duration such as 24h, 30m or 0s".to_owned()),
    }
}
