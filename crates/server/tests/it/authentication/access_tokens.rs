//! Access tokens: malformed, forged and foreign ones are rejected.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use perennial::{
    auth::tokens::{AccessTokens, Keyring},
    clock::IdGenerator,
    db::Databases,
    randomness::Randomness,
};
use perennial_domain::{Session, SessionLifetimes, TenantId};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::harness::{
    api::ApiClient,
    auth::{SessionTokens, sandbox_token},
    in_process::read_config,
    master_key::derived_keys,
    process::{MASTER_KEY, run_ok},
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

/// Malformed input: 68, 69, 70, 71, 72, 73, 74.
#[tokio::test]
async fn forged_or_foreign_tokens_are_rejected() {
    let service = Service::start_in_process().await;
    let server = service.api(&["--tenant", "default"]);
    let tokens = server.sign_up("ada@example.com").await;
    let good = tokens.access().to_owned();
    assert_eq!(server.check(&good).await.status, 200);
    let parts: Vec<&str> = good.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let kid = jsonwebtoken::decode_header(&good).unwrap().kid.unwrap();
    let keys = server.get("/.well-known/jwks.json").await.json();
    let public = keys["keys"][0]["x"].as_str().unwrap().to_owned();

    let mut bad = vec![
        tokens.refresh().to_owned(),
        sandbox_token("ada@example.com"),
        format!("{claims}.{signature}"),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{good}."),
        format!("{good}.{signature}"),
        format!(".{claims}.{signature}"),
        format!("{good}=="),
    ];
    // Other headers with the same claims and signature.
    for other in [
        json!({"alg": "none"}),
        json!({"alg": "nOnE", "typ": "at+jwt", "kid": kid}),
        json!({"alg": "", "typ": "at+jwt", "kid": kid}),
        json!({"alg": "ES256", "typ": "at+jwt", "kid": kid}),
        json!({"alg": "EdDSA", "typ": "JWT", "kid": kid}),
        json!({"alg": "EdDSA", "typ": "at+jwt"}),
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "../../etc/passwd"}),
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "' OR 1=1 --"}),
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "http://127.0.0.1:1/"}),
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "01920000000070008000000000000001"}),
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid, "jku": "http://127.0.0.1:1/", "jwk": keys["keys"][0]}),
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid, "crit": ["x"]}),
    ] {
        let other = BASE64.encode(other.to_string());
        bad.push(format!("{other}.{claims}.{signature}"));
        bad.push(format!("{other}.{claims}."));
    }
    // Signed with the public key as an HMAC secret.
    for secret in [BASE64.decode(&public).unwrap(), public.into_bytes()] {
        let header = json!({"alg": "HS256", "typ": "at+jwt", "kid": kid});
        let message = format!("{}.{claims}", BASE64.encode(header.to_string()));
        let key = jsonwebtoken::EncodingKey::from_secret(&secret);
        let signed =
            jsonwebtoken::crypto::sign(message.as_bytes(), &key, jsonwebtoken::Algorithm::HS256);
        bad.push(format!("{message}.{}", signed.unwrap()));
    }
    // Each bit of the signature flipped, and one bit of each other character.
    let bytes = BASE64.decode(signature).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        bad.push(format!("{header}.{claims}.{}", BASE64.encode(flipped)));
    }
    for position in 0..=(header.len() + claims.len()) {
        let mut flipped = good.clone().into_bytes();
        flipped[position] ^= 1;
        bad.push(String::from_utf8(flipped).unwrap());
    }
    // Signed with the right key, but for another time, issuer or tenant.
    let mint = TokenMint::new(&service, &tokens);
    let (own, now) = (&*service.server.app.public_url, Timestamp::now());
    let created = mint.token(own, mint.tenant, now).await;
    assert_eq!(server.check(&created).await.status, 200);
    let seconds = SignedDuration::from_secs;
    let almost = Timestamp::now() - seconds(897);
    let late = mint.token(own, mint.tenant, almost).await;
    assert_eq!(server.check(&late).await.status, 200);
    bad.push(mint.token(own, mint.tenant, now - seconds(901)).await);
    bad.push(mint.token(own, mint.tenant, now + seconds(120)).await);
    bad.push(
        mint.token("http://elsewhere.example", mint.tenant, now)
            .await,
    );
    bad.push(mint.token(&format!("{own}/"), mint.tenant, now).await);
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let foreign = service.api(&["--tenant", "other"]);
    let theirs = foreign.sign_up("ada@example.com").await;
    bad.push(theirs.access().to_owned());
    let their_tenant = theirs.claims()["aud"].as_str().unwrap().parse().unwrap();
    // A session of one tenant with the other tenant as audience.
    let cross_tenant = mint.token(own, their_tenant, now).await;
    assert_rejected(&foreign.with_bearer(&cross_tenant)).await;
    bad.push(cross_tenant);
    // Another database has other keys.
    let elsewhere = Service::start_in_process().await;
    bad.push(
        elsewhere
            .api(&[])
            .sign_up("ada@example.com")
            .await
            .access()
            .to_owned(),
    );

    println!("{} tokens", bad.len());
    for token in bad {
        let printable = token.bytes().all(|byte| byte.is_ascii_graphic());
        if printable {
            assert_eq!(server.check(&token).await.status, 401, "{token}");
            assert_rejected(&server.with_bearer(&token)).await;
        }
    }
    assert_eq!(server.check(&good).await.status, 200);
}
