//! The keys that sign access tokens: rotated without anybody noticing, refused when an operator says so.

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
    api::Api,
    people::Tokens,
    process::{Server, run_err, run_ok},
    service::Service,
    wait_until,
};

async fn published(caller: &Api) -> JwkSet {
    let answer = caller.get("/.well-known/jwks.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("cache-control"), "public, max-age=300");
    serde_json::from_value(answer.json()).unwrap()
}

/// As another service verifies a token of ours: by what we publish, and nothing else.
async fn verify_elsewhere(caller: &Api, token: &str, audience: &str) -> Value {
    let configuration = caller.get("/.well-known/openid-configuration").await.json();
    let issuer = configuration["issuer"].as_str().unwrap();
    let header = decode_header(token).unwrap();
    assert_eq!(header.typ.as_deref(), Some("at+jwt"));
    let keys = published(caller).await;
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
async fn verified_by_another_service() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let tenant = run_ok(&service.variables, &["tenant", "list", "--json"]);
    let tenant: Value = serde_json::from_str(&tenant).unwrap();
    let tenant = tenant["id"].as_str().unwrap();
    let tokens = server.sign_up("ada@example.com").await;
    let claims = verify_elsewhere(&server, tokens.access(), tenant).await;
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
        let made: Value = serde_json::from_str(json).unwrap();
        made["id"].as_str().unwrap().to_owned()
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

    // The other algorithm, at once.
    let made = [
        "keys",
        "rotate",
        "--algorithm",
        "ES256",
        "--after",
        "0",
        "--json",
    ];
    let es256 = id(&run_ok(&service.variables, &made));
    wait_until("the new key signs", Duration::from_secs(2), async || {
        let tokens = server.sign_in("ada@example.com").await;
        decode_header(tokens.access()).unwrap().kid.as_deref() == Some(es256.as_str())
    })
    .await;
    let signed = server.sign_in("ada@example.com").await;
    verify_elsewhere(&server, signed.access(), tenant).await;
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
    assert!(wrong.contains("expected EdDSA or ES256"), "{wrong}");
}

/// Fifty rotations while everybody signs in, refreshes and is checked, at whichever instance.
#[tokio::test]
async fn fifty_rotations_under_load_alone() {
    let service = Service::start_with(|variables| {
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "http://perennial.example".to_owned(),
        );
        variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
    })
    .await;
    let other = Server::start(&service.variables).await;
    let (_, client) = service.make_client(&[]);
    let callers =
        [&service.server.url, &other.url].map(|url| Api::new(url).with("client-id", &client));
    let stop = Arc::new(AtomicBool::new(false));
    let checks = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..6)
        .map(|n| {
            let (callers, stop, checks) = (callers.clone(), stop.clone(), checks.clone());
            tokio::spawn(async move {
                let (here, there) = (&callers[n % 2], &callers[(n + 1) % 2]);
                let mut tokens = here.sign_up(&format!("p{n}@example.com")).await;
                while !stop.load(Ordering::Relaxed) {
                    // Where it was made, and where nobody has seen its key perhaps.
                    for caller in [there, here, there] {
                        let answer = caller.check(tokens.access()).await;
                        assert_eq!(answer.status, 200, "{}", answer.text);
                        checks.fetch_add(1, Ordering::Relaxed);
                    }
                    tokens = Tokens::of(&here.refresh(tokens.refresh()).await);
                }
                tokens
            })
        })
        .collect();
    for _ in 0..50 {
        let variables = service.variables.clone();
        let rotate = move || run_ok(&variables, &["keys", "rotate", "--after", "0"]);
        tokio::task::spawn_blocking(rotate).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut last = Vec::new();
    for worker in workers {
        last.push(worker.await.unwrap());
    }
    assert_eq!(service.count("SELECT count(*) FROM signing_keys").await, 51);
    let checks = checks.load(Ordering::Relaxed);
    println!("{checks} checks, none refused");
    assert!(checks > 500, "only {checks} checks");

    // After a leak: what old keys have signed is refused, everywhere within a second, remembered or not.
    for caller in &callers {
        assert_eq!(caller.check(last[0].access()).await.status, 200);
    }
    run_ok(&service.variables, &["keys", "rotate", "--refuse-old"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for caller in &callers {
        for tokens in &last {
            assert_eq!(caller.check(tokens.access()).await.status, 401);
        }
        let refreshed = Tokens::of(&caller.refresh(last[0].refresh()).await);
        assert_eq!(caller.check(refreshed.access()).await.status, 200);
    }
    assert_eq!(published(&callers[0]).await.keys.len(), 1);
}
