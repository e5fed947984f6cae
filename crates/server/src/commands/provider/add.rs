//! `perennial provider add`: the arguments that describe an identity provider, and their rules.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::{
    commands::{bootstrap, request_fields::into_error, tenant::TenantArg},
    config::Mode,
    db::PooledConnection,
    http::problem::Problem,
    identity_providers::{AcceptedTokens, IdentityProvider},
    tenant_providers::{ClientSecret, ProviderSettings, VerifyMethod},
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
    /// How tokens are verified: jwt with the published keys, or by a request to the provider:
    /// introspection, tokeninfo or userinfo
    #[arg(long, default_value = "jwt")]
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

impl ProviderAddArgs {
    /// Checks the arguments and returns the provider they describe.
    pub(super) async fn provider(
        &self,
        home: &PooledConnection,
        mode: Mode,
    ) -> anyhow::Result<IdentityProvider> {
        let client_secret = match &self.client_secret_file {
            None => ClientSecret::None,
            Some(file) => {
                let secret = std::fs::read_to_string(file)
                    .with_context(|| format!("--client-secret-file {}", file.display()))?;
                ClientSecret::New(secret.trim().into())
            }
        };
        let settings = ProviderSettings {
            issuer: self.issuer.clone(),
            audiences: self.audiences.clone(),
            verify: self.verify,
            endpoint: self.endpoint.clone(),
            client_id: self.client_id.clone(),
            client_secret,
            accept_any_audience: self.accept_any_audience,
            accept: AcceptedTokens {
                id_tokens: self.accept.accept_id_tokens,
                bound_tokens: self.accept.accept_bound_tokens,
                azp: self.accept.accept_azp,
            },
            is_guarded: false,
        };
        let keys = if settings.needs_keys() {
            Some(bootstrap::derived_keys(home, mode).await?)
        } else {
            None
        };
        let provider = settings.into_provider(mode, keys.as_ref());
        provider.map_err(|errors| into_error(Problem::from_field_errors(errors)))
    }
}
