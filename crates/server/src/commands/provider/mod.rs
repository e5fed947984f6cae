//! `perennial provider`: the identity providers whose tokens a tenant accepts.

use anyhow::bail;
use clap::Subcommand;
use perennial_domain::TenantId;
use serde_json::json;

use super::{prepare, table::Table, tenant::Which};
use crate::{
    db::Connection,
    providers::{Provider, listed, table},
};

mod add;
mod check;

/// Add, list, check and remove identity providers.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Accept the tokens of an OpenID provider
    Add(add::Add),
    /// List the providers of a tenant
    List {
        #[command(flatten)]
        which: Which,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// No longer accept the tokens of a provider
    Remove {
        #[command(flatten)]
        which: Which,
        /// Its issuer
        issuer: String,
    },
    /// Ask a provider what it publishes, and hold a token against it
    #[command(after_help = "Examples:
  perennial provider check https://id.example.com
  perennial provider check https://id.example.com --token token.txt

With a token it says whom that proves. A token is read from a file or from
standard input (-), never from the command line, where others could see it.")]
    Check {
        #[command(flatten)]
        which: Which,
        /// Its issuer
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
        let (db, mode) = prepare::open().await?;
        let mut home = db.home()?.connection().await?;
        let operator = prepare::operator();
        match self {
            Self::Add(add) => {
                let tenant = add.which.choose(&home).await?;
                let provider = add.provider(&home, mode).await?;
                let added = listed::add(&mut home, operator, tenant, &provider).await;
                added.map_err(|error| match error.constraint() {
                    Some("identity_providers_issuer") => anyhow::anyhow!(
                        "{} is listed already; remove it first to change it",
                        provider.issuer
                    ),
                    Some("identity_providers_opaque") => anyhow::anyhow!(
                        "another provider is listed whose tokens do not say who made them, and there can be one"
                    ),
                    _ => error.into(),
                })?;
                println!("added {}", provider.issuer);
                eprintln!("Next: perennial provider check {}", provider.issuer);
            }
            Self::List { which, json } => {
                let tenant = which.choose(&home).await?;
                list(&table::list(&home, tenant).await?, json);
            }
            Self::Remove { which, issuer } => {
                let tenant = which.choose(&home).await?;
                if !listed::remove(&mut home, operator, tenant, &issuer).await? {
                    bail!("{issuer} is not listed; see `perennial provider list`");
                }
                println!("removed {issuer}");
            }
            Self::Check {
                which,
                issuer,
                token,
                json,
            } => {
                let tenant = which.choose(&home).await?;
                let provider = find(&home, tenant, &issuer).await?;
                let sealing = prepare::sealing_key(&home, mode).await?;
                check::check(provider, sealing, token.as_deref(), json).await?;
            }
        }
        Ok(())
    }
}

fn list(providers: &[Provider], json: bool) {
    let mut table = Table::new(["ISSUER", "VERIFY", "AUDIENCES"]);
    for Provider {
        issuer,
        audiences,
        verify,
    } in providers
    {
        let verify = verify.as_str();
        if json {
            let line = json!({"issuer": issuer, "verify": verify, "audiences": audiences});
            println!("{line}");
        } else {
            table.add_row([issuer.clone(), verify.to_owned(), audiences.join(" ")]);
        }
    }
    if providers.is_empty() && !json {
        println!("none; `perennial provider add` lists one");
    } else if !json {
        table.print();
    }
}

async fn find(home: &Connection, tenant: TenantId, issuer: &str) -> anyhow::Result<Provider> {
    let listed = table::list(home, tenant).await?;
    let names: Vec<&str> = listed.iter().map(|one| one.issuer.as_str()).collect();
    match listed.iter().find(|one| one.issuer == issuer) {
        Some(provider) => Ok(provider.clone()),
        None => match perennial_domain::closest(issuer, names) {
            Some(near) => bail!("{issuer} is not listed; did you mean {near}?"),
            None => bail!("{issuer} is not listed; see `perennial provider list`"),
        },
    }
}
