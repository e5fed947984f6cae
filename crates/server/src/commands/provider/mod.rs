//! `perennial provider`: the identity providers whose tokens a tenant accepts.

use anyhow::bail;
use clap::Subcommand;
use perennial_domain::TenantId;
use serde_json::json;

use super::{bootstrap, tenant::TenantArg, text_table::Listing};
use crate::{
    db::PooledConnection,
    identity_providers::{self, IdentityProvider, table},
};

mod add;
mod check;

#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Accept the tokens of an OpenID Connect provider
    Add(add::ProviderAddArgs),
    /// List a tenant's providers
    List {
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Stop accepting the tokens of a provider
    Remove {
        #[command(flatten)]
        tenant: TenantArg,
        /// The issuer URL
        issuer: String,
    },
    /// Fetch a provider's metadata and verify a token
    #[command(after_help = "Examples:
  perennial provider check https://id.example.com
  perennial provider check https://id.example.com --token token.txt

With a token, also prints whom it identifies. The token is read from a file or
from standard input (-), because other users can see command lines.")]
    Check {
        #[command(flatten)]
        tenant: TenantArg,
        /// The issuer URL
        issuer: String,
        /// A file with an access token, or - for standard input
        #[arg(long, value_name = "FILE")]
        token: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl ProviderCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = bootstrap::open().await?;
        let mut home = db.home()?.connection().await?;
        let context = bootstrap::system_context();
        match self {
            Self::Add(add) => {
                let tenant = add.tenant.resolve(&home).await?.id;
                let provider = add.provider(&home, mode).await?;
                let added = identity_providers::add(&mut home, context, tenant, &provider).await;
                added.map_err(|error| match error.constraint() {
                    Some("identity_providers_issuer") => anyhow::anyhow!(
                        "{} has already been added; remove it first to change it",
                        provider.issuer
                    ),
                    Some("identity_providers_opaque") => anyhow::anyhow!(
                        "there is already a provider whose tokens do not name their issuer; a tenant can have only one"
                    ),
                    _ => error.into(),
                })?;
                println!("added {}", provider.issuer);
                eprintln!("next: perennial provider check {}", provider.issuer);
            }
            Self::List { tenant, json } => {
                let tenant = tenant.resolve(&home).await?.id;
                list(&table::list(&home, tenant).await?, json);
            }
            Self::Remove { tenant, issuer } => {
                let tenant = tenant.resolve(&home).await?.id;
                if !identity_providers::remove(&mut home, context, tenant, &issuer).await? {
                    bail!("there is no provider {issuer}; see `perennial provider list`");
                }
                println!("removed {issuer}");
            }
            Self::Check {
                tenant,
                issuer,
                token,
                json,
            } => {
                let tenant = tenant.resolve(&home).await?.id;
                let provider = find(&home, tenant, &issuer).await?;
                let sealing_key = bootstrap::sealing_key(&home, mode).await?;
                check::check(provider, sealing_key, token.as_deref(), json).await?;
            }
        }
        Ok(())
    }
}

fn list(providers: &[IdentityProvider], json: bool) {
    let mut list = Listing::new(["ISSUER", "VERIFY", "AUDIENCES"], json);
    for provider in providers {
        let (issuer, audiences) = (&provider.issuer, &provider.audiences);
        let verify = provider.verify.as_str();
        let object = json!({"issuer": issuer, "verify": verify, "audiences": audiences});
        let row = [issuer.clone(), verify.to_owned(), audiences.join(" ")];
        list.add(row, object);
    }
    list.print_or("no providers; add one with `perennial provider add`");
}

async fn find(
    home: &PooledConnection,
    tenant: TenantId,
    issuer: &str,
) -> anyhow::Result<IdentityProvider> {
    let providers = table::list(home, tenant).await?;
    if let Some(provider) = providers.iter().find(|provider| provider.issuer == issuer) {
        return Ok(provider.clone());
    }
    let issuers = providers.iter().map(|provider| provider.issuer.as_str());
    match perennial_domain::suggest(issuer, issuers) {
        Some(similar) => bail!("there is no provider {issuer}; did you mean {similar}?"),
        None => bail!("there is no provider {issuer}; see `perennial provider list`"),
    }
}
