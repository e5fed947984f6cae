//! Sign-in in a browser: the authorization code flow of OpenID Connect, with PKCE (RFC 7636).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use jsonwebtoken::dangerous::insecure_decode_claims;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::{AcceptedTokens, Identity, IdentityProvider, IdentityVerifier, TokenError};
use crate::randomness::Randomness;

/// An application at an OpenID provider.
#[derive(Debug)]
pub struct CodeFlowClient<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub client_secret: Option<&'a SecretString>,
    pub redirect_uri: &'a str,
}

/// The secrets of one sign-in, which the browser keeps.
#[derive(Debug, Serialize, Deserialize)]
pub struct CodeFlowSecrets {
    pub state: String,
    nonce: String,
    verifier: String,
}

impl CodeFlowSecrets {
    pub fn generate() -> Self {
        let random = || BASE64_URL_SAFE_NO_PAD.encode(Randomness.bytes::<32>());
        Self {
            state: random(),
            nonce: random(),
            verifier: random(),
        }
    }
}

/// A person who has signed in at the provider.
#[derive(Debug)]
pub struct SignedInPerson {
    pub identity: Identity,
    /// The claim `groups` of the ID token.
    pub groups: Vec<String>,
}

#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
    access_token: String,
}

#[derive(Deserialize)]
struct SignInClaims {
    nonce: Option<String>,
    #[serde(default)]
    groups: Groups,
}

/// A list, or as some providers send it for one group, a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Groups {
    Many(Vec<String>),
    One(String),
}

impl Default for Groups {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl CodeFlowClient<'_> {
    /// Returns the provider, whose URLs come from the operator.
    fn provider(&self) -> IdentityProvider {
        IdentityProvider {
            accept: AcceptedTokens {
                id_tokens: true,
                ..AcceptedTokens::default()
            },
            ..IdentityProvider::new(self.issuer, &[self.client_id])
        }
    }
}

impl IdentityVerifier {
    /// Returns the provider's URL to which the browser is sent.
    pub async fn authorization_url(
        &self,
        client: &CodeFlowClient<'_>,
        scopes: &[String],
        secrets: &CodeFlowSecrets,
    ) -> Result<Url, TokenError> {
        let metadata = self.metadata(&client.provider()).await?;
        let endpoint = metadata.authorization_endpoint.as_deref();
        let url = endpoint.and_then(|endpoint| Url::parse(endpoint).ok());
        let mut url = url.ok_or_else(|| missing_endpoint(client, "authorization"))?;
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&secrets.verifier));
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", client.client_id),
            ("redirect_uri", client.redirect_uri),
            ("scope", &scopes.join(" ")),
            ("state", &secrets.state),
            ("nonce", &secrets.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url)
    }

    /// Exchanges an authorization code and verifies the ID token.
    pub async fn exchange_code(
        &self,
        client: &CodeFlowClient<'_>,
        secrets: &CodeFlowSecrets,
        code: &str,
        now: Timestamp,
    ) -> Result<SignedInPerson, TokenError> {
        let metadata = self.metadata(&client.provider()).await?;
        let endpoint = metadata.token_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| missing_endpoint(client, "token"))?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", client.redirect_uri),
            ("code_verifier", &secrets.verifier),
        ];
        let credentials = client.client_secret.map(ExposeSecret::expose_secret);
        let credentials = credentials.map(|secret| (client.client_id, secret));
        if credentials.is_none() {
            form.push(("client_id", client.client_id));
        }
        let response = self
            .source(&client.provider())
            .http
            .post(endpoint, &form, credentials)
            .await;
        let response = response.map_err(TokenError::ProviderUnavailable)?;
        if (400..500).contains(&response.status) {
            let status = response.status;
            let reason = format!("the token endpoint responded with {status}");
            return Err(TokenError::invalid(reason));
        }
        let response: TokenResponse =
            { response.parse(endpoint) }.map_err(TokenError::ProviderUnavailable)?;
        self.verify_id_token(client, secrets, &response, now).await
    }

    async fn verify_id_token(
        &self,
        client: &CodeFlowClient<'_>,
        secrets: &CodeFlowSecrets,
        response: &TokenResponse,
        now: Timestamp,
    ) -> Result<SignedInPerson, TokenError> {
        let provider = client.provider();
        let token = response.id_token.as_str();
        let claims = self.verify_jwt(&provider, token, now).await?;
        // The signature has been verified.
        let more = insecure_decode_claims::<SignInClaims>(token);
        let more = more.map_err(|_| TokenError::invalid("claims are of the wrong type"))?;
        if more.nonce.as_deref() != Some(&secrets.nonce) {
            return Err(TokenError::invalid("of another sign-in (claim nonce)"));
        }
        let access_token = Some(response.access_token.as_str());
        let identity = self.complete_identity(&provider, claims, access_token);
        Ok(SignedInPerson {
            identity: identity.await?,
            groups: match more.groups {
                Groups::Many(groups) => groups,
                Groups::One(group) => vec![group],
            },
        })
    }
}

fn missing_endpoint(client: &CodeFlowClient<'_>, name: &str) -> TokenError {
    let issuer = client.issuer;
    TokenError::ProviderUnavailable(format!("{issuer} has no {name} endpoint"))
}
