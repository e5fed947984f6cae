//! What is not an access token of ours.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use perennial::{
    callers::tokens::{Keyring, Tokens as Own},
    clock::Ids,
    config::{Config, MasterKey, Reader},
    db::Db,
    keys::SealingKey,
    randomness::Randomness,
};
use perennial_domain::{Session, TenantId};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::harness::{
    api::Api,
    people::{Tokens, outside_token},
    process::{MASTER_KEY, run_ok},
    service::Service,
};

const PATH: &str = "/authentication/user-logged-in";

/// Refused in the one way that there is.
async fn refuses(caller: &Api) {
    let answer = caller.try_send(Method::POST, PATH, None).await.unwrap();
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (401, "invalid_token")
    );
    assert_eq!(
        answer.header("www-authenticate"),
        "Bearer error=\"invalid_token\""
    );
}

/// Catalogue: 54.
#[tokio::test]
async fn authorization_in_other_forms() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let token = server.sign_up("ada@example.com").await;
    let token = token.access();
    refuses(&server).await;
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
        refuses(&server.with("authorization", &value)).await;
    }
    let doubled = server.on_behalf_of(token);
    refuses(&doubled.on_behalf_of(token)).await;
    // Of 64 KiB: too large a header for anybody.
    let huge = server.with(
        "authorization",
        &format!("Bearer {}", "a".repeat(64 * 1024)),
    );
    let answer = huge.try_send(Method::POST, PATH, None).await;
    assert!(answer.is_err() || answer.unwrap().status == 431);
    // The scheme's name is written as one likes; a body of nothing is none.
    for value in ["bearer", "BEARER"] {
        let caller = server.with("authorization", &format!("{value} {token}"));
        assert_eq!(
            caller
                .try_send(Method::POST, PATH, None)
                .await
                .unwrap()
                .status,
            200
        );
    }
    let caller = server.on_behalf_of(token);
    for body in ["", "{}", " {} "] {
        assert_eq!(caller.post(PATH, body).await.status, 200, "{body}");
    }
    assert_eq!(caller.post(PATH, "[]").await.status, 400);
    assert_eq!(caller.post(PATH, r#"{"x": 1}"#).await.status, 422);
    assert_eq!(caller.post(&format!("{PATH}?x=1"), "").await.status, 400);
}

/// Makes tokens by the service's own keys, for whatever it is told.
struct Mint {
    db: Arc<Db>,
    session: Session,
    tenant: TenantId,
}

impl Mint {
    fn of(service: &Service, tokens: &Tokens) -> Self {
        let given = service.variables.iter();
        let given = given.map(|(name, value)| ((*name).to_owned(), value.clone()));
        let config = Config::read(&mut Reader::new(given)).unwrap();
        let claims = tokens.claims();
        let id = |name: &str| claims[name].as_str().unwrap().to_owned();
        let now = Timestamp::now();
        Self {
            db: Arc::new(Db::start(&config.database).unwrap()),
            session: Session {
                id: id("sid").parse().unwrap(),
                user: id("sub").parse().unwrap(),
                client: id("client_id").parse().unwrap(),
                issuer: String::new(),
                address: [192, 0, 2, 1].into(),
                user_agent: None,
                created_at: now,
                last_used_at: now,
                expires_at: now,
                ended_at: None,
                generation: 0,
                confirmed: 0,
                refreshed_at: now,
            },
            tenant: id("aud").parse().unwrap(),
        }
    }

    async fn token(&self, issuer: &str, tenant: TenantId, at: Timestamp) -> String {
        let sealing = SealingKey::of(&MasterKey::parse(MASTER_KEY).unwrap());
        let own = Own::new(issuer.into(), Keyring::new(self.db.clone(), sealing));
        let token = own.issue(Ids(Randomness), tenant, &self.session, at).await;
        token.unwrap().token.expose_secret().to_owned()
    }
}

/// Catalogue: 68, 69, 70, 71, 72, 73, 74.
#[tokio::test]
async fn tokens_that_are_not_ours() {
    let service = Service::start().await;
    let server = service.caller(&["--tenant", "default"]);
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
        outside_token("ada@example.com"),
        format!("{claims}.{signature}"),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{good}."),
        format!("{good}.{signature}"),
        format!(".{claims}.{signature}"),
        format!("{good}=="),
    ];
    // Other headers over the same claims and signature.
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
    // Signed with the public key, as if that were a secret.
    for secret in [BASE64.decode(&public).unwrap(), public.into_bytes()] {
        let header = json!({"alg": "HS256", "typ": "at+jwt", "kid": kid});
        let message = format!("{}.{claims}", BASE64.encode(header.to_string()));
        let key = jsonwebtoken::EncodingKey::from_secret(&secret);
        let signed =
            jsonwebtoken::crypto::sign(message.as_bytes(), &key, jsonwebtoken::Algorithm::HS256);
        bad.push(format!("{message}.{}", signed.unwrap()));
    }
    // Every bit of the signature, and a bit of each character of the rest.
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
    // By our own key, and yet: of another time, as another service, for another tenant.
    let mint = Mint::of(&service, &tokens);
    let (own, now) = (&service.server.url, Timestamp::now());
    let made = mint.token(own, mint.tenant, now).await;
    assert_eq!(server.check(&made).await.status, 200);
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
    let foreign = service.caller(&["--tenant", "other"]);
    let theirs = foreign.sign_up("ada@example.com").await;
    bad.push(theirs.access().to_owned());
    let their_tenant = theirs.claims()["aud"].as_str().unwrap().parse().unwrap();
    // Our session under their tenant, at theirs.
    let crossed = mint.token(own, their_tenant, now).await;
    refuses(&foreign.on_behalf_of(&crossed)).await;
    bad.push(crossed);
    // Another environment: another database, and so other keys.
    let elsewhere = Service::start().await;
    bad.push(
        elsewhere
            .caller(&[])
            .sign_up("ada@example.com")
            .await
            .access()
            .to_owned(),
    );

    println!("{} tokens", bad.len());
    for token in bad {
        let fit = token.bytes().all(|byte| byte.is_ascii_graphic());
        if fit {
            assert_eq!(server.check(&token).await.status, 401, "{token}");
            refuses(&server.on_behalf_of(&token)).await;
        }
    }
    assert_eq!(server.check(&good).await.status, 200);
}
