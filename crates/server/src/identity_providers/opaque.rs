//! Opaque tokens, verified by a request to the provider.
//!
//! - **Introspection** (RFC 7662): returns whether a token is active, and its audience.
//! - **Token info**: like introspection without client credentials, as Google provides it.
//! - **Userinfo** (in `verifier.rs`): returns the user but not the audience, so a token that the
//!   provider issued to another application is accepted. Operators must opt in.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    IdentityClaims, IdentityProvider, ProviderHttpClient, ProviderResponse, TokenError,
    claims::{self, Audience},
    token_kind::{HeaderType, TokenKindClaims},
};

/// Response of an introspection or token-info endpoint. Some providers send numbers as strings.
#[derive(Deserialize)]
struct IntrospectionResponse {
    active: Option<bool>,
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Audience>,
    azp: Option<String>,
    client_id: Option<String>,
    exp: Option<Value>,
    email: Option<String>,
    email_verified: Option<Value>,
    auth_time: Option<Value>,
    iat: Option<Value>,
    #[serde(flatten)]
    kind: TokenKindClaims,
}

/// Verifies a token at an introspection endpoint, with the operator's client credentials.
pub(super) async fn introspect(
    http: &ProviderHttpClient,
    endpoint: &str,
    (client_id, secret): (&str, &str),
    provider: &IdentityProvider,
    token: &str,
    now: Timestamp,
) -> Result<IdentityClaims, TokenError> {
    let form = [("token", token), ("token_type_hint", "access_token")];
    let response = http.post(endpoint, &form, Some((client_id, secret))).await;
    let response = parse(
        endpoint,
        &response.map_err(TokenError::ProviderUnavailable)?,
    )?;
    if response.active != Some(true) {
        return Err(TokenError::invalid("not active according to its issuer"));
    }
    check_claims(response, provider, now)
}

/// Verifies a token at a token-info endpoint, which returns 400 for unknown tokens.
pub(super) async fn tokeninfo(
    http: &ProviderHttpClient,
    endpoint: &str,
    provider: &IdentityProvider,
    token: &str,
    now: Timestamp,
) -> Result<IdentityClaims, TokenError> {
    let response = http.post(endpoint, &[("access_token", token)], None).await;
    let response = response.map_err(TokenError::ProviderUnavailable)?;
    if response.status == 400 {
        return Err(TokenError::invalid("unknown to its issuer"));
    }
    check_claims(parse(endpoint, &response)?, provider, now)
}

fn parse(endpoint: &str, response: &ProviderResponse) -> Result<IntrospectionResponse, TokenError> {
    response
        .parse(endpoint)
        .map_err(TokenError::ProviderUnavailable)
}

fn check_claims(
    response: IntrospectionResponse,
    provider: &IdentityProvider,
    now: Timestamp,
) -> Result<IdentityClaims, TokenError> {
    if response.iss.is_some_and(|issuer| issuer != provider.issuer) {
        return Err(TokenError::unknown_issuer());
    }
    response
        .kind
        .check(provider.accept, HeaderType::Unspecific, false)?;
    let audiences = response.aud.map(Audience::into_vec).unwrap_or_default();
    claims::check_audience(provider, &audiences, &[response.azp, response.client_id])?;
    if let Some(exp) = response.exp {
        // A value that is not a number counts as expired.
        claims::check_expiry(claims::seconds(&exp).unwrap_or(f64::NAN), now)?;
    }
    Ok(IdentityClaims {
        subject: claims::check_subject(response.sub.unwrap_or_default())?,
        email: response.email,
        email_verified: response.email_verified,
        authenticated_at: claims::authentication_time(
            response.auth_time.as_ref(),
            response.iat.as_ref(),
        ),
    })
}
