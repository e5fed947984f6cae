//! Signing keys of access tokens: publication, rotation without rejected tokens, and revocation.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    jwk::{JwkSet, KeyAlgorithm},
};
use serde_json::Value;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    env_number,
    process::{Server, run_err, run_ok},
    service::Service,
    wait_until,
};

async fn published(api: &ApiClient) -> JwkSet {
    let response = api.get("/.well-known/jwks.json").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("cache-control"), "public, max-age=300");
    serde_json::from_value(response.json()).unwrap()
}

/// Verifies a token as another service would: with the published keys only.
async fn verify_with_published_keys(api: &ApiClient, token: &str, audience: &str) -> Value {
    let configuration = api.get("/.well-known/openid-configuration").await.json();
    let issuer = configuration["issuer"].as_str().unwrap();
    let header = decode_header(token).unwrap();
    assert_eq!(header.typ.as_deref(), Some("at+jwt"));
    let keys = published(api).await;
    let key = keys
        .find(header.kid.as_ref().unwrap())
        .expect("the key is published");
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    validation.set_required_spec_claims(&["iss", "aud", "exp", "sub"]);
    let decoded = decode::<Value>(token, &DecodingKey::from_jwk(key).unwrap(), &validation);
    decoded.unwrap().claims
}

#[tokio::test]
async fn published_keys_verify_access_tokens() {
    let service = Service::start().await;
    let server = service.api(&[]);
    let tenant = run_ok(&service.variables, &["tenant", "list", "--json"]);
    let tenant: Value = serde_json::from_str(&tenant).unwrap();
    let tenant = tenant["id"].as_str().unwrap();
    let tokens = server.sign_up("ada@example.com").await;
    let claims = verify_with_published_keys(&server, tokens.access(), tenant).await;
    assert_eq!(claims, tokens.claims());
    let mut names: Vec<&String> = claims.as_object().unwrap().keys().collect();
    names.sort();
    let expected = [
        "aud",
        "auth_time",
        "client_id",
        "exp",
        "gen",
        "iat",
        "iss",
        "jti",
        "nbf",
        "sid",
        "sub",
    ];
    assert_eq!(names, expected);
    assert_eq!(claims["iss"], service.server.url);
    assert_eq!(claims["sub"], tokens.user());
    assert_eq!(claims["sid"], tokens.session());
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        900
    );

    // A new key is published before it signs.
    let id = |json: &str| -> String {
        let created: Value = serde_json::from_str(json).unwrap();
        created["id"].as_str().unwrap().to_owned()
    };
    let next = id(&run_ok(&service.variables, &["keys", "rotate", "--json"]));
    wait_until(
        "the next key is published",
        Duration::from_secs(2),
        async || published(&server).await.find(&next).is_some(),
    )
    .await;
    let header = decode_header(server.sign_in("ada@example.com").await.access()).unwrap();
    assert_ne!(header.kid.as_deref(), Some(next.as_str()));
    let listed = run_ok(&service.variables, &["keys", "list"]);
    assert!(
        listed.contains("signs") && listed.contains("published"),
        "{listed}"
    );

    // The other algorithm, without delay.
    let created = [
        "keys",
        "rotate",
        "--algorithm",
        "ES256",
        "--after",
        "0",
        "--json",
    ];
    let es256 = id(&run_ok(&service.variables, &created));
    wait_until("the new key signs", Duration::from_secs(2), async || {
        let tokens = server.sign_in("ada@example.com").await;
        decode_header(tokens.access()).unwrap().kid.as_deref() == Some(es256.as_str())
    })
    .await;
    let signed = server.sign_in("ada@example.com").await;
    verify_with_published_keys(&server, signed.access(), tenant).await;
    let keys = published(&server).await;
    let key = keys.find(&es256).unwrap();
    assert_eq!(key.common.key_algorithm, Some(KeyAlgorithm::ES256));
    assert_eq!(
        decode_header(signed.access()).unwrap().alg,
        Algorithm::ES256
    );
    for token in [&tokens, &signed] {
        assert_eq!(server.check(token.access()).await.status, 200);
    }
    let wrong = run_err(
        &service.variables,
        &["keys", "rotate", "--algorithm", "HS256"],
    );
    assert!(wrong.contains("must be EdDSA or ES256"), "{wrong}");
}

/// Rotations while users refresh and check tokens on two instances. `ROTATIONS` sets how many; `just
/// key-rotations` uses 50.
#[tokio::test]
async fn key_rotations_under_load_reject_no_token() {
    let service = Service::start_with(|variables| {
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "http://perennial.example".to_owned(),
        );
        variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
    })
    .await;
    let other = Server::start(&service.variables).await;
    let (_, client) = service.create_client(&[]);
    let clients =
        [&service.server.url, &other.url].map(|url| ApiClient::new(url).with("client-id", &client));
    let stop = Arc::new(AtomicBool::new(false));
    let checks = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..6)
        .map(|n| {
            let (clients, stop, checks) = (clients.clone(), stop.clone(), checks.clone());
            tokio::spawn(async move {
                let (here, there) = (&clients[n % 2], &clients[(n + 1) % 2]);
                let mut tokens = here.sign_up(&format!("p{n}@example.com")).await;
                while !stop.load(Ordering::Relaxed) {
                    // On the issuing instance, and on one that may not have seen the key yet.
                    for api in [there, here, there] {
                        let response = api.check(tokens.access()).await;
                        assert_eq!(response.status, 200, "{}", response.text);
                        checks.fetch_add(1, Ordering::Relaxed);
                    }
                    tokens = SessionTokens::from_response(&here.refresh(tokens.refresh()).await);
                }
                tokens
            })
        })
        .collect();
    let rotations: u32 = env_number("ROTATIONS").unwrap_or(12);
    for _ in 0..rotations {
        let variables = service.variables.clone();
        let rotate = move || run_ok(&variables, &["keys", "rotate", "--after", "0"]);
        tokio::task::spawn_blocking(rotate).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut last = Vec::new();
    for worker in workers {
        last.push(worker.await.unwrap());
    }
    assert_eq!(
        service.count("SELECT count(*) FROM signing_keys").await,
        i64::from(rotations) + 1
    );
    let checks = checks.load(Ordering::Relaxed);
    println!("{checks} checks, none refused");
    assert!(checks > u64::from(rotations) * 10, "only {checks} checks");

    // After a leak: tokens of old keys are rejected everywhere within a second, cached or not.
    for api in &clients {
        assert_eq!(api.check(last[0].access()).await.status, 200);
    }
    run_ok(&service.variables, &["keys", "rotate", "--refuse-old"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for api in &clients {
        for tokens in &last {
            assert_eq!(api.check(tokens.access()).await.status, 401);
        }
        let refreshed = SessionTokens::from_response(&api.refresh(last[0].refresh()).await);
        assert_eq!(api.check(refreshed.access()).await.status, 200);
    }
    assert_eq!(published(&clients[0]).await.keys.len(), 1);
}
