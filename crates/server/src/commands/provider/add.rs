//! `perennial provider add`: the arguments that describe an identity provider, and their rules.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use perennial_domain::Href;

use crate::{
    commands::{bootstrap, tenant::TenantArg},
    config::Mode,
    db::PooledConnection,
    identity_providers::{AcceptedTokens, IdentityProvider, TokenVerification},
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial provider add --issuer https://id.example.com --audience my-product
  perennial provider add --issuer https://id.example.com \\
    --audience my-product --verify introspection \\
    --client-id perennial --client-secret-file secret.txt
  perennial provider add --issuer https://accounts.google.com \\
    --audience 1234.apps.googleusercontent.com --accept-id-tokens

The issuer must equal the token's iss claim exactly: copy it from the
provider's /.well-known/openid-configuration. The audience is the value of the
aud claim in tokens for your product; without it, a token for any other
product of the provider would be accepted.

The guide /docs/how-to/connect-an-identity-provider has the command for
Google, Microsoft Entra, Apple, Auth0, Keycloak, Clerk and Supabase.")]
pub struct ProviderAddArgs {
    #[command(flatten)]
    pub(super) tenant: TenantArg,
    /// Issuer URL (the `iss` claim)
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// Accepted audience (the `aud` claim; repeatable)
    #[arg(long = "audience", value_name = "AUDIENCE")]
    audiences: Vec<String>,
    /// How tokens are verified: jwt with the published keys, the others by a request to the
    /// provider
    #[arg(long, value_enum, default_value_t = VerifyMethod::Jwt)]
    verify: VerifyMethod,
    /// The endpoint to request: required for tokeninfo; for introspection, if the discovery
    /// document has none
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Client id for introspection
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// File with the client secret for introspection; stored encrypted with the master key
    #[arg(long, value_name = "FILE")]
    client_secret_file: Option<PathBuf>,
    /// Required for userinfo, which does not report an audience: also accepts tokens that the
    /// provider issued for other products
    #[arg(long)]
    accept_any_audience: bool,
    #[command(flatten)]
    accept: AcceptArgs,
}

/// Flags that accept more than access tokens for one of the audiences.
#[derive(Debug, Args)]
struct AcceptArgs {
    /// Also accept ID tokens: the usual case for "Sign in with Google" and "Sign in with Apple"
    #[arg(long)]
    accept_id_tokens: bool,
    /// Also accept an audience in the `azp` claim, or in `client_id` of an introspection: it names
    /// the application that requested the token, and an API called by it could replay the token
    #[arg(long)]
    accept_azp: bool,
    /// Also accept tokens bound to a key or certificate (the `cnf` claim): the binding is not
    /// checked, so a stolen token can be used without the key
    #[arg(long)]
    accept_bound_tokens: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerifyMethod {
    Jwt,
    Introspection,
    Tokeninfo,
    Userinfo,
}

impl ProviderAddArgs {
    /// Checks the arguments and returns the provider they describe.
    pub(super) async fn provider(
        &self,
        home: &PooledConnection,
        mode: Mode,
    ) -> anyhow::Result<IdentityProvider> {
        let issuer = check_url("--issuer", &self.issuer, mode)?;
        let endpoint = self.endpoint.as_deref();
        let endpoint = endpoint
            .map(|url| check_url("--endpoint", url, mode))
            .transpose()?;
        let has_credentials = self.client_id.is_some() || self.client_secret_file.is_some();
        let is_introspection = self.verify == VerifyMethod::Introspection;
        if has_credentials && !is_introspection {
            bail!("--client-id and --client-secret-file require --verify introspection");
        }
        if endpoint.is_some() && !is_introspection && self.verify != VerifyMethod::Tokeninfo {
            bail!(
                "--endpoint requires --verify introspection or tokeninfo; other endpoints are discovered from the issuer"
            );
        }
        if self.accept_any_audience != (self.verify == VerifyMethod::Userinfo) {
            bail!(
                "--accept-any-audience is required for --verify userinfo, which does not report an audience, and \
                 cannot be used otherwise"
            );
        }
        if self.audiences.is_empty() != self.accept_any_audience {
            bail!(
                "--audience is required, unless --accept-any-audience is used; they cannot be combined"
            );
        }
        if self.accept.accept_azp && self.accept_any_audience {
            bail!("--accept-azp has no effect with --accept-any-audience");
        }
        if self
            .audiences
            .iter()
            .any(|audience| audience.trim().is_empty())
        {
            bail!("--audience must not be blank");
        }
        let verify = match self.verify {
            VerifyMethod::Jwt => TokenVerification::Jwt,
            VerifyMethod::Userinfo => TokenVerification::Userinfo,
            VerifyMethod::Tokeninfo => TokenVerification::Tokeninfo {
                endpoint: endpoint.context("--verify tokeninfo requires --endpoint")?,
            },
            VerifyMethod::Introspection => {
                let missing =
                    "--verify introspection requires --client-id and --client-secret-file";
                let client_id = self.client_id.clone().context(missing)?;
                let file = self.client_secret_file.as_ref().context(missing)?;
                let secret = std::fs::read_to_string(file)
                    .with_context(|| format!("--client-secret-file {}", file.display()))?;
                let keys = bootstrap::derived_keys(home, mode).await?;
                TokenVerification::Introspection {
                    endpoint,
                    client_id,
                    secret: keys.seal(secret.trim(), &issuer),
                }
            }
        };
        Ok(IdentityProvider {
            issuer,
            audiences: self.audiences.clone(),
            verify,
            accept: AcceptedTokens {
                id_tokens: self.accept.accept_id_tokens,
                bound_tokens: self.accept.accept_bound_tokens,
                azp: self.accept.accept_azp,
            },
        })
    }
}

/// Returns the URL if it is valid for an issuer or endpoint.
fn check_url(flag: &str, url: &str, mode: Mode) -> anyhow::Result<String> {
    let parsed: Result<Href, _> = url.parse();
    parsed.map_err(|invalid| anyhow::anyhow!("{flag}: {}", invalid.message))?;
    if url.contains(['?', '#']) {
        bail!("{flag}: must not have a query or a fragment");
    }
    if mode == Mode::Live && !url.starts_with("https://") {
        bail!("{flag}: must start with https:// in live mode");
    }
    Ok(url.to_owned())
}
