//! `perennial provider add`: what can be said of a provider, and what cannot.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use perennial_domain::Href;

use crate::{
    commands::{prepare, tenant::Which},
    config::Mode,
    db::Connection,
    providers::{Provider, Verify},
};

/// Accept the tokens of a provider.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial provider add --issuer https://id.example.com --audience my-product
  perennial provider add --issuer https://id.example.com \\
    --audience my-product --verify introspection \\
    --client-id perennial --client-secret-file secret.txt
  perennial provider add --issuer https://accounts.google.com \\
    --audience 1234.example.com --verify tokeninfo \\
    --endpoint https://oauth2.googleapis.com/tokeninfo

The issuer is compared character by character with what a token says (iss):
copy it from /.well-known/openid-configuration. The audience is what the
provider puts into a token that is meant for your product (aud or azp);
without it, a token that was given to any other product would open yours.")]
pub struct Add {
    #[command(flatten)]
    pub(super) which: Which,
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
    pub(super) async fn provider(&self, home: &Connection, mode: Mode) -> anyhow::Result<Provider> {
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
