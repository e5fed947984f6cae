//! Forged and misused access and refresh tokens of the service itself.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, crypto::sign};
use serde_json::{Value, json};

use super::{AttackReport, outcome};
use crate::{
    authentication::access_tokens::TokenMint,
    harness::{
        auth::sandbox_token, identity_provider::FakeIssuer, process::run_ok, service::Service,
    },
    malformed_input::target::state,
};

/// Malformed input: 68, 69, 70, 71, 72, 73, 74.
#[tokio::test]
async fn forged_own_tokens_are_rejected() {
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let (_, client_value) = service.create_client(&["--tenant", "default"]);
    let server = service.anonymous().with("client-id", &client_value);
    let foreign = service.api(&["--tenant", "other"]);
    let tokens = server.sign_up("ada@example.com").await;
    let good = tokens.access().to_owned();
    let theirs = foreign.sign_up("ada@example.com").await;
    let revoked = server.sign_in("ada@example.com").await;
    let logout = server.with_bearer(revoked.access());
    let logout = logout.post("/authentication/tokens/logout", "").await;
    assert!(logout.status < 300, "{}", logout.text);
    // Another environment: the same master key, another database.
    let elsewhere = Service::start_in_process().await;
    let elsewhere = elsewhere.api(&[]).sign_up("ada@example.com").await;
    assert_eq!(server.check(&good).await.status, 200);
    let before = state(&service.database).await;

    let parts: Vec<&str> = good.split('.').collect();
    let (header, payload, signature) = (parts[0], parts[1], parts[2]);
    let kid = jsonwebtoken::decode_header(&good).unwrap().kid.unwrap();
    let keys = server.get("/.well-known/jwks.json").await.json();
    let public = keys["keys"][0]["x"].as_str().unwrap().to_owned();
    let encode = |value: &Value| BASE64.encode(value.to_string());
    let mut attacks: Vec<(String, String)> = Vec::new();
    let mut attack = |name: &str, token: String| attacks.push((name.to_owned(), token));

    attack("refresh token", tokens.refresh().to_owned());
    attack("client id", client_value.clone());
    attack(
        "identity provider's token",
        sandbox_token("ada@example.com"),
    );
    attack("session id", tokens.session().to_owned());
    attack("another tenant's token", theirs.access().to_owned());
    attack("another environment's token", elsewhere.access().to_owned());
    attack("token of a revoked session", revoked.access().to_owned());
    for alg in ["none", "nOnE", "", "HS256", "ES256", "RS256"] {
        let other = encode(&json!({"alg": alg, "typ": "at+jwt", "kid": kid}));
        attack(
            &format!("alg {alg:?}, no signature"),
            format!("{other}.{payload}."),
        );
        attack(
            &format!("alg {alg:?}, signature kept"),
            format!("{other}.{payload}.{signature}"),
        );
    }
    for (form, secret) in [
        ("raw", BASE64.decode(&public).unwrap()),
        ("encoded", public.into_bytes()),
    ] {
        let other = encode(&json!({"alg": "HS256", "typ": "at+jwt", "kid": kid}));
        let message = format!("{other}.{payload}");
        let key = EncodingKey::from_secret(&secret);
        let mac = sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
        attack(
            &format!("HS256 with the public key ({form})"),
            format!("{message}.{mac}"),
        );
    }
    // Signed with an attacker's key that the header contains or refers to.
    let attacker = FakeIssuer::start().await;
    let claims = String::from_utf8(BASE64.decode(payload).unwrap()).unwrap();
    for (name, other) in [
        (
            "attacker's key",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid}),
        ),
        (
            "jwk",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid, "jwk": attacker.keys["keys"][0]}),
        ),
        (
            "jku",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid, "jku": attacker.issuer}),
        ),
        (
            "kid of the attacker's key",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "own"}),
        ),
        (
            "kid with a path",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "../../etc/passwd"}),
        ),
        (
            "kid with SQL",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "' OR 1=1 --"}),
        ),
        (
            "kid with a URL",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "http://127.0.0.1:1/"}),
        ),
        (
            "unknown kid",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "01920000000070008000000000000001"}),
        ),
    ] {
        attack(name, attacker.sign(&other.to_string(), &claims));
    }
    for (name, other) in [
        ("typ JWT", json!({"alg": "EdDSA", "typ": "JWT", "kid": kid})),
        (
            "crit",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid, "crit": ["x"]}),
        ),
        ("no kid", json!({"alg": "EdDSA", "typ": "at+jwt"})),
        ("only alg none", json!({"alg": "none"})),
        (
            "own key in the header",
            json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid, "jku": "http://127.0.0.1:1/", "jwk": keys["keys"][0]}),
        ),
    ] {
        let other = encode(&other);
        attack(name, format!("{other}.{payload}.{signature}"));
        attack(
            &format!("{name}, no signature"),
            format!("{other}.{payload}."),
        );
    }
    // Changed claims under the original signature.
    for (claim, value) in [
        ("sub", theirs.claims()["sub"].clone()),
        ("aud", theirs.claims()["aud"].clone()),
        ("sid", json!(theirs.session())),
        ("client_id", theirs.claims()["client_id"].clone()),
        ("exp", json!(9_999_999_999_u64)),
        ("gen", json!(99)),
        ("iss", json!("http://elsewhere.example")),
    ] {
        let mut claims = tokens.claims();
        claims[claim] = value;
        attack(
            &format!("changed {claim}"),
            format!("{header}.{}.{signature}", encode(&claims)),
        );
    }
    attack(
        "signature of another token",
        format!(
            "{header}.{payload}.{}",
            theirs.access().rsplit('.').next().unwrap()
        ),
    );
    attack("no signature", format!("{header}.{payload}."));
    attack("no header", format!("{payload}.{signature}"));
    attack("empty header", format!(".{payload}.{signature}"));
    attack("two parts", format!("{header}.{payload}"));
    attack("four parts", format!("{good}.{signature}"));
    attack("trailing dot", format!("{good}."));
    attack("padding", format!("{good}=="));
    // Signed with the right key, for another time, issuer or tenant.
    let mint = TokenMint::new(&service, &tokens);
    let (own, now) = (&*service.server.app.public_url, Timestamp::now());
    let seconds = SignedDuration::from_secs;
    for at in [now, now - seconds(897)] {
        let valid = mint.token(own, mint.tenant, at).await;
        assert_eq!(server.check(&valid).await.status, 200, "{at}");
    }
    attack(
        "expired",
        mint.token(own, mint.tenant, now - seconds(901)).await,
    );
    attack(
        "not yet valid",
        mint.token(own, mint.tenant, now + seconds(120)).await,
    );
    attack(
        "another issuer",
        mint.token("http://elsewhere.example", mint.tenant, now)
            .await,
    );
    attack(
        "issuer with a slash",
        mint.token(&format!("{own}/"), mint.tenant, now).await,
    );
    let their_tenant = theirs.claims()["aud"].as_str().unwrap().parse().unwrap();
    let cross_tenant = mint.token(own, their_tenant, now).await;
    attack("our session for the other tenant", cross_tenant.clone());

    let mut report = AttackReport::new("Tokens of the service");
    for (name, token) in &attacks {
        let response = server.check(token).await;
        report.expect(name, &["401 invalid_token"], &outcome(&response));
    }
    let response = foreign.check(&cross_tenant).await;
    report.expect(
        "our session for the other tenant, with its client",
        &["401 invalid_token"],
        &outcome(&response),
    );
    let response = foreign.check(&good).await;
    report.expect(
        "our token with the other tenant's client",
        &["401 invalid_token"],
        &outcome(&response),
    );
    let twice = server.with_bearer(&good).with_bearer(theirs.access());
    let response = twice.post("/authentication/user-logged-in", "").await;
    report.expect(
        "two authorization headers",
        &["401 invalid_token"],
        &outcome(&response),
    );
    let bytes = BASE64.decode(signature).unwrap();
    let mut accepted = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let token = format!("{header}.{payload}.{}", BASE64.encode(flipped));
        accepted += usize::from(server.check(&token).await.status != 401);
    }
    report.expect(
        "each bit of the signature flipped (512)",
        &["0 accepted"],
        &format!("{accepted} accepted"),
    );
    let mut accepted = 0;
    for position in 0..=(header.len() + payload.len()) {
        let mut flipped = good.clone().into_bytes();
        flipped[position] ^= 1;
        let token = String::from_utf8(flipped).unwrap();
        accepted += usize::from(server.check(&token).await.status != 401);
    }
    report.expect(
        "each character of header and claims altered",
        &["0 accepted"],
        &format!("{accepted} accepted"),
    );

    // Refresh tokens.
    let refresh = tokens.refresh();
    for (name, token) in [
        ("access token as refresh token", good.clone()),
        (
            "another tenant's refresh token",
            theirs.refresh().to_owned(),
        ),
        (
            "another environment's refresh token",
            elsewhere.refresh().to_owned(),
        ),
        (
            "refresh token of a revoked session",
            revoked.refresh().to_owned(),
        ),
        (
            "refresh token without its last character",
            refresh[..refresh.len() - 1].to_owned(),
        ),
        (
            "refresh token with a further character",
            format!("{refresh}A"),
        ),
        (
            "refresh token without its prefix",
            refresh.trim_start_matches("prn_rt_").to_owned(),
        ),
    ] {
        let response = server.refresh(&token).await;
        // An access token is longer than a refresh token can be.
        report.expect(
            name,
            &["401 invalid_grant", "422 too_long"],
            &outcome(&response),
        );
    }
    let bytes = BASE64
        .decode(refresh.trim_start_matches("prn_rt_"))
        .unwrap();
    let mut accepted = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let token = format!("prn_rt_{}", BASE64.encode(flipped));
        accepted += usize::from(server.refresh(&token).await.status != 401);
    }
    report.expect(
        "each bit of the refresh token flipped",
        &["0 accepted"],
        &format!("{accepted} accepted"),
    );

    report.finish(70);
    assert_eq!(state(&service.database).await, before);
    assert_eq!(server.check(&good).await.status, 200);
}
