//! `GET /.well-known/jwks.json` and `GET /.well-known/openid-configuration`: public endpoints with
//! which other services verify our access tokens.

use std::sync::Arc;

use axum::extract::State;
use jsonwebtoken::jwk::Jwk;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    http::{
        problem::{Problem, PublicResponses},
        response::Cacheable,
    },
};

/// `max-age` in seconds; shorter than the time between publishing a new key and signing with it.
const CACHE_TTL: u32 = 300;

/// The public keys that verify access tokens (RFC 7517).
#[derive(Serialize, ToSchema)]
#[schema(as = JwkSet, example = json!({"keys": [{
    "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "kid": "0192f0c1a2b37c4d8e5f60718293a4b5", "use": "sig", "alg": "EdDSA"
}]}))]
pub struct JwkSetView {
    /// The current key, previous keys whose tokens are still valid, and the next key.
    #[schema(value_type = Vec<Object>, example = json!([{
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "kid": "0192f0c1a2b37c4d8e5f60718293a4b5", "use": "sig", "alg": "EdDSA"
    }]))]
    keys: Vec<Jwk>,
}

/// OpenID Connect discovery document, limited to the fields that apply.
#[derive(Serialize, ToSchema)]
#[schema(as = Configuration, example = json!({
    "issuer": "https://billing.example.com",
    "jwks_uri": "https://billing.example.com/.well-known/jwks.json",
    "service_documentation": "https://billing.example.com/docs/"
}))]
pub struct OpenIdConfigurationView {
    /// The claim `iss` of access tokens.
    #[schema(format = "uri", example = "https://billing.example.com")]
    issuer: String,
    /// URL of the public keys.
    #[schema(
        format = "uri",
        example = "https://billing.example.com/.well-known/jwks.json"
    )]
    jwks_uri: String,
    /// URL of the documentation.
    #[schema(format = "uri", example = "https://billing.example.com/docs/")]
    service_documentation: String,
}

/// Get the public keys
///
/// Returns the keys that verify access tokens. A new key is published ten minutes before it is used; an old key is
/// published until its last token has expired.
#[utoipa::path(
    get,
    path = "/.well-known/jwks.json",
    tag = "Authentication",
    operation_id = "readSigningKeys",
    security(()),
    responses(
        (status = 200, description = "The public keys.", body = JwkSetView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        PublicResponses,
    ),
)]
pub async fn keys(State(app): State<Arc<App>>) -> Result<Cacheable<JwkSetView>, Problem> {
    let keyring = app.authenticator.tokens.keyring();
    let keys = keyring.public_keys(app.clock.now()).await?;
    Ok(Cacheable(CACHE_TTL, JwkSetView { keys }))
}

/// Get the OpenID configuration
///
/// Returns the issuer of access tokens and the URL of the public keys. There is no authorization endpoint: users sign in at
/// your identity provider.
#[utoipa::path(
    get,
    path = "/.well-known/openid-configuration",
    tag = "Authentication",
    operation_id = "readOpenidConfiguration",
    security(()),
    responses(
        (status = 200, description = "The configuration.", body = OpenIdConfigurationView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        PublicResponses,
    ),
)]
pub async fn configuration(State(app): State<Arc<App>>) -> Cacheable<OpenIdConfigurationView> {
    let url = &app.public_url;
    let configuration = OpenIdConfigurationView {
        issuer: url.to_string(),
        jwks_uri: format!("{url}/.well-known/jwks.json"),
        service_documentation: format!("{url}/docs/"),
    };
    Cacheable(CACHE_TTL, configuration)
}
