//! People who sign in: with tokens of the sandbox's own identity provider, or of any other.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use perennial::{config::MasterKey, providers::Sandbox};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{
    api::{Answer, Api},
    process::MASTER_KEY,
};

/// A token by which the sandbox's own provider vouches for this address.
pub fn outside_token(email: &str) -> String {
    static SANDBOX: LazyLock<Sandbox> =
        LazyLock::new(|| Sandbox::of(&MasterKey::parse(MASTER_KEY).unwrap()).unwrap());
    let hour = SignedDuration::from_hours(1);
    let token = SANDBOX.token(&email.parse().unwrap(), Timestamp::now(), hour);
    token.expose_secret().to_owned()
}

/// Somebody's tokens, as they were answered.
#[derive(Debug, Clone)]
pub struct Tokens(pub Value);

impl Tokens {
    pub fn of(answer: &Answer) -> Self {
        assert!(answer.status < 300, "{}", answer.text);
        assert_eq!(answer.header("cache-control"), "no-store");
        Self(answer.json())
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

    /// What the access token says.
    pub fn claims(&self) -> Value {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let part = self.access().split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }
}

impl Api {
    pub async fn authenticate(&self, how: &str, token: &str, email: &str) -> Answer {
        let body = json!({"access_token": token, "email": email}).to_string();
        self.post(&format!("/authentication/{how}"), &body).await
    }

    /// Signs up with the sandbox's own provider.
    pub async fn sign_up(&self, email: &str) -> Tokens {
        let token = outside_token(email);
        Tokens::of(&self.authenticate("sign-up", &token, email).await)
    }

    pub async fn sign_in(&self, email: &str) -> Tokens {
        let token = outside_token(email);
        Tokens::of(&self.authenticate("sign-in", &token, email).await)
    }

    pub async fn refresh(&self, refresh_token: &str) -> Answer {
        let body = json!({"refresh_token": refresh_token}).to_string();
        self.post("/authentication/refresh-token", &body).await
    }

    /// The same caller, on behalf of whoever has this access token.
    pub fn on_behalf_of(&self, access_token: &str) -> Self {
        self.with("authorization", &format!("Bearer {access_token}"))
    }

    /// Whether the bearer is signed in.
    pub async fn check(&self, access_token: &str) -> Answer {
        let caller = self.on_behalf_of(access_token);
        let path = "/authentication/user-logged-in";
        let answer = caller.try_send(reqwest::Method::POST, path, None).await;
        answer.unwrap()
    }
}
