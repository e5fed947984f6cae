//! `GET /.well-known/jwks.json` and `GET /.well-known/openid-configuration`: what another service needs in order
//! to verify our access tokens by itself. No client is asked for.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    app::App,
    http::{
        answer::Public,
        problem::{OpenEndpoint, Problem},
    },
};

/// For how many seconds others may keep what they got: less than a new key is published before it signs.
const KEPT: u32 = 300;

/// The keys that verify our access tokens (RFC 7517).
#[derive(Serialize, ToSchema)]
#[schema(as = JwkSet, example = json!({"keys": [{
    "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "kid": "0192f0c1a2b37c4d8e5f60718293a4b5", "use": "sig", "alg": "EdDSA"
}]}))]
pub struct JwkSet {
    /// Public keys: the one that signs, those that signed before, and one that is about to.
    #[schema(value_type = Vec<Object>, example = json!([{
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "kid": "0192f0c1a2b37c4d8e5f60718293a4b5", "use": "sig", "alg": "EdDSA"
    }]))]
    keys: Vec<Value>,
}

/// What is true of us of what OpenID Connect lets a provider say of itself.
#[derive(Serialize, ToSchema)]
#[schema(as = Configuration, example = json!({
    "issuer": "https://billing.example.com",
    "jwks_uri": "https://billing.example.com/.well-known/jwks.json",
    "service_documentation": "https://billing.example.com/docs/"
}))]
pub struct Configuration {
    /// Our access tokens' `iss`.
    #[schema(format = "uri", example = "https://billing.example.com")]
    issuer: String,
    /// Where the keys are.
    #[schema(
        format = "uri",
        example = "https://billing.example.com/.well-known/jwks.json"
    )]
    jwks_uri: String,
    /// Where to read on.
    #[schema(format = "uri", example = "https://billing.example.com/docs/")]
    service_documentation: String,
}

/// Read the public keys
///
/// The keys that verify our access tokens. A new one is published ten minutes before it signs; an old one until
/// its last token has ended.
#[utoipa::path(
    get,
    path = "/.well-known/jwks.json",
    tag = "Authentication",
    operation_id = "readKeys",
    security(()),
    responses(
        (status = 200, description = "The keys.", body = JwkSet,
            headers(("Cache-Control" = String, description = "For how long they may be kept."))),
        OpenEndpoint,
    ),
)]
pub async fn keys(State(app): State<Arc<App>>) -> Result<Public<JwkSet>, Problem> {
    let keyring = app.bearers.tokens.keyring();
    let keys = keyring.published(app.clock.now()).await?;
    Ok(Public(KEPT, JwkSet { keys }))
}

/// Read what we say of ourselves
///
/// As much of an OpenID provider's configuration as is true here: who issues our access tokens, and where the keys
/// are. There is no authorization endpoint: users sign in at your identity provider.
#[utoipa::path(
    get,
    path = "/.well-known/openid-configuration",
    tag = "Authentication",
    operation_id = "readConfiguration",
    security(()),
    responses(
        (status = 200, description = "The configuration.", body = Configuration,
            headers(("Cache-Control" = String, description = "For how long it may be kept."))),
        OpenEndpoint,
    ),
)]
pub async fn configuration(State(app): State<Arc<App>>) -> Public<Configuration> {
    let own = &app.public_url;
    let configuration = Configuration {
        issuer: own.to_string(),
        jwks_uri: format!("{own}/.well-known/jwks.json"),
        service_documentation: format!("{own}/docs/"),
    };
    Public(KEPT, configuration)
}
