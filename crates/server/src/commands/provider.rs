//! `perennial provider`: the identity providers whose tokens a tenant accepts.

use std::io::Read;

use anyhow::{Context, bail};
use clap::Subcommand;
use perennial_domain::{Href, TenantId};
use serde_json::json;

use super::{prepare, tenant::Which};
use crate::{
    authentication::providers::{
        Identity, Key, Patience, Provider, Providers, Published, Refusal, listed, table,
    },
    config::Mode,
    db::Connection,
};

/// List, check and remove identity providers.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Accept the tokens of an OpenID provider
    #[command(after_help = "Examples:
  perennial provider add --issuer https://accounts.example.com --audience my-product
  perennial provider check https://accounts.example.com

The issuer is compared character by character with what a token says (`iss`): copy it from the provider's
/.well-known/openid-configuration. The audience is what the provider puts into a token that is meant for your
product (`aud` or `azp`); without it, a token that was given to any other product would open yours.")]
    Add {
        #[command(flatten)]
        which: Which,
        /// What the provider's tokens say of who made them
        #[arg(long, value_name = "URL")]
        issuer: String,
        /// For whom a token must be meant (repeatable)
        #[arg(long = "audience", value_name = "AUDIENCE", required = true)]
        audiences: Vec<String>,
    },
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
  perennial provider check https://accounts.example.com
  perennial provider check https://accounts.example.com --token - < token.txt    who does it prove?

A token is read from a file or from standard input, never from the command line, where others could see it.")]
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
            Self::Add {
                which,
                issuer,
                audiences,
            } => {
                let tenant = which.choose(&home).await?;
                let provider = checked(issuer, audiences, mode)?;
                let added = listed::add(&mut home, operator, tenant, &provider).await;
                added.map_err(|error| match error.constraint() {
                    Some("identity_providers_issuer") => anyhow::anyhow!(
                        "{} is listed already; remove it first to change its audiences",
                        provider.issuer
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
                check(provider, token.as_deref(), json).await?;
            }
        }
        Ok(())
    }
}

/// What the type of each argument cannot say.
fn checked(issuer: String, audiences: Vec<String>, mode: Mode) -> anyhow::Result<Provider> {
    let _link: Href = issuer
        .parse()
        .map_err(|invalid: perennial_domain::Invalid| {
            anyhow::anyhow!("--issuer: {}", invalid.message)
        })?;
    if issuer.contains(['?', '#']) {
        bail!("--issuer: {issuer} has a query or a fragment, which an issuer has not");
    }
    if mode == Mode::Live && !issuer.starts_with("https://") {
        bail!(
            "--issuer: in live mode an issuer begins with https://, or anybody on the way could be it"
        );
    }
    if audiences.iter().any(|audience| audience.trim().is_empty()) {
        bail!("--audience: must not be blank");
    }
    Ok(Provider { issuer, audiences })
}

fn list(providers: &[Provider], json: bool) {
    let mut table = super::table(["ISSUER", "AUDIENCES"]);
    for Provider { issuer, audiences } in providers {
        if json {
            println!("{}", json!({"issuer": issuer, "audiences": audiences}));
        } else {
            table.add_row([issuer.clone(), audiences.join(" ")]);
        }
    }
    if !json {
        println!("{table}");
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

async fn check(provider: Provider, token: Option<&str>, json: bool) -> anyhow::Result<()> {
    let providers = Providers::new(Patience::default())?;
    let published = providers.published(&provider.issuer).await?;
    let identity = match token {
        None => None,
        Some(file) => {
            let token = read(file).with_context(|| format!("--token {file}"))?;
            let now = prepare::operator().now;
            let listed = [provider.clone()];
            Some(providers.verify(&listed, token.trim(), now).await)
        }
    };
    if json {
        println!("{}", in_json(&provider, &published, identity.as_ref()));
    } else {
        in_words(&provider, &published, identity.as_ref());
    }
    match identity {
        Some(Err(refusal)) => Err(refusal.into()),
        _ => Ok(()),
    }
}

fn in_words(
    provider: &Provider,
    published: &Published,
    identity: Option<&Result<Identity, Refusal>>,
) {
    println!("issuer: {}, answers", provider.issuer);
    println!("audiences: {}", provider.audiences.join(" "));
    for key in &published.keys {
        let algorithm = key.algorithm.map(|algorithm| format!("{algorithm:?}"));
        println!("key: {} {}", key.id, algorithm.unwrap_or_default());
    }
    match &published.userinfo_endpoint {
        Some(endpoint) => println!("userinfo: {endpoint}, for tokens that carry no e-mail address"),
        None => println!("userinfo: none; tokens must carry the e-mail address"),
    }
    if let Some(Ok(identity)) = identity {
        println!("the token proves: subject {}", identity.subject);
        match (&identity.email, identity.email_verified) {
            (None, _) => println!("e-mail: none, so nobody could sign up with it"),
            (Some(email), true) => println!("e-mail: {email}, verified"),
            (Some(email), false) => println!("e-mail: {email}, not verified, and so not accepted"),
        }
    }
}

fn in_json(
    provider: &Provider,
    published: &Published,
    identity: Option<&Result<Identity, Refusal>>,
) -> serde_json::Value {
    let shown = |key: &Key| json!({"kid": key.id, "alg": key.algorithm.map(|a| format!("{a:?}"))});
    let keys: Vec<_> = published.keys.iter().map(shown).collect();
    let token = identity.map(|identity| match identity {
        Ok(identity) => json!({
            "subject": identity.subject,
            "email": identity.email,
            "email_verified": identity.email_verified,
        }),
        Err(refusal) => json!({"refused": refusal.to_string()}),
    });
    json!({
        "issuer": provider.issuer,
        "audiences": provider.audiences,
        "keys": keys,
        "userinfo_endpoint": published.userinfo_endpoint,
        "token": token,
    })
}

fn read(file: &str) -> std::io::Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    } else {
        std::fs::read_to_string(file)
    }
}
