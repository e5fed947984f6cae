//! Identity providers: whose tokens prove what.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::Timestamp;
use perennial::{
    config::MasterKey,
    keys::SealingKey,
    providers::{Identity, Patience, Provider, Providers, Refusal, Verify},
};
use serde_json::{Value, json};

use crate::harness::{
    database::Database,
    process::{MASTER_KEY, Variables, perennial, run_err, run_ok, sandbox},
    provider::{Answers, Forger, HEADER, OpenIdProvider},
};

fn listed(issuer: &str) -> [Provider; 1] {
    [Provider {
        issuer: issuer.to_owned(),
        audiences: vec!["other".to_owned(), "product".to_owned()],
        verify: Verify::Jwt,
    }]
}

fn sealing() -> SealingKey {
    SealingKey::of(&MasterKey::parse(MASTER_KEY).unwrap())
}

fn verifier(patience: Patience) -> Providers {
    Providers::new(patience, sealing(), None).unwrap()
}

fn wish(alg: &str, in_token: bool) -> Value {
    json!({"sub": "u1", "email": "ada@example.com", "email_verified": true, "audience": "product", "alg": alg, "in_token": in_token})
}

fn encoded_bytes(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

fn decoded(text: &str) -> Vec<u8> {
    BASE64.decode(text).unwrap()
}

/// All of them at once.
async fn together<T>(several: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut several: Vec<_> = several.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        several.retain_mut(|one| match one.as_mut().poll(cx) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if several.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done
}

async fn verify(providers: &Providers, issuer: &str, token: &str) -> Result<Identity, Refusal> {
    providers
        .verify(&listed(issuer), token, Timestamp::now())
        .await
}

/// Every kind of key, with the e-mail address in the token, and without, by way of userinfo.
#[tokio::test]
async fn tokens_of_a_real_provider() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(Patience::default());
    for alg in ["EdDSA", "ES256", "RS256"] {
        for in_token in [true, false] {
            let token = provider.mint(wish(alg, in_token)).await;
            let identity = verify(&providers, &provider.issuer, &token).await.unwrap();
            let expected = Identity {
                issuer: provider.issuer.clone(),
                subject: "u1".to_owned(),
                email: Some("ada@example.com".to_owned()),
                email_verified: true,
            };
            assert_eq!(identity, expected, "{alg} {in_token}");
        }
    }
    assert_eq!(provider.key_fetches().await, 1);

    let unverified = json!({"sub": "u2", "email": "b@example.com", "email_verified": false, "audience": "product", "alg": "EdDSA"});
    let token = provider.mint(unverified).await;
    assert!(
        !verify(&providers, &provider.issuer, &token)
            .await
            .unwrap()
            .email_verified
    );

    let mut for_others = wish("EdDSA", true);
    for_others["audience"] = json!("another-product");
    let token = provider.mint(for_others).await;
    assert_eq!(
        verify(&providers, &provider.issuer, &token).await,
        Err(Refusal::Token(
            "it is meant for another audience".to_owned()
        ))
    );
    // Listed under an address that differs by a slash, or not at all.
    let token = provider.mint(wish("EdDSA", true)).await;
    for issuer in [
        format!("{}/", provider.issuer),
        "http://127.0.0.1:1".to_owned(),
    ] {
        let refused = verify(&providers, &issuer, &token).await;
        assert_eq!(
            refused,
            Err(Refusal::Token("its issuer is not listed".to_owned()))
        );
    }
}

/// Catalogue: 68, 69, 70, 71, 72, 73, 75.
#[tokio::test]
async fn tokens_that_prove_nothing() {
    let forger = Forger::start().await;
    let providers = verifier(Patience::default());
    let good = forger.token_with("x", Some("1"));
    assert!(verify(&providers, &forger.issuer, &good).await.is_ok());
    let parts: Vec<&str> = good.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let encoded = |text: &str| encoded_bytes(text.as_bytes());

    let mut bad: Vec<String> = Vec::new();
    // No signature, or none that means anything.
    for alg in [
        "none", "nOnE", "None", "", "HS256", "HS512", "ES256", "RS256", "XX",
    ] {
        let other = encoded(&format!(r#"{{"alg":"{alg}","kid":"own"}}"#));
        bad.push(format!("{other}.{claims}."));
        bad.push(format!("{other}.{claims}.{signature}"));
    }
    bad.push(format!(
        "{}.{claims}.{signature}",
        encoded(r#"{"kid":"own"}"#)
    ));
    for zeros in [64, 96, 0, 1] {
        bad.push(format!(
            "{header}.{claims}.{}",
            encoded(&"\0".repeat(zeros))
        ));
    }
    // The public key as if it were a shared secret, as it is written and as it is.
    let mut hmac = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    hmac.kid = Some("own".to_owned());
    let body =
        json!({"iss": forger.issuer, "sub": "u1", "aud": "product", "exp": 9_999_999_999_u64});
    let public = forger.keys["keys"][0]["x"].as_str().unwrap();
    for secret in [public.as_bytes(), &decoded(public)] {
        let secret = jsonwebtoken::EncodingKey::from_secret(secret);
        bad.push(jsonwebtoken::encode(&hmac, &body, &secret).unwrap());
    }
    // Keys that the token itself brings or names.
    let claims_for_us = format!(
        r#"{{"iss":{},"sub":"u1","aud":"product","exp":9999999999,"email":"a@example.com"}}"#,
        json!(forger.issuer)
    );
    for kid in [
        "../../etc/passwd",
        "' OR 1=1 --",
        "http://127.0.0.1:1/keys",
        "OWN",
        "own ",
    ] {
        let header = json!({"alg": "EdDSA", "kid": kid}).to_string();
        bad.push(forger.sign(&header, &claims_for_us));
    }
    let stranger = Forger::start().await;
    let brought = format!(r#""jwk":{}"#, stranger.keys["keys"][0]);
    let named = format!(r#""jku":"{}/jwks""#, stranger.issuer);
    for extra in [brought, named.replace("jku", "x5u"), named] {
        let header = HEADER.replacen('{', &format!("{{{extra},"), 1);
        bad.push(stranger.sign(&header, &claims_for_us));
    }
    bad.push(stranger.sign(HEADER, &claims_for_us));
    bad.push(forger.sign(
        r#"{"alg":"EdDSA","kid":"own","crit":["exp"]}"#,
        &claims_for_us,
    ));
    // Times.
    for exp in [
        None,
        Some("0"),
        Some("-1"),
        Some(r#""9999999999""#),
        Some("null"),
        Some("true"),
        Some("[9999999999]"),
        Some("-1e300"),
    ] {
        bad.push(forger.token_with("exp", exp));
    }
    let ago = (Timestamp::now().as_second() - 61).to_string();
    bad.push(forger.token_with("exp", Some(&ago)));
    for nbf in ["9999999999", "1e300", r#""0""#] {
        bad.push(forger.token_with("nbf", Some(nbf)));
    }
    // Who, by whom, for whom.
    for (claim, values) in [
        (
            "iss",
            vec!["null", "\"\"", "[]", "1", r#""http://127.0.0.1:1""#],
        ),
        (
            "aud",
            vec![
                "null",
                "\"\"",
                "[]",
                "1",
                r#""Product""#,
                r#"["x","y"]"#,
                r#"{"product":1}"#,
            ],
        ),
        ("sub", vec!["null", "\"\"", "1", "[]"]),
    ] {
        bad.push(forger.token_with(claim, None));
        for value in values {
            bad.push(forger.token_with(claim, Some(value)));
        }
    }
    bad.push(forger.token_with("sub", Some(&json!("x".repeat(256)).to_string())));
    let slash = json!(format!("{}/", forger.issuer)).to_string();
    bad.push(forger.token_with("iss", Some(&slash)));
    // Said twice.
    for twice in [
        r#"{"sub":"u2","#,
        r#"{"iss":"x","#,
        r#"{"aud":"x","#,
        r#"{"exp":1,"#,
    ] {
        bad.push(forger.sign(HEADER, &claims_for_us.replacen('{', twice, 1)));
    }
    // Other shapes.
    for shape in [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "Bearer x",
        &good[1..],
        &format!("{good}."),
        &format!(".{good}"),
        &format!("{good}.x.y"),
        &format!("{header}.{claims}"),
        &format!("{good} "),
        &good.replace('.', ".."),
    ] {
        bad.push(shape.to_owned());
    }
    bad.push(format!("{good}{}", "A".repeat(20_000)));
    // Every bit of the signature and every eighth of the rest, flipped.
    for position in 0..good.len() {
        if position % 8 == 0 || position > good.len() - signature.len() {
            let mut flipped = good.clone().into_bytes();
            flipped[position] ^= if flipped[position] == b'A' { 3 } else { 1 };
            let flipped = String::from_utf8(flipped).unwrap();
            // The last character of a signature has bits that mean nothing.
            if position != good.len() - 1 {
                bad.push(flipped);
            }
        }
    }
    for token in bad {
        let refused = verify(&providers, &forger.issuer, &token).await;
        let shown: String = token.chars().take(300).collect();
        assert!(
            matches!(refused, Err(Refusal::Token(_) | Refusal::Signature)),
            "{shown}: {refused:?}"
        );
    }
    // A key that is not for this, or for another algorithm.
    for (field, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
        ("alg", json!("ES256")),
    ] {
        let mut keys = forger.keys.clone();
        keys["keys"][0][field] = value;
        forger.answer(Answers::Keys(keys));
        let anew = verifier(Patience::default());
        let refused = verify(&anew, &forger.issuer, &good).await;
        assert!(
            matches!(refused, Err(Refusal::Token(_))),
            "{field}: {refused:?}"
        );
    }
    // Harmless variations are fine.
    for (claim, value) in [
        ("aud", r#"["x","product"]"#),
        ("azp", r#""product""#),
        ("exp", "9999999999.5"),
        ("email_verified", r#""true""#),
    ] {
        let token = forger.token_with(claim, Some(value));
        assert!(
            verify(&providers, &forger.issuer, &token)
                .await
                .unwrap()
                .email_verified,
            "{claim}"
        );
    }
}

/// Tokens that only their issuer can read: it is asked, and says for whom they are, or does not.
#[tokio::test]
async fn opaque_tokens_of_a_real_provider() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(Patience::default());
    let issuer = provider.issuer.clone();
    let opaque = json!({"sub": "u1", "email": "ada@example.com", "email_verified": true});
    let token = provider.mint(opaque).await;
    assert!(!token.contains('.'), "{token}");
    let by = |verify: Verify, audience: &str| Provider {
        issuer: issuer.clone(),
        audiences: vec![audience.to_owned()],
        verify,
    };
    let introspection = |secret: &str| Verify::Introspection {
        endpoint: None,
        client_id: "app".to_owned(),
        secret: sealing().seal(secret, &issuer),
    };
    let ask = async |listed: Provider, token: &str| {
        providers.verify(&[listed], token, Timestamp::now()).await
    };
    // What oidc-provider says of the audience of such a token is who got it.
    for listed in [
        by(introspection("app-secret"), "app"),
        by(Verify::Userinfo, ""),
    ] {
        let identity = ask(listed, &token).await.unwrap();
        assert_eq!(
            (identity.subject.as_str(), identity.email.as_deref()),
            ("u1", Some("ada@example.com"))
        );
        assert!(identity.email_verified);
    }
    let other = ask(by(introspection("app-secret"), "product"), &token).await;
    assert_eq!(
        other,
        Err(Refusal::Token(
            "it is meant for another audience".to_owned()
        ))
    );
    for listed in [
        by(introspection("app-secret"), "app"),
        by(Verify::Userinfo, ""),
    ] {
        for nonsense in ["x", "", &token[1..], &format!("{token}x")] {
            let refused = ask(listed.clone(), nonsense).await;
            assert!(
                matches!(refused, Err(Refusal::Token(_))),
                "{nonsense}: {refused:?}"
            );
        }
    }
    // Our own mistake is not the user's.
    let wrong = ask(by(introspection("wrong"), "app"), &token).await;
    assert!(matches!(wrong, Err(Refusal::Unavailable(_))), "{wrong:?}");
    let moved = Verify::Introspection {
        endpoint: None,
        client_id: "app".to_owned(),
        secret: sealing().seal("app-secret", "another issuer"),
    };
    let wrong = ask(by(moved, "app"), &token).await;
    assert!(matches!(wrong, Err(Refusal::Unavailable(_))), "{wrong:?}");
    // Where only JWTs are listed, an opaque token is shown to nobody; nor is another issuer's JWT to this one.
    let refused = ask(by(Verify::Jwt, "app"), &token).await;
    assert!(matches!(refused, Err(Refusal::Token(_))), "{refused:?}");
    let foreign = Forger::start().await.token_with("x", None);
    let refused = ask(by(Verify::Userinfo, ""), &foreign).await;
    assert_eq!(
        refused,
        Err(Refusal::Token("its issuer is not listed".to_owned()))
    );
}

/// A token-info endpoint, as Google has it: numbers and truths as text, 400 for what it does not know.
#[tokio::test]
async fn tokeninfo_as_google_has_it() {
    let forger = Forger::start().await;
    let listed = [Provider {
        issuer: forger.issuer.clone(),
        audiences: vec!["product".to_owned()],
        verify: Verify::Tokeninfo {
            endpoint: format!("{}/me", forger.issuer),
        },
    }];
    let ask = async |status: u16, body: Value| {
        forger.answer(Answers::Userinfo(
            forger.keys.clone(),
            status,
            body.to_string(),
        ));
        let providers = verifier(Patience::default());
        providers
            .verify(&listed, "ya29.opaque", Timestamp::now())
            .await
    };
    let good = json!({"aud": "product", "sub": "1048", "exp": "9999999999", "email": "a@example.com", "email_verified": "true"});
    let identity = ask(200, good.clone()).await.unwrap();
    assert_eq!(
        (identity.subject.as_str(), identity.email_verified),
        ("1048", true)
    );
    for (field, value) in [
        ("aud", json!("other")),
        ("aud", Value::Null),
        ("exp", json!("1")),
        ("exp", json!("soon")),
        ("sub", Value::Null),
        ("sub", json!("")),
        ("iss", json!("https://other.example")),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let refused = ask(200, bad.clone()).await;
        assert!(
            matches!(refused, Err(Refusal::Token(_))),
            "{bad}: {refused:?}"
        );
    }
    let unknown = ask(400, json!({"error": "invalid_token"})).await;
    assert!(matches!(unknown, Err(Refusal::Token(_))), "{unknown:?}");
    for status in [401, 500, 302] {
        let away = ask(status, json!({})).await;
        assert!(
            matches!(away, Err(Refusal::Unavailable(_))),
            "{status}: {away:?}"
        );
    }
}

/// An elliptic signature in other forms than JWTs have it.
///
/// Catalogue: 75.
#[tokio::test]
async fn elliptic_signatures_in_other_forms() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(Patience::default());
    let token = provider.mint(wish("ES256", true)).await;
    assert!(verify(&providers, &provider.issuer, &token).await.is_ok());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let plain = decoded(signature);
    let integer = |half: &[u8]| [&[2, 33, 0][..], half].concat();
    let both = [integer(&plain[..32]), integer(&plain[32..])].concat();
    let der = [&[0x30, u8::try_from(both.len()).unwrap()][..], &both].concat();
    let swapped = [&plain[32..], &plain[..32]].concat();
    for other in [
        der,
        vec![0; 64],
        swapped,
        plain[..63].to_vec(),
        [&plain[..], &[0]].concat(),
    ] {
        let token = format!("{message}.{}", encoded_bytes(&other));
        let refused = verify(&providers, &provider.issuer, &token).await;
        assert_eq!(refused, Err(Refusal::Signature));
    }
}

/// What userinfo must say, and what it means if it does not.
#[tokio::test]
async fn userinfo_is_about_the_same_subject() {
    let forger = Forger::start().await;
    let token = forger.token_with("email", None);
    let ask = async |status: u16, body: &str| {
        forger.answer(Answers::Userinfo(
            forger.keys.clone(),
            status,
            body.to_owned(),
        ));
        let providers = verifier(Patience::default());
        verify(&providers, &forger.issuer, &token).await
    };
    let told = ask(
        200,
        r#"{"sub":"u1","email":"a@example.com","email_verified":true}"#,
    )
    .await;
    assert_eq!(told.unwrap().email.as_deref(), Some("a@example.com"));
    let nothing = ask(200, r#"{"sub":"u1","email":""}"#).await.unwrap();
    assert_eq!((nothing.email, nothing.email_verified), (None, false));
    let other = ask(
        200,
        r#"{"sub":"u2","email":"b@example.com","email_verified":true}"#,
    )
    .await;
    assert!(matches!(other, Err(Refusal::Token(_))), "{other:?}");
    for status in [401, 403] {
        let refused = ask(status, "{}").await;
        assert!(matches!(refused, Err(Refusal::Token(_))), "{refused:?}");
    }
    for (status, body) in [(500, "{}"), (429, "{}"), (200, "nonsense"), (200, "{}")] {
        let unknown = ask(status, body).await;
        assert!(
            matches!(unknown, Err(Refusal::Unavailable(_))),
            "{unknown:?}"
        );
    }
}

/// A provider that is down, silent, talks nonsense or does not stop talking cannot be asked, and that is
/// said soon; what it published before still holds.
#[tokio::test]
async fn a_provider_in_trouble() {
    let forger = Forger::start().await;
    let token = forger.token_with("x", None);
    let other = Forger::start().await;
    for trouble in [
        Answers::Endlessly,
        Answers::Body("nonsense"),
        Answers::Body("{}"),
        Answers::Body(r#"{"issuer":"http://other","jwks_uri":"http://other"}"#),
        Answers::Elsewhere(other.issuer.clone()),
        Answers::Never,
    ] {
        forger.answer(trouble);
        let providers = verifier(Patience::default());
        let begun = Instant::now();
        // Several at once are told at once.
        let several = (0..10).map(|_| verify(&providers, &forger.issuer, &token));
        for refused in together(several).await {
            assert!(
                matches!(refused, Err(Refusal::Unavailable(_))),
                "{refused:?}"
            );
        }
        assert!(
            begun.elapsed() < Duration::from_secs(7),
            "{:?}",
            begun.elapsed()
        );
    }
    // Keys that were taken back, or that everybody who verifies could sign with.
    for keys in [
        json!({"keys": []}),
        json!({"keys": [{"kty": "oct", "k": "AAAA", "kid": "own"}]}),
    ] {
        forger.answer(Answers::Keys(keys));
        let providers = verifier(Patience::default());
        let refused = verify(&providers, &forger.issuer, &token).await;
        assert!(matches!(refused, Err(Refusal::Token(_))), "{refused:?}");
    }
    let mut provider = OpenIdProvider::start().await;
    // One that asks again every time.
    let patience = Patience {
        fresh: Duration::ZERO,
        seldom: Duration::ZERO,
    };
    let providers = verifier(patience);
    let token = provider.mint(wish("EdDSA", true)).await;
    assert!(verify(&providers, &provider.issuer, &token).await.is_ok());
    let issuer = provider.issuer.clone();
    provider.stop();
    assert!(
        verify(&providers, &issuer, &token).await.is_ok(),
        "its keys are known"
    );
    let anew = verifier(Patience::default());
    let refused = verify(&anew, &issuer, &token).await;
    assert!(
        matches!(refused, Err(Refusal::Unavailable(_))),
        "{refused:?}"
    );
}

/// Whoever invents key ids makes nobody ask the provider for each; a key that was replaced under its old
/// name is found out, and the old one is good for nothing any more.
#[tokio::test]
async fn keys_come_and_go() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(Patience::default());
    let old = provider.mint(wish("ES256", true)).await;
    assert!(verify(&providers, &provider.issuer, &old).await.is_ok());
    let forger = Forger::start().await;
    for number in 0..1_000 {
        let header = format!(r#"{{"alg":"EdDSA","kid":"k{number}"}}"#);
        let claims = format!(
            r#"{{"iss":{},"sub":"u1","aud":"product","exp":9999999999}}"#,
            json!(provider.issuer)
        );
        let refused = verify(&providers, &provider.issuer, &forger.sign(&header, &claims)).await;
        assert!(matches!(refused, Err(Refusal::Token(_))), "{refused:?}");
    }
    assert_eq!(provider.key_fetches().await, 1, "at most every 30 seconds");

    let soon = Patience {
        seldom: Duration::from_secs(2),
        ..Patience::default()
    };
    let providers = verifier(soon);
    assert!(verify(&providers, &provider.issuer, &old).await.is_ok());
    provider.rotate().await;
    let new = provider.mint(wish("ES256", true)).await;
    let too_soon = verify(&providers, &provider.issuer, &new).await;
    assert_eq!(too_soon, Err(Refusal::Signature));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(verify(&providers, &provider.issuer, &new).await.is_ok());
    assert_eq!(
        verify(&providers, &provider.issuer, &old).await,
        Err(Refusal::Signature)
    );
    assert_eq!(provider.key_fetches().await, 3);
}

/// Runs `provider check` with a token on standard input; answers the JSON it printed, and whether it was
/// content.
fn check(variables: &Variables, issuer: &str, token: &str) -> (bool, Value) {
    use std::io::Write;
    let mut child = perennial()
        .args(["provider", "check", issuer, "--token", "-", "--json"])
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(token.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.success(),
        serde_json::from_slice(&output.stdout).unwrap(),
    )
}

/// As an operator connects one.
#[tokio::test]
async fn listed_checked_and_removed() {
    let provider = OpenIdProvider::start().await;
    let database = Database::create().await;
    let variables = sandbox(&database.url);
    let issuer = provider.issuer.as_str();
    let add = [
        "provider",
        "add",
        "--issuer",
        issuer,
        "--audience",
        "product",
    ];
    run_ok(&variables, &add);
    assert!(run_err(&variables, &add).contains("is listed already"));
    let line: Value =
        serde_json::from_str(&run_ok(&variables, &["provider", "list", "--json"])).unwrap();
    assert_eq!(
        line,
        json!({"issuer": issuer, "verify": "jwt", "audiences": ["product"]})
    );

    let said = run_ok(&variables, &["provider", "check", issuer]);
    for expected in [
        "answers",
        "key: ed EdDSA",
        "key: ec ES256",
        "key: rsa RS256",
        "/me",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let token = provider.mint(wish("EdDSA", true)).await;
    let (content, said) = check(&variables, issuer, &token);
    assert!(content);
    assert_eq!(
        said["token"],
        json!({"subject": "u1", "email": "ada@example.com", "email_verified": true})
    );
    let (content, said) = check(&variables, issuer, &token[1..]);
    assert!(
        !content
            && said["token"]["refused"]
                .as_str()
                .unwrap()
                .contains("refused"),
        "{said}"
    );

    let near = run_err(&variables, &["provider", "check", &format!("{issuer}/")]);
    assert!(near.contains("did you mean"), "{near}");
    for (issuer, why) in [
        ("ftp://a", "is not a link"),
        ("https://a/?x", "query"),
        ("https://u@a", "user name"),
    ] {
        let said = run_err(
            &variables,
            &["provider", "add", "--issuer", issuer, "--audience", "a"],
        );
        assert!(said.contains(why), "{said}");
    }
    run_ok(&variables, &["provider", "remove", issuer]);

    // By introspection: the secret is kept sealed, and there can be one such provider.
    let secret = std::env::temp_dir().join(format!("perennial-secret-{}", std::process::id()));
    std::fs::write(&secret, "app-secret\n").unwrap();
    let secret_file = secret.to_str().unwrap();
    let by_introspection = [
        "provider",
        "add",
        "--issuer",
        issuer,
        "--audience",
        "app",
        "--verify",
        "introspection",
        "--client-id",
        "app",
        "--client-secret-file",
        secret_file,
    ];
    run_ok(&variables, &by_introspection);
    let opaque = provider
        .mint(json!({"sub": "u1", "email": "ada@example.com", "email_verified": true}))
        .await;
    let (content, said) = check(&variables, issuer, &opaque);
    assert!(content && said["token"]["email_verified"] == true, "{said}");
    let connection = database.connect().await;
    let stored: Vec<u8> = connection
        .query_one("SELECT client_secret FROM identity_providers", &[])
        .await
        .unwrap()
        .get(0);
    assert!(!String::from_utf8_lossy(&stored).contains("app-secret"));
    let second = [
        "provider",
        "add",
        "--issuer",
        "https://b.example",
        "--verify",
        "userinfo",
        "--accept-any-audience",
    ];
    assert!(run_err(&variables, &second).contains("there can be one"));
    for (arguments, why) in [
        (&["--verify", "userinfo"][..], "--accept-any-audience"),
        (&["--verify", "tokeninfo", "--audience", "a"], "--endpoint"),
        (
            &["--verify", "introspection", "--audience", "a"],
            "--client-id",
        ),
        (&["--audience", "a", "--client-id", "b"], "introspection"),
        (
            &["--audience", "a", "--endpoint", "https://a.example"],
            "--endpoint",
        ),
        (
            &["--audience", "a", "--accept-any-audience"],
            "--accept-any-audience",
        ),
        (&[], "--audience"),
    ] {
        let all = [
            &["provider", "add", "--issuer", "https://c.example"][..],
            arguments,
        ]
        .concat();
        let said = run_err(&variables, &all);
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
    let mut other_key = variables.clone();
    other_key.insert(
        "PERENNIAL_MASTER_KEY",
        "b3RoZXIga2V5IHRoYXQgaXMgbm8ga2V5IGVpdGhlci4".to_owned(),
    );
    assert!(run_err(&other_key, &["provider", "check", issuer]).contains("another master key"));
    std::fs::remove_file(&secret).unwrap();
    run_ok(&variables, &["provider", "remove", issuer]);
    assert!(run_err(&variables, &["provider", "remove", issuer]).contains("is not listed"));
    let kinds = database
        .connect()
        .await
        .query(
            "SELECT kind FROM events WHERE kind LIKE 'provider.%' ORDER BY at, id",
            &[],
        )
        .await
        .unwrap();
    let kinds: Vec<&str> = kinds.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        kinds,
        [
            "provider.added",
            "provider.removed",
            "provider.added",
            "provider.removed"
        ]
    );
}
