//! Identity providers: verification of JWTs and opaque tokens, and the `provider` commands.

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use perennial::http::outbound::AddressGuard;
use perennial::identity_providers::{
    AcceptedTokens, DiscoveryTiming, Identity, IdentityProvider, IdentityVerifier, TokenError,
    TokenVerification,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{
    database::Database,
    identity_provider::{FakeIssuer, IssuerBehavior, OpenIdProvider},
    master_key::derived_keys,
    process::{MASTER_KEY, Variables, perennial, run_err, run_ok, sandbox},
};

mod guide;
mod token_kinds;

fn jwt_provider(issuer: &str) -> [IdentityProvider; 1] {
    [IdentityProvider::new(issuer, &["other", "product"])]
}

/// Returns the arguments that add a provider for the audience `product`.
fn add_arguments(issuer: &str) -> [&str; 6] {
    [
        "provider",
        "add",
        "--issuer",
        issuer,
        "--audience",
        "product",
    ]
}

fn verifier(patience: DiscoveryTiming) -> IdentityVerifier {
    IdentityVerifier::new(
        patience,
        derived_keys(MASTER_KEY),
        None,
        AddressGuard::new(&[], false),
    )
    .unwrap()
}

fn token_options(alg: &str, in_token: bool) -> Value {
    json!({"sub": "u1", "email": "ada@example.com", "email_verified": true, "audience": "product", "alg": alg, "in_token": in_token})
}

async fn verify(
    providers: &IdentityVerifier,
    issuer: &str,
    token: &str,
) -> Result<Identity, TokenError> {
    providers
        .verify(&jwt_provider(issuer), token, Timestamp::now())
        .await
}

/// Every algorithm, with the email address in the token or from userinfo.
#[tokio::test]
async fn jwts_of_a_real_provider_are_accepted() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(DiscoveryTiming::default());
    for alg in ["EdDSA", "ES256", "RS256"] {
        for in_token in [true, false] {
            let token = provider.mint(token_options(alg, in_token)).await;
            let identity = verify(&providers, &provider.issuer, &token).await.unwrap();
            let expected = Identity {
                issuer: provider.issuer.clone(),
                subject: "u1".to_owned(),
                email: Some("ada@example.com".to_owned()),
                email_verified: true,
                authenticated_at: identity.authenticated_at,
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

    let mut other_audience = token_options("EdDSA", true);
    other_audience["audience"] = json!("another-product");
    let token = provider.mint(other_audience).await;
    assert_eq!(
        verify(&providers, &provider.issuer, &token).await,
        Err(TokenError::Invalid("wrong audience".to_owned()))
    );
    // The configured issuer differs by a slash, or completely.
    let token = provider.mint(token_options("EdDSA", true)).await;
    for issuer in [
        format!("{}/", provider.issuer),
        "http://127.0.0.1:1".to_owned(),
    ] {
        let refused = verify(&providers, &issuer, &token).await;
        assert_eq!(
            refused,
            Err(TokenError::Invalid("issuer is not configured".to_owned()))
        );
    }
}

#[tokio::test]
async fn key_for_another_use_or_algorithm_is_rejected() {
    let fake_issuer = FakeIssuer::start().await;
    let good = fake_issuer.token_with("x", Some("1"));
    let providers = verifier(DiscoveryTiming::default());
    assert!(verify(&providers, &fake_issuer.issuer, &good).await.is_ok());
    for (field, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
        ("alg", json!("ES256")),
    ] {
        let mut keys = fake_issuer.keys.clone();
        keys["keys"][0][field] = value;
        fake_issuer.set_behavior(IssuerBehavior::Keys(keys));
        let fresh = verifier(DiscoveryTiming::default());
        let refused = verify(&fresh, &fake_issuer.issuer, &good).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{field}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn valid_variations_of_claims_are_accepted() {
    let fake_issuer = FakeIssuer::start().await;
    let providers = verifier(DiscoveryTiming::default());
    for (claim, value) in [
        ("aud", r#"["x","product"]"#),
        ("azp", r#""product""#),
        ("exp", "9999999999.5"),
        ("email_verified", r#""true""#),
    ] {
        let token = fake_issuer.token_with(claim, Some(value));
        assert!(
            verify(&providers, &fake_issuer.issuer, &token)
                .await
                .unwrap()
                .email_verified,
            "{claim}"
        );
    }
}

#[tokio::test]
async fn opaque_tokens_are_verified_by_their_issuer() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(DiscoveryTiming::default());
    let issuer = provider.issuer.clone();
    let opaque = json!({"sub": "u1", "email": "ada@example.com", "email_verified": true});
    let token = provider.mint(opaque).await;
    assert!(!token.contains('.'), "{token}");
    // oidc-provider returns the client of an opaque token as `client_id`, and no `aud`.
    let by = |verify: TokenVerification, audience: &str| IdentityProvider {
        verify,
        accept: AcceptedTokens {
            azp: true,
            ..AcceptedTokens::default()
        },
        ..IdentityProvider::new(&issuer, &[audience])
    };
    let introspection = |secret: &str| TokenVerification::Introspection {
        endpoint: None,
        client_id: "app".to_owned(),
        secret: derived_keys(MASTER_KEY).seal(secret, &issuer),
    };
    let verify = async |listed: IdentityProvider, token: &str| {
        providers.verify(&[listed], token, Timestamp::now()).await
    };
    for listed in [
        by(introspection("app-secret"), "app"),
        by(TokenVerification::Userinfo, ""),
    ] {
        let identity = verify(listed, &token).await.unwrap();
        assert_eq!(
            (identity.subject.as_str(), identity.email.as_deref()),
            ("u1", Some("ada@example.com"))
        );
        assert!(identity.email_verified);
    }
    let other = verify(by(introspection("app-secret"), "product"), &token).await;
    assert_eq!(other, Err(TokenError::Invalid("wrong audience".to_owned())));
    for listed in [
        by(introspection("app-secret"), "app"),
        by(TokenVerification::Userinfo, ""),
    ] {
        for nonsense in ["x", "", &token[1..], &format!("{token}x")] {
            let refused = verify(listed.clone(), nonsense).await;
            assert!(
                matches!(refused, Err(TokenError::Invalid(_))),
                "{nonsense}: {refused:?}"
            );
        }
    }
    // A wrong client secret is not the user's fault.
    let wrong = verify(by(introspection("wrong"), "app"), &token).await;
    assert!(
        matches!(wrong, Err(TokenError::ProviderUnavailable(_))),
        "{wrong:?}"
    );
    let moved = TokenVerification::Introspection {
        endpoint: None,
        client_id: "app".to_owned(),
        secret: derived_keys(MASTER_KEY).seal("app-secret", "another issuer"),
    };
    let wrong = verify(by(moved, "app"), &token).await;
    assert!(
        matches!(wrong, Err(TokenError::ProviderUnavailable(_))),
        "{wrong:?}"
    );
    // An opaque token is not sent to a JWT-only provider, nor another issuer's JWT to this one.
    let refused = verify(by(TokenVerification::Jwt, "app"), &token).await;
    assert!(
        matches!(refused, Err(TokenError::Invalid(_))),
        "{refused:?}"
    );
    let foreign = FakeIssuer::start().await.token_with("x", None);
    let refused = verify(by(TokenVerification::Userinfo, ""), &foreign).await;
    assert_eq!(
        refused,
        Err(TokenError::Invalid("issuer is not configured".to_owned()))
    );
}

/// As Google's endpoint: numbers and booleans as strings, and 400 for unknown tokens.
#[tokio::test]
async fn tokeninfo_responses_are_validated() {
    let fake_issuer = FakeIssuer::start().await;
    let listed = [IdentityProvider {
        verify: TokenVerification::Tokeninfo {
            endpoint: format!("{}/me", fake_issuer.issuer),
        },
        ..IdentityProvider::new(&fake_issuer.issuer, &["product"])
    }];
    let verify = async |status: u16, body: Value| {
        fake_issuer.set_behavior(IssuerBehavior::Userinfo(
            fake_issuer.keys.clone(),
            status,
            body.to_string(),
        ));
        let providers = verifier(DiscoveryTiming::default());
        providers
            .verify(&listed, "ya29.opaque", Timestamp::now())
            .await
    };
    let good = json!({"aud": "product", "sub": "1048", "exp": "9999999999", "email": "a@example.com", "email_verified": "true"});
    let identity = verify(200, good.clone()).await.unwrap();
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
        let refused = verify(200, bad.clone()).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{bad}: {refused:?}"
        );
    }
    let unknown = verify(400, json!({"error": "invalid_token"})).await;
    assert!(
        matches!(unknown, Err(TokenError::Invalid(_))),
        "{unknown:?}"
    );
    for status in [401, 500, 302] {
        let unavailable = verify(status, json!({})).await;
        assert!(
            matches!(unavailable, Err(TokenError::ProviderUnavailable(_))),
            "{status}: {unavailable:?}"
        );
    }
}

#[tokio::test]
async fn userinfo_of_another_subject_is_rejected() {
    let fake_issuer = FakeIssuer::start().await;
    let token = fake_issuer.token_with("email", None);
    let verify = async |status: u16, body: &str| {
        fake_issuer.set_behavior(IssuerBehavior::Userinfo(
            fake_issuer.keys.clone(),
            status,
            body.to_owned(),
        ));
        let providers = verifier(DiscoveryTiming::default());
        verify(&providers, &fake_issuer.issuer, &token).await
    };
    let identity = verify(
        200,
        r#"{"sub":"u1","email":"a@example.com","email_verified":true}"#,
    )
    .await;
    assert_eq!(identity.unwrap().email.as_deref(), Some("a@example.com"));
    let nothing = verify(200, r#"{"sub":"u1","email":""}"#).await.unwrap();
    assert_eq!((nothing.email, nothing.email_verified), (None, false));
    let other = verify(
        200,
        r#"{"sub":"u2","email":"b@example.com","email_verified":true}"#,
    )
    .await;
    assert!(matches!(other, Err(TokenError::Invalid(_))), "{other:?}");
    for status in [401, 403] {
        let refused = verify(status, "{}").await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{refused:?}"
        );
    }
    for (status, body) in [(500, "{}"), (429, "{}"), (200, "nonsense"), (200, "{}")] {
        let unknown = verify(status, body).await;
        assert!(
            matches!(unknown, Err(TokenError::ProviderUnavailable(_))),
            "{unknown:?}"
        );
    }
}

/// Unreachable, silent, endless and invalid responses fail within 7 s. Cached keys remain valid.
#[tokio::test]
async fn failing_provider_is_unavailable_and_known_keys_still_verify() {
    let fake_issuer = FakeIssuer::start().await;
    let token = fake_issuer.token_with("x", None);
    let other = FakeIssuer::start().await;
    for behavior in [
        IssuerBehavior::EndlessBody,
        IssuerBehavior::Body("nonsense"),
        IssuerBehavior::Body("{}"),
        IssuerBehavior::Body(r#"{"issuer":"http://other","jwks_uri":"http://other"}"#),
        IssuerBehavior::Redirect(other.issuer.clone()),
        IssuerBehavior::NoResponse,
    ] {
        fake_issuer.set_behavior(behavior);
        let providers = Arc::new(verifier(DiscoveryTiming::default()));
        let started = Instant::now();
        // Concurrent requests share one attempt.
        let mut requests = JoinSet::new();
        for _ in 0..10 {
            let (providers, issuer) = (providers.clone(), fake_issuer.issuer.clone());
            let token = token.clone();
            requests.spawn(async move { verify(&providers, &issuer, &token).await });
        }
        for refused in requests.join_all().await {
            assert!(
                matches!(refused, Err(TokenError::ProviderUnavailable(_))),
                "{refused:?}"
            );
        }
        assert!(
            started.elapsed() < Duration::from_secs(7),
            "{:?}",
            started.elapsed()
        );
    }
    // Withdrawn keys, and a symmetric key.
    for keys in [
        json!({"keys": []}),
        json!({"keys": [{"kty": "oct", "k": "AAAA", "kid": "own"}]}),
    ] {
        fake_issuer.set_behavior(IssuerBehavior::Keys(keys));
        let providers = verifier(DiscoveryTiming::default());
        let refused = verify(&providers, &fake_issuer.issuer, &token).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{refused:?}"
        );
    }
    let mut provider = FakeIssuer::start().await;
    // Fetches the keys for every token.
    let patience = DiscoveryTiming {
        refresh_after: Duration::ZERO,
        min_fetch_interval: Duration::ZERO,
    };
    let providers = verifier(patience);
    let token = provider.token(&json!({}));
    assert!(verify(&providers, &provider.issuer, &token).await.is_ok());
    let issuer = provider.issuer.clone();
    provider.stop().await;
    assert!(
        verify(&providers, &issuer, &token).await.is_ok(),
        "its keys are cached"
    );
    let fresh = verifier(DiscoveryTiming::default());
    let refused = verify(&fresh, &issuer, &token).await;
    assert!(
        matches!(refused, Err(TokenError::ProviderUnavailable(_))),
        "{refused:?}"
    );
}

/// A key that was replaced under its old id is fetched again, and the old key is rejected.
#[tokio::test]
async fn unknown_key_ids_do_not_trigger_refetches_and_rotation_is_noticed() {
    let provider = OpenIdProvider::start().await;
    let providers = verifier(DiscoveryTiming::default());
    let old = provider.mint(token_options("ES256", true)).await;
    assert!(verify(&providers, &provider.issuer, &old).await.is_ok());
    let fake_issuer = FakeIssuer::start().await;
    for number in 0..1_000 {
        let header = format!(r#"{{"alg":"EdDSA","kid":"k{number}"}}"#);
        let claims = format!(
            r#"{{"iss":{},"sub":"u1","aud":"product","exp":9999999999}}"#,
            json!(provider.issuer)
        );
        let refused = verify(
            &providers,
            &provider.issuer,
            &fake_issuer.sign(&header, &claims),
        )
        .await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_eq!(provider.key_fetches().await, 1, "at most every 30 s");

    let soon = DiscoveryTiming {
        // Longer than the provider needs to create new keys.
        min_fetch_interval: Duration::from_secs(6),
        ..DiscoveryTiming::default()
    };
    let providers = verifier(soon);
    assert!(verify(&providers, &provider.issuer, &old).await.is_ok());
    provider.rotate().await;
    let new = provider.mint(token_options("ES256", true)).await;
    let too_soon = verify(&providers, &provider.issuer, &new).await;
    assert_eq!(too_soon, Err(TokenError::InvalidSignature));
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(verify(&providers, &provider.issuer, &new).await.is_ok());
    assert_eq!(
        verify(&providers, &provider.issuer, &old).await,
        Err(TokenError::InvalidSignature)
    );
    assert_eq!(provider.key_fetches().await, 3);
}

/// Runs `provider check` with a token on standard input. Returns whether it succeeded, and its JSON
/// output.
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

#[tokio::test]
async fn provider_commands_add_check_and_remove() {
    let provider = OpenIdProvider::start().await;
    let database = Database::create().await;
    let variables = sandbox(&database.url);
    let issuer = provider.issuer.as_str();
    let add = add_arguments(issuer);
    run_ok(&variables, &add);
    assert!(run_err(&variables, &add).contains("has already been added"));
    let line: Value =
        serde_json::from_str(&run_ok(&variables, &["provider", "list", "--json"])).unwrap();
    assert_eq!(
        line,
        json!({"issuer": issuer, "verify": "jwt", "audiences": ["product"], "accept_id_tokens": false,
            "accept_bound_tokens": false, "accept_azp": false})
    );

    let output = run_ok(&variables, &["provider", "check", issuer]);
    for expected in [
        "reachable",
        "key: ed EdDSA",
        "key: ec ES256",
        "key: rsa RS256",
        "/me",
    ] {
        assert!(output.contains(expected), "{output}");
    }
    let token = provider.mint(token_options("EdDSA", true)).await;
    let (accepted, output) = check(&variables, issuer, &token);
    assert!(accepted);
    let at = &output["token"]["authenticated_at"];
    assert!(at.is_string(), "{output}");
    assert_eq!(
        output["token"],
        json!({"subject": "u1", "email": "ada@example.com", "email_verified": true, "authenticated_at": at})
    );
    let (accepted, output) = check(&variables, issuer, &token[1..]);
    assert!(
        !accepted
            && output["token"]["refused"]
                .as_str()
                .unwrap()
                .contains("invalid token"),
        "{output}"
    );

    let typo = run_err(&variables, &["provider", "check", &format!("{issuer}/")]);
    assert!(typo.contains("did you mean"), "{typo}");
    for (issuer, reason) in [
        ("ftp://a", "must start with http"),
        ("https://a/?x", "query"),
        ("https://u@a", "user name"),
    ] {
        let output = run_err(
            &variables,
            &["provider", "add", "--issuer", issuer, "--audience", "a"],
        );
        assert!(output.contains(reason), "{output}");
    }
    run_ok(
        &variables,
        &["provider", "remove", issuer, "--keep-sessions"],
    );

    // With introspection. The secret is stored encrypted, and only one such provider is allowed.
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
        "--accept-azp",
    ];
    run_ok(&variables, &by_introspection);
    let opaque = provider
        .mint(json!({"sub": "u1", "email": "ada@example.com", "email_verified": true}))
        .await;
    let (accepted, output) = check(&variables, issuer, &opaque);
    assert!(
        accepted && output["token"]["email_verified"] == true,
        "{output}"
    );
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
    assert!(run_err(&variables, &second).contains("a tenant can have only one"));
    for (arguments, reason) in [
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
        let output = run_err(&variables, &all);
        assert!(output.contains(reason), "{arguments:?}: {output}");
    }
    let mut other_key = variables.clone();
    other_key.insert(
        "PERENNIAL_MASTER_KEY",
        "b3RoZXIga2V5IHRoYXQgaXMgbm8ga2V5IGVpdGhlci4".to_owned(),
    );
    assert!(run_err(&other_key, &["provider", "check", issuer]).contains("another master key"));
    std::fs::remove_file(&secret).unwrap();
    run_ok(
        &variables,
        &["provider", "remove", issuer, "--keep-sessions"],
    );
    assert!(run_err(&variables, &["provider", "remove", issuer]).contains("there is no provider"));
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
