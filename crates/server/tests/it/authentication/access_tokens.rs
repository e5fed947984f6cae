//! Access tokens: malformed headers are rejected. `attack::own_tokens` has the forged tokens.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::Timestamp;
use perennial::{
    auth::tokens::{AccessTokens, Keyring},
    clock::IdGenerator,
    db::Databases,
    randomness::Randomness,
};
use perennial_domain::{Session, SessionLifetimes, TenantId};
use reqwest::Method;
use secrecy::ExposeSecret;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    in_process::read_config,
    master_key::derived_keys,
    process::MASTER_KEY,
    service::{InProcessService, Service},
};

const PATH: &str = "/authentication/user-logged-in";

/// Asserts that the bearer token is rejected, always with the same response.
async fn assert_rejected(api: &ApiClient) {
    let response = api.try_send(Method::POST, PATH, None).await.unwrap();
    assert_eq!(
        (response.status, response.problem().as_str()),
        (401, "invalid_token")
    );
    assert_eq!(
        response.header("www-authenticate"),
        "Bearer error=\"invalid_token\""
    );
}

/// Malformed input: 54.
#[tokio::test]
async fn malformed_authorization_header_is_rejected() {
    let service = Service::start().await;
    let server = service.api(&[]);
    let token = server.sign_up("ada@example.com").await;
    let token = token.access();
    assert_rejected(&server).await;
    for value in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        token.to_owned(),
        format!("Basic {token}"),
        format!("Basic {}", BASE64.encode("ada:secret")),
        format!("Token {token}"),
        format!("Bearer  {token}"),
        format!("Bearer {token} {token}"),
        format!("Bearer {token},"),
        format!("Bearer \"{token}\""),
        format!("Bearer {}", "a".repeat(20_000)),
        format!("Bearer {}", "a.".repeat(5_000)),
    ] {
        assert_rejected(&server.with("authorization", &value)).await;
    }
    let doubled = server.with_bearer(token);
    assert_rejected(&doubled.with_bearer(token)).await;
    // 64 KiB exceed the limit of a header.
    let huge = server.with(
        "authorization",
        &format!("Bearer {}", "a".repeat(64 * 1024)),
    );
    let response = huge.try_send(Method::POST, PATH, None).await;
    assert!(response.is_err() || response.unwrap().status == 431);
    // The scheme is case-insensitive.
    for value in ["bearer", "BEARER"] {
        let api = server.with("authorization", &format!("{value} {token}"));
        assert_eq!(
            api.try_send(Method::POST, PATH, None).await.unwrap().status,
            200
        );
    }
    let api = server.with_bearer(token);
    for body in ["", "{}", " {} "] {
        assert_eq!(api.post(PATH, body).await.status, 200, "{body}");
    }
    assert_eq!(api.post(PATH, "[]").await.status, 400);
    assert_eq!(api.post(PATH, r#"{"x": 1}"#).await.status, 422);
    assert_eq!(api.post(&format!("{PATH}?x=1"), "").await.status, 400);
}

/// Issues tokens with the service's own keys.
pub struct TokenMint {
    db: Arc<Databases>,
    session: Session,
    pub tenant: TenantId,
}

impl TokenMint {
    pub fn new(service: &InProcessService, tokens: &SessionTokens) -> Self {
        let config = read_config(&service.variables);
        let claims = tokens.claims();
        let id = |name: &str| claims[name].as_str().unwrap().to_owned();
        let now = Timestamp::now();
        Self {
            db: Arc::new(Databases::start(&config.database).unwrap()),
            session: Session::new(
                id("sid").parse().unwrap(),
                id("sub").parse().unwrap(),
                id("client_id").parse().unwrap(),
                String::new(),
                [192, 0, 2, 1].into(),
                &SessionLifetimes::DEFAULT,
                now,
            ),
            tenant: id("aud").parse().unwrap(),
        }
    }

    pub async fn token(&self, issuer: &str, tenant: TenantId, at: Timestamp) -> String {
        let keys = derived_keys(MASTER_KEY);
        let issuer = AccessTokens::new(issuer.into(), Keyring::new(self.db.clone(), keys), 100);
        let token = issuer
            .issue(IdGenerator(Randomness), tenant, &self.session, at)
            .await;
        token.unwrap().token.expose_secret().to_owned()
    }
}
