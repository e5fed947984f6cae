//! `perennial client`: the calling applications of a tenant.

use anyhow::bail;
use clap::{Args, Subcommand};
use ipnet::IpNet;
use jiff::SignedDuration;
use perennial_domain::{ClientId, ClientKind, Line, Scope};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{prepare, screen::say, table::Table, tenant::Which};
use crate::{
    callers::{
        Client,
        clients::{self, Outcome, table},
    },
    config::{Mode, network},
};

/// Make, list, rotate and disable clients.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Make a client and print the value for its header client-id, which is shown only once
    Create(Create),
    /// List a tenant's clients
    List {
        #[command(flatten)]
        which: Which,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Give a client a new value for its header; the old one goes on for a while
    Rotate {
        /// The client's id (cli_…)
        client: ClientId,
        #[command(flatten)]
        which: Which,
        /// How long the old value goes on, such as 24h or 30m; 0s ends it now
        #[arg(long, default_value = "24h", value_parser = duration)]
        keep_old: SignedDuration,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Switch a client off, for good
    Disable {
        /// The client's id (cli_…)
        client: ClientId,
        #[command(flatten)]
        which: Which,
    },
}

/// Make a client.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial client create --name backend
  perennial client create --kind publishable \\
    --allowed-origin https://app.example.com
  perennial client create --id DEMO --allow-address 10.0.0.0/8

The last is for an id of your own, that your servers send already.")]
pub struct Create {
    #[command(flatten)]
    which: Which,
    /// Where it runs: secret for a server, publishable for a browser or an app
    #[arg(long, default_value = "secret")]
    kind: ClientKind,
    /// What you call it
    #[arg(long)]
    name: Option<Line<200>>,
    /// Use this value for the header instead of a new one; in live mode only with --allow-address,
    /// since it can be guessed
    #[arg(long)]
    id: Option<Line<255>>,
    /// It may be used from these addresses only (CIDR; repeatable). Behind a proxy, set
    /// PERENNIAL_TRUSTED_PROXIES, or the address is the proxy's
    #[arg(long = "allow-address", value_name = "CIDR", value_parser = network)]
    allow_addresses: Vec<IpNet>,
    /// Web pages that may use it: scheme://host[:port] (publishable only; repeatable)
    #[arg(long = "allowed-origin", value_name = "ORIGIN", value_parser = origin)]
    allowed_origins: Vec<String>,
    /// What it may do (repeatable; default: all that its kind can have)
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// Print one JSON object: id, and client_id, the header's value
    #[arg(long)]
    json: bool,
}

impl ClientCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = prepare::open().await?;
        let mut home = db.home()?.connection().await?;
        let operator = prepare::operator();
        match self {
            Self::Create(create) => {
                let tenant = create.which.choose(&home).await?;
                create.check(mode)?;
                let scopes = if create.scopes.is_empty() {
                    create.kind.scopes()
                } else {
                    create.scopes
                };
                let client = Client {
                    id: operator.ids.next(operator.now),
                    kind: create.kind,
                    scopes,
                    allow_addresses: create.allow_addresses,
                    allowed_origins: create.allowed_origins,
                };
                let name = match create.name {
                    Some(name) => name,
                    None => create.kind.as_str().parse()?,
                };
                let given = create.id.as_ref().map(Line::as_str);
                let value = clients::create(&mut home, operator, tenant, &client, &name, given)
                    .await
                    .map_err(|error| match error.constraint() {
                        Some("client_values_hash") => {
                            anyhow::anyhow!("a client with this id exists")
                        }
                        _ => error.into(),
                    })?;
                show(client.id, value.expose_secret(), create.json);
            }
            Self::List { which, json } => {
                let tenant = which.choose(&home).await?;
                list(&table::list(&home, tenant, operator.now).await?, json);
            }
            Self::Rotate {
                client,
                which,
                keep_old,
                json,
            } => {
                let tenant = which.choose(&home).await?;
                let value = done(
                    client,
                    clients::rotate(&mut home, operator, tenant, client, keep_old).await?,
                )?;
                show(client, value.expose_secret(), json);
            }
            Self::Disable { client, which } => {
                let tenant = which.choose(&home).await?;
                done(
                    client,
                    clients::disable(&mut home, operator, tenant, client).await?,
                )?;
                say(&format!(
                    "disabled {client}; running instances refuse it within a second"
                ));
            }
        }
        Ok(())
    }
}

impl Create {
    /// What the type of each argument cannot say.
    fn check(&self, mode: Mode) -> anyhow::Result<()> {
        if let Some(id) = &self.id {
            if !id.as_str().bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!("--id: a header's value is made of visible ASCII characters");
            }
            if mode == Mode::Live && self.allow_addresses.is_empty() {
                bail!(
                    "--id: in live mode an id of your own needs --allow-address, since it can be guessed"
                );
            }
        }
        if self.kind == ClientKind::Secret && !self.allowed_origins.is_empty() {
            bail!(
                "--allowed-origin: a secret client must not be used in a browser; make a publishable one"
            );
        }
        let possible = self.kind.scopes();
        if let Some(scope) = self.scopes.iter().find(|scope| !possible.contains(scope)) {
            bail!("--scope {scope}: a {} client cannot have it", self.kind);
        }
        Ok(())
    }
}

fn done<T>(client: ClientId, outcome: Outcome<T>) -> anyhow::Result<T> {
    match outcome {
        Outcome::Done(value) => Ok(value),
        Outcome::NoSuchClient => bail!("there is no client {client}; see `perennial client list`"),
        Outcome::Disabled => bail!("{client} is disabled"),
    }
}

fn show(id: ClientId, value: &str, json: bool) {
    if json {
        println!("{}", json!({"id": id.to_string(), "client_id": value}));
    } else {
        println!("{id}\nclient-id: {value}");
        eprintln!("This value is shown only once; it is not kept anywhere.");
    }
}

fn list(clients: &[table::Listed], json: bool) {
    let mut list = Table::new([
        "ID",
        "KIND",
        "NAME",
        "SCOPES",
        "ADDRESSES",
        "ORIGINS",
        "IDS",
        "STATE",
    ]);
    for client in clients {
        let state = if client.disabled_at.is_some() {
            "disabled"
        } else {
            "enabled"
        };
        if json {
            println!(
                "{}",
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
            );
            continue;
        }
        let all = client
            .kind
            .parse::<ClientKind>()
            .is_ok_and(|kind| kind.scopes().len() == client.scopes.len());
        list.add_row([
            client.id.to_string(),
            client.kind.clone(),
            client.name.clone(),
            if all {
                "all".to_owned()
            } else {
                client.scopes.join(" ")
            },
            client.allow_addresses.join(" "),
            client.allowed_origins.join(" "),
            client.live_values.to_string(),
            state.to_owned(),
        ]);
    }
    if !json {
        list.print();
    }
}

/// An origin as browsers write it: no path, no slash at the end, no default port.
fn origin(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    let origin = url.origin();
    if !["http", "https"].contains(&url.scheme()) || !origin.is_tuple() {
        return Err("expected scheme://host[:port]".to_owned());
    }
    let written = origin.ascii_serialization();
    if text.trim_end_matches('/') != written {
        return Err(format!("an origin has no path; did you mean {written}?"));
    }
    Ok(written)
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    match text.parse::<SignedDuration>() {
        Ok(duration) if !duration.is_negative() => Ok(duration),
        _ => Err("expected a length of time such as 24h, 30m or 0s".to_owned()),
    }
}
