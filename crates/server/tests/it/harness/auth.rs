//! Signing in: tokens of the sandbox identity provider, and the tokens that the API issues.

use std::{sync::LazyLock, time::Duration};

use jiff::{SignedDuration, Timestamp};
use perennial::identity_providers::SandboxProvider;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{
    api::{ApiClient, ApiResponse},
    master_key::derived_keys,
    process::MASTER_KEY,
};

/// Returns a token of the sandbox identity provider for this email address.
pub fn sandbox_token(email: &str) -> String {
    static SANDBOX: LazyLock<SandboxProvider> =
        LazyLock::new(|| SandboxProvider::new(&derived_keys(MASTER_KEY)).unwrap());
    let hour = SignedDuration::from_hours(1);
    let token = SANDBOX
        .issue_token(&email.parse().unwrap(), Timestamp::now(), hour)
        .unwrap();
    token.expose_secret().to_owned()
}

/// The JSON body of a successful sign-up, sign-in or refresh.
#[derive(Debug, Clone)]
pub struct SessionTokens(pub Value);

impl SessionTokens {
    pub fn from_response(response: &ApiResponse) -> Self {
        assert!(response.status < 300, "{}", response.text);
        assert_eq!(response.header("cache-control"), "no-store");
        Self(response.json())
    }

    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap()
    }

    pub fn access(&self) -> &str {
        self.text("access_token")
    }

    pub fn refresh(&self) -> &str {
        self.text("refresh_token")
    }

    pub fn session(&self) -> &str {
        self.text("session_id")
    }

    pub fn user(&self) -> &str {
        self.text("auth_id")
    }

    /// Returns the claims of the access token.
    pub fn claims(&self) -> Value {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let part = self.access().split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }
}

impl ApiClient {
    pub async fn authenticate(&self, endpoint: &str, token: &str, email: &str) -> ApiResponse {
        let body = json!({"access_token": token, "email": email}).to_string();
        self.post(&format!("/authentication/{endpoint}"), &body)
            .await
    }

    /// Signs up with the sandbox identity provider.
    pub async fn sign_up(&self, email: &str) -> SessionTokens {
        self.get_tokens("sign-up", email).await
    }

    /// Signs in with the sandbox identity provider.
    pub async fn sign_in(&self, email: &str) -> SessionTokens {
        self.get_tokens("sign-in", email).await
    }

    /// Retries as a client does: on a busy machine, admission control may reject a request.
    async fn get_tokens(&self, endpoint: &str, email: &str) -> SessionTokens {
        let token = sandbox_token(email);
        loop {
            let response = self.authenticate(endpoint, &token, email).await;
            if response.status != 503 || response.problem() != "overloaded" {
                return SessionTokens::from_response(&response);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub async fn refresh(&self, refresh_token: &str) -> ApiResponse {
        let body = json!({"refresh_token": refresh_token}).to_string();
        self.post("/authentication/refresh-token", &body).await
    }

    /// Returns a client that sends this access token as well.
    pub fn with_bearer(&self, access_token: &str) -> Self {
        self.with("authorization", &format!("Bearer {access_token}"))
    }

    /// Checks whether the session of this access token is active.
    pub async fn check(&self, access_token: &str) -> ApiResponse {
        let api = self.with_bearer(access_token);
        let path = "/authentication/user-logged-in";
        api.send(reqwest::Method::POST, path, None).await
    }
}
