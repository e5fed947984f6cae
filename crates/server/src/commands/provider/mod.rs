//! `perennial provider`: the identity providers whose tokens a tenant accepts.

use std::io::{IsTerminal, stdin};

use anyhow::{Context, bail};
use clap::Subcommand;
use perennial_domain::TenantId;
use serde_json::json;

use super::{
    bootstrap, pluralize, request_fields::into_error, session::revoke::end_provider_sessions,
    tenant::TenantArg, text_table::Listing, webhook_endpoint::outbound_client,
};
use crate::{
    clock::Clock,
    db::PooledConnection,
    http::etag::IfMatch,
    identity_providers::{IdentityProvider, table},
    tenant_providers,
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
    #[command(after_help = "Examples:
  perennial provider remove https://id.example.com --end-sessions
  perennial provider remove https://id.example.com --keep-sessions

Without a flag, asks whether to end the sessions.")]
    Remove {
        #[command(flatten)]
        tenant: TenantArg,
        /// The issuer URL
        issuer: String,
        /// End the sessions of users who signed in with this provider (takes 12 seconds)
        #[arg(long, conflicts_with = "keep_sessions")]
        end_sessions: bool,
        /// Leave these users signed in until their sessions expire
        #[arg(long)]
        keep_sessions: bool,
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
        match self {
            Self::Add(add) => {
                let tenant = add.tenant.resolve(&home).await?;
                let provider = add.provider(&home, mode).await?;
                let origin = bootstrap::change_origin(&tenant, Clock::System);
                let tx = home.begin();
                let context = origin.context(origin.clock.now(), &tx);
                let added = tenant_providers::insert_provider(&context, provider).await;
                let provider = added.map_err(into_error)?.provider;
                tx.commit().await?;
                println!("added {}", provider.issuer);
                eprintln!("next: perennial provider check {}", provider.issuer);
            }
            Self::List { tenant, json } => {
                let tenant = tenant.resolve(&home).await?.id;
                list(&table::list(&home, tenant).await?, json);
            }
            Self::Remove {
                tenant,
                issuer,
                end_sessions,
                keep_sessions,
            } => {
                let tenant = tenant.resolve(&home).await?;
                find(&home, tenant.id, &issuer).await?;
                let end_sessions = end_sessions || !keep_sessions && ask_to_end_sessions(&issuer)?;
                let origin = bootstrap::change_origin(&tenant, Clock::System);
                let id = table::find_by_issuer(&home, tenant.id, &issuer).await?;
                let id = id.context("the provider has just been removed")?;
                let tx = home.begin();
                let context = origin.context(origin.clock.now(), &tx);
                tenant_providers::remove_provider(&context, id, &IfMatch::ABSENT)
                    .await
                    .map_err(into_error)?;
                tx.commit().await?;
                println!("removed {issuer}");
                if end_sessions {
                    let count = end_provider_sessions(&db, &tenant, &issuer).await?;
                    println!("revoked {}", pluralize(count, "session"));
                }
            }
            Self::Check {
                tenant,
                issuer,
                token,
                json,
            } => {
                let tenant = tenant.resolve(&home).await?.id;
                let provider = find(&home, tenant, &issuer).await?;
                let keys = bootstrap::derived_keys(&home, mode).await?;
                let guard = outbound_client(mode)?.guard;
                check::check(provider, keys, guard, token.as_deref(), json).await?;
            }
        }
        Ok(())
    }
}

/// Asks at the terminal whether to end the sessions of a provider that is being removed.
fn ask_to_end_sessions(issuer: &str) -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        bail!(
            "choose --end-sessions, to end the sessions of users who signed in with {issuer}, or --keep-sessions; nothing was changed"
        );
    }
    eprint!("End the sessions of users who signed in with {issuer}? [y/n] ");
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => bail!("enter y or n; nothing was changed"),
    }
}

fn list(providers: &[IdentityProvider], json: bool) {
    let mut list = Listing::new(["ISSUER", "VERIFY", "AUDIENCES", "ALSO ACCEPTS"], json);
    for provider in providers {
        let (issuer, audiences) = (&provider.issuer, &provider.audiences);
        let verify = provider.verify.as_str();
        let accept = provider.accept;
        let object = json!({
            "issuer": issuer,
            "verify": verify,
            "audiences": audiences,
            "accept_id_tokens": accept.id_tokens,
            "accept_bound_tokens": accept.bound_tokens,
            "accept_azp": accept.azp,
        });
        let row = [
            issuer.clone(),
            verify.to_owned(),
            audiences.join(" "),
            accept.flags(),
        ];
        list.add(row, &object);
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
