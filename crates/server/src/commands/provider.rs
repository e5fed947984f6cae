//! `perennial provider`: the identity providers whose tokens a tenant accepts.

use std::{io::Read, path::PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use perennial_domain::{Href, TenantId};
use serde_json::json;

use super::{prepare, tenant::Which};
use crate::{
    authentication::providers::{
        Identity, Key, Patience, Provider, Providers, Published, Refusal, Verify, listed, table,
    },
    config::Mode,
    db::Connection,
    keys::SealingKey,
};

/// List, check and remove identity providers.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Accept the tokens of an OpenID provider
    Add(Add),
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
                check(provider, sealing, token.as_deref(), json).await?;
            }
        }
        Ok(())
    }
}

/// Accept the tokens of a provider.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial provider add --issuer https://accounts.example.com --audience my-product
  perennial provider add --issuer https://id.example.com --audience my-product \\
      --verify introspection --client-id perennial --client-secret-file secret.txt
  perennial provider add --issuer https://accounts.google.com --audience 1234.example.com \\
      --verify tokeninfo --endpoint https://oauth2.googleapis.com/tokeninfo

The issuer is compared character by character with what a token says (iss): copy it from
/.well-known/openid-configuration. The audience is what the provider puts into a token that is
meant for your product (aud or azp); without it, a token that was given to any other product
would open yours.")]
pub struct Add {
    #[command(flatten)]
    which: Which,
    /// What the provider's tokens say of who made them
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// For whom a token must be meant (repeatable)
    #[arg(long = "audience", value_name = "AUDIENCE")]
    audiences: Vec<String>,
    /// How its tokens are verified: jwt by its keys, the others by asking it
    #[arg(long, value_enum, default_value_t = How::Jwt)]
    verify: How,
    /// Where it is asked: required for tokeninfo; for introspection if its discovery document does not say
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Who asks, for introspection
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The file with that client's secret, for introspection; it is kept sealed under the master key
    #[arg(long, value_name = "FILE")]
    client_secret_file: Option<PathBuf>,
    /// For userinfo, which cannot say for whom a token was made: accept that tokens which your users gave to
    /// other products of this provider open yours
    #[arg(long)]
    accept_any_audience: bool,
}

/// How a provider's tokens are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    Jwt,
    Introspection,
    Tokeninfo,
    Userinfo,
}

impl Add {
    /// The provider that is meant, or what the type of each argument cannot say.
    async fn provider(&self, home: &Connection, mode: Mode) -> anyhow::Result<Provider> {
        let issuer = address("--issuer", &self.issuer, mode)?;
        let endpoint = self.endpoint.as_deref();
        let endpoint = endpoint
            .map(|url| address("--endpoint", url, mode))
            .transpose()?;
        let asks = self.client_id.is_some() || self.client_secret_file.is_some();
        let introspects = self.verify == How::Introspection;
        if asks && !introspects {
            bail!("--client-id and --client-secret-file are for --verify introspection");
        }
        if endpoint.is_some() && !introspects && self.verify != How::Tokeninfo {
            bail!(
                "--endpoint is for --verify introspection and tokeninfo; others are found by the issuer"
            );
        }
        if self.accept_any_audience != (self.verify == How::Userinfo) {
            bail!(
                "--verify userinfo cannot tell for whom a token was made, so it needs --accept-any-audience, and \
                 nothing else takes that"
            );
        }
        if self.audiences.is_empty() != self.accept_any_audience {
            bail!(
                "--audience: say for whom a token must be meant (not with --accept-any-audience)"
            );
        }
        if self
            .audiences
            .iter()
            .any(|audience| audience.trim().is_empty())
        {
            bail!("--audience: must not be blank");
        }
        let verify = match self.verify {
            How::Jwt => Verify::Jwt,
            How::Userinfo => Verify::Userinfo,
            How::Tokeninfo => Verify::Tokeninfo {
                endpoint: endpoint.context("--verify tokeninfo needs --endpoint")?,
            },
            How::Introspection => {
                let need = "--verify introspection needs --client-id and --client-secret-file";
                let client_id = self.client_id.clone().context(need)?;
                let file = self.client_secret_file.as_ref().context(need)?;
                let secret = std::fs::read_to_string(file)
                    .with_context(|| format!("--client-secret-file {}", file.display()))?;
                let sealing = prepare::sealing_key(home, mode).await?;
                Verify::Introspection {
                    endpoint,
                    client_id,
                    secret: sealing.seal(secret.trim(), &issuer),
                }
            }
        };
        Ok(Provider {
            issuer,
            audiences: self.audiences.clone(),
            verify,
        })
    }
}

/// An address that can be one of a provider's.
fn address(flag: &str, url: &str, mode: Mode) -> anyhow::Result<String> {
    let parsed: Result<Href, _> = url.parse();
    parsed.map_err(|invalid| anyhow::anyhow!("{flag}: {}", invalid.message))?;
    if url.contains(['?', '#']) {
        bail!("{flag}: {url} has a query or a fragment, which it must not have");
    }
    if mode == Mode::Live && !url.starts_with("https://") {
        bail!(
            "{flag}: in live mode it begins with https://, or anybody on the way could answer there"
        );
    }
    Ok(url.to_owned())
}

fn list(providers: &[Provider], json: bool) {
    let mut table = super::table(["ISSUER", "VERIFY", "AUDIENCES"]);
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

async fn check(
    provider: Provider,
    sealing: SealingKey,
    token: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    let providers = Providers::new(Patience::default(), sealing)?;
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
    println!("verify: {}", provider.verify.as_str());
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
        "verify": provider.verify.as_str(),
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
