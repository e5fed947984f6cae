//! `perennial client update`

use anyhow::bail;
use clap::Args;
use ipnet::IpNet;
use perennial_domain::{ClientId, Scope, SingleLine};

use crate::{
    clients::{self, ClientChanges, ClientView, ScopeLimit, parse_origin, table::ClientRow},
    clock::Clock,
    commands::{bootstrap, request_fields::into_error, tenant::TenantArg, terminal::print_wrapped},
    config::{Mode, parse_network},
    db::PooledConnection,
    http::etag::IfMatch,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial client update cli_0192f0c1a2b37c4d8e5f60718293a4b5 --name backend
  perennial client update cli_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --allowed-origin https://app.example.com \\
    --allowed-origin https://www.example.com

The kind cannot change: create another client. `client rotate` changes the
key.")]
pub struct ClientUpdateArgs {
    /// The client's id (cli_…)
    client: ClientId,
    #[command(flatten)]
    tenant: TenantArg,
    /// A new display name
    #[arg(long)]
    name: Option<SingleLine<200>>,
    /// What it may do (repeatable)
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// Accept it from these addresses only (CIDR; repeatable)
    #[arg(long = "allow-address", value_name = "CIDR", value_parser = parse_network)]
    allow_addresses: Vec<IpNet>,
    /// Web origins that may use it: scheme://host[:port] (publishable only; repeatable)
    #[arg(long = "allowed-origin", value_name = "ORIGIN", value_parser = parse_origin)]
    allowed_origins: Vec<String>,
    #[command(flatten)]
    reset: ResetArgs,
    /// Print one JSON object: the client, as `client list --json` prints it
    #[arg(long)]
    json: bool,
}

/// Flags that replace a list by its default.
#[derive(Debug, Args)]
pub struct ResetArgs {
    /// Give it the default scopes of its kind
    #[arg(long, conflicts_with = "scopes")]
    all_scopes: bool,
    /// Accept it from any address
    #[arg(long, conflicts_with = "allow_addresses")]
    any_address: bool,
    /// Let no web origin use it; apps that are not web pages still can
    #[arg(long, conflicts_with = "allowed_origins")]
    no_origins: bool,
}

impl ClientUpdateArgs {
    pub(super) async fn run(self, home: &mut PooledConnection, mode: Mode) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(home).await?;
        let id = self.client;
        let changes = ClientChanges {
            name: self.name,
            scopes: Some(self.scopes).filter(|scopes| !scopes.is_empty()),
            allow_addresses: replaced(self.allow_addresses, self.reset.any_address),
            allowed_origins: replaced(self.allowed_origins, self.reset.no_origins),
        };
        if changes.is_empty() && !self.reset.all_scopes {
            bail!("nothing to change; see `perennial client update --help`");
        }
        let changes = |current: &ClientRow| {
            let default_scopes = { self.reset.all_scopes }.then(|| current.kind.default_scopes());
            Ok(ClientChanges {
                scopes: default_scopes.or(changes.scopes),
                ..changes
            })
        };
        let origin = bootstrap::change_origin(&tenant, Clock::System);
        let target = (id, &IfMatch::ABSENT);
        let updated =
            clients::update_client(home, &origin, mode, ScopeLimit::All, target, changes).await;
        let client = updated.map_err(into_error)?;
        if self.json {
            println!("{}", serde_json::to_string(&ClientView::from(&client))?);
        } else {
            print_wrapped(&format!(
                "changed {id}; running instances apply it within a second"
            ));
        }
        Ok(())
    }
}

/// Returns the new list, an empty one to clear the current list, or `None` to keep it.
fn replaced<T>(items: Vec<T>, clear: bool) -> Option<Vec<T>> {
    (clear || !items.is_empty()).then_some(items)
}
