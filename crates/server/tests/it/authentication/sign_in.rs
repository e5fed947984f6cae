//! Sign-up, sign-in, refresh and session check, with tokens of a real identity provider.

use serde_json::{Value, json};

use crate::harness::{
    api::ApiResponse,
    auth::{SessionTokens, sandbox_token},
    identity_provider::{FakeIssuer, IssuerBehavior, OpenIdProvider, add_provider},
    process::run_ok,
    service::{InProcessService, Service},
};

fn code(response: &ApiResponse) -> (u16, String) {
    (response.status, response.problem())
}

/// Signs up, checks, refreshes and signs in again.
async fn assert_flow(service: &InProcessService, token: &str, email: &str) {
    let server = service.api(&[]).with("x-forwarded-for", "203.0.113.7");
    let unknown = server.authenticate("sign-in", token, email).await;
    assert_eq!(code(&unknown), (404, "account_not_found".to_owned()));

    let signed_up = server.authenticate("sign-up", token, email).await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);
    let signed_up = SessionTokens::from_response(&signed_up);
    assert_eq!(signed_up.0["token_type"], "Bearer");
    assert_eq!(signed_up.0["expires_in"], 900);
    assert_eq!(signed_up.0["user"]["id"], signed_up.user());
    assert_eq!(signed_up.0["user"]["email"], email);

    let checked = server.check(signed_up.access()).await;
    assert_eq!(checked.status, 200, "{}", checked.text);
    let checked = checked.json();
    assert_eq!(checked["logged_in"], true);
    assert_eq!(checked["user"], signed_up.0["user"]);
    assert_eq!(checked["session"]["id"], signed_up.session());
    assert_eq!(checked["session"]["ip"], "203.0.113.7");

    let refreshed = SessionTokens::from_response(&server.refresh(signed_up.refresh()).await);
    assert_eq!(refreshed.session(), signed_up.session());
    assert_ne!(refreshed.refresh(), signed_up.refresh());
    assert_eq!(server.check(refreshed.access()).await.status, 200);

    let again = server.authenticate("sign-up", token, email).await;
    assert_eq!(code(&again), (409, "account_exists".to_owned()));
    let signed_in = server.authenticate("sign-in", token, email).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let signed_in = SessionTokens::from_response(&signed_in);
    assert_eq!(signed_in.user(), signed_up.user());
    assert_ne!(signed_in.session(), signed_up.session());
    assert_eq!(server.check(signed_in.access()).await.status, 200);
    // The first session stays active.
    assert_eq!(server.check(signed_up.access()).await.status, 200);
}

/// JWTs of every algorithm, with and without the email address.
#[tokio::test]
async fn sign_in_flow_works_with_jwts() {
    let provider = OpenIdProvider::start().await;
    let service = Service::start_in_process().await;
    add_provider(&service.variables, &provider.issuer);
    for alg in ["EdDSA", "ES256", "RS256"] {
        for in_token in [true, false] {
            let name = format!("{alg}-{in_token}").to_lowercase();
            let email = format!("{name}@example.com");
            let options = json!({"sub": name, "email": email, "email_verified": true, "audience": "product", "alg": alg, "in_token": in_token});
            assert_flow(&service, &provider.mint(options).await, &email).await;
        }
    }
}

/// With introspection and with userinfo.
#[tokio::test]
async fn sign_in_flow_works_with_opaque_tokens() {
    let provider = OpenIdProvider::start().await;
    let options = json!({"sub": "u1", "email": "ada@example.com", "email_verified": true});
    let secret = std::env::temp_dir().join(format!("perennial-secret-{}", std::process::id()));
    std::fs::write(&secret, "app-secret").unwrap();

    let service = Service::start_in_process().await;
    let file = secret.to_str().unwrap();
    let further = [
        "--verify",
        "introspection",
        "--client-id",
        "app",
        "--client-secret-file",
        file,
        // The provider's response has no `aud` for opaque tokens.
        "--accept-azp",
    ];
    let arguments = [
        "provider",
        "add",
        "--issuer",
        &provider.issuer,
        "--audience",
        "app",
    ];
    run_ok(&service.variables, &[&arguments[..], &further].concat());
    assert_flow(
        &service,
        &provider.mint(options.clone()).await,
        "ada@example.com",
    )
    .await;
    std::fs::remove_file(secret).unwrap();

    let service = Service::start_in_process().await;
    let further = ["--verify", "userinfo", "--accept-any-audience"];
    let arguments = ["provider", "add", "--issuer", &provider.issuer];
    run_ok(&service.variables, &[&arguments[..], &further].concat());
    assert_flow(&service, &provider.mint(options).await, "ada@example.com").await;
}

/// Malformed input: 39, 40, 41, 68, 72, 78.
#[tokio::test]
async fn invalid_token_or_email_is_rejected() {
    let fake_issuer = FakeIssuer::start().await;
    let service = Service::start_in_process().await;
    add_provider(&service.variables, &fake_issuer.issuer);
    let server = service.api(&[]);
    let good = fake_issuer.token_with("x", None);
    let email = "a@example.com";
    let signed_up = server.authenticate("sign-up", &good, "A@Example.com").await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);

    // All invalid tokens get the same response, at both endpoints.
    let slash = fake_issuer.token_with(
        "iss",
        Some(&json!(format!("{}/", fake_issuer.issuer)).to_string()),
    );
    let bad = [
        "x".to_owned(),
        fake_issuer.token_with("iss", Some("\"https://elsewhere.example\"")),
        slash,
        fake_issuer.token_with("iss", None),
        fake_issuer.token_with("aud", None),
        fake_issuer.token_with("aud", Some("\"another\"")),
        fake_issuer.token_with("exp", Some("1")),
        fake_issuer.token_with("sub", None),
        format!("{good}x"),
        fake_issuer.sign(r#"{"alg":"none"}"#, "{}"),
    ];
    let mut bodies = std::collections::BTreeSet::new();
    for token in &bad {
        for endpoint in ["sign-in", "sign-up"] {
            let response = server.authenticate(endpoint, token, email).await;
            assert_eq!(
                code(&response),
                (401, "invalid_token".to_owned()),
                "{token}"
            );
            let mut body = response.json();
            for field in ["request_id", "instance"] {
                body[field] = Value::Null;
            }
            bodies.insert(body.to_string());
        }
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");

    // The email address must be the one that the provider has verified.
    let unverified = fake_issuer.token_with("email_verified", Some("false"));
    let mistyped = fake_issuer.token_with("email", Some("7"));
    fake_issuer.set_behavior(IssuerBehavior::Userinfo(
        fake_issuer.keys.clone(),
        200,
        r#"{"sub": "u1"}"#.to_owned(),
    ));
    let without = fake_issuer.token_with("email", None);
    for endpoint in ["sign-in", "sign-up"] {
        for token in [&unverified, &without] {
            let response = server.authenticate(endpoint, token, email).await;
            assert_eq!(code(&response), (403, "email_unverified".to_owned()));
        }
        let response = server.authenticate(endpoint, &mistyped, email).await;
        assert_eq!(response.status, 401);
        for other in [
            "b@example.com",
            "a@example.org",
            "\u{430}@example.com",
            "a+x@example.com",
        ] {
            let response = server.authenticate(endpoint, &good, other).await;
            assert_eq!(
                code(&response),
                (403, "email_mismatch".to_owned()),
                "{other}"
            );
        }
    }
    // An invalid email address is rejected before the token is verified.
    for other in [
        "",
        "a",
        "\"a b\"@example.com",
        "a@example.com\r\nBcc: b@example.com",
        "a\u{202e}@example.com",
        "a@[127.0.0.1]",
        "a\u{200d}b@example.com",
        &format!("a{}@example.com", "\u{301}".repeat(1_000)),
        &format!("{}@example.com", "a".repeat(260)),
    ] {
        let response = server.authenticate("sign-in", &good, other).await;
        assert_eq!(response.status, 422, "{other}");
        assert!(
            response.field_errors()[0].starts_with("/email "),
            "{}",
            response.text
        );
    }

    // Another identity with this account's email address cannot use the account.
    for same_email in ["a@example.com", "A@EXAMPLE.COM"] {
        let other = fake_issuer.token(&json!({"sub": "u2", "email": same_email}));
        let response = server.authenticate("sign-in", &other, same_email).await;
        assert_eq!(code(&response), (404, "account_not_found".to_owned()));
        let response = server.authenticate("sign-up", &other, same_email).await;
        assert_eq!(code(&response), (409, "email_in_use".to_owned()));
    }
    assert_eq!(service.count("SELECT count(*) FROM users").await, 1);
    assert_eq!(service.count("SELECT count(*) FROM sessions").await, 1);
}

/// A failing provider is not the user's fault, so that the status is not 401.
#[tokio::test]
async fn unavailable_provider_returns_503() {
    for behavior in [
        IssuerBehavior::NoResponse,
        IssuerBehavior::Body("<html>"),
        IssuerBehavior::Body("{}"),
        IssuerBehavior::EndlessBody,
        IssuerBehavior::Redirect("http://127.0.0.1:1".to_owned()),
    ] {
        let fake_issuer = FakeIssuer::start().await;
        let service = Service::start_in_process().await;
        add_provider(&service.variables, &fake_issuer.issuer);
        let server = service.api(&[]);
        fake_issuer.set_behavior(behavior);
        let token = fake_issuer.token_with("x", None);
        for endpoint in ["sign-in", "sign-up"] {
            let response = server.authenticate(endpoint, &token, "a@example.com").await;
            assert_eq!(code(&response), (503, "unavailable".to_owned()));
            assert_eq!(response.header("retry-after"), "1");
        }
    }
    // An unreachable provider.
    let service = Service::start_in_process().await;
    let fake_issuer = FakeIssuer::start().await;
    add_provider(&service.variables, "http://127.0.0.1:1");
    let token = fake_issuer.token_with("iss", Some("\"http://127.0.0.1:1\""));
    let response = service
        .api(&[])
        .authenticate("sign-in", &token, "a@example.com")
        .await;
    assert_eq!(code(&response), (503, "unavailable".to_owned()));
}

/// Malformed input: 78.
#[tokio::test]
async fn concurrent_sign_ups_create_one_account() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_DATABASE_POOL", "16".to_owned());
    })
    .await;
    let server = service.api(&[]);
    let (_, publishable) = service.create_client(&["--kind", "publishable"]);
    let browser = service.anonymous().with("client-id", &publishable);
    for round in 0..20 {
        // One user 20 times, in two spellings; created beforehand in every other round.
        let email = format!("p{round}@example.com");
        if round % 2 == 1 {
            let created = server
                .post("/users", &json!({"email": email}).to_string())
                .await;
            assert_eq!(created.status, 201, "{}", created.text);
        }
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                let api = if n % 2 == 0 {
                    server.clone()
                } else {
                    browser.clone()
                };
                let spelling = if n % 3 == 0 {
                    email.to_uppercase()
                } else {
                    email.clone()
                };
                let token = sandbox_token(&email);
                tokio::spawn(async move { api.authenticate("sign-up", &token, &spelling).await })
            })
            .collect();
        let mut first = 0;
        for task in tasks {
            let response = task.await.unwrap();
            if response.status == 201 {
                first += 1;
            } else {
                assert_eq!(code(&response), (409, "account_exists".to_owned()));
            }
        }
        assert_eq!(first, 1);
    }
    assert_eq!(service.count("SELECT count(*) FROM users").await, 20);
    assert_eq!(service.count("SELECT count(*) FROM identities").await, 20);
    assert_eq!(service.count("SELECT count(*) FROM sessions").await, 20);
}

/// A new email address at the provider is adopted unless another user has it.
#[tokio::test]
async fn changed_email_is_updated_unless_taken() {
    let issuer = FakeIssuer::start().await;
    let service = Service::start_in_process().await;
    add_provider(&service.variables, &issuer.issuer);
    let server = service.api(&[]);
    let mint = |sub: &str, email: &str| issuer.token(&json!({"sub": sub, "email": email}));
    let ada = server
        .authenticate(
            "sign-up",
            &mint("ada", "ada@example.com"),
            "ada@example.com",
        )
        .await;
    let ada = SessionTokens::from_response(&ada);
    let bob = server
        .authenticate(
            "sign-up",
            &mint("bob", "bob@example.com"),
            "bob@example.com",
        )
        .await;
    assert_eq!(bob.status, 201);
    assert_eq!(
        server.check(ada.access()).await.json()["user"]["email"],
        "ada@example.com"
    );

    let moved = server
        .authenticate(
            "sign-in",
            &mint("ada", "Ada@new.example"),
            "ada@new.example",
        )
        .await;
    let moved = SessionTokens::from_response(&moved);
    assert_eq!(moved.user(), ada.user());
    assert_eq!(moved.0["user"]["email"], "Ada@new.example");
    // Other sessions see the new address.
    assert_eq!(
        server.check(ada.access()).await.json()["user"]["email"],
        "Ada@new.example"
    );
    let found = server.get("/users?email=ada@NEW.example").await.json();
    assert_eq!(found["data"][0]["id"], ada.user());
    assert_eq!(
        server.get("/users?email=ada@example.com").await.json()["data"],
        json!([])
    );

    let taken = server
        .authenticate(
            "sign-in",
            &mint("ada", "bob@example.com"),
            "bob@example.com",
        )
        .await;
    assert_eq!(
        SessionTokens::from_response(&taken).0["user"]["email"],
        "Ada@new.example"
    );
    // The old address can be used by another user.
    let eve = server
        .authenticate(
            "sign-up",
            &mint("eve", "ada@example.com"),
            "ada@example.com",
        )
        .await;
    assert_eq!(eve.status, 201, "{}", eve.text);
    assert_ne!(SessionTokens::from_response(&eve).user(), ada.user());
}

/// Users that a server creates before they sign up.
#[tokio::test]
async fn precreated_user_is_claimed_by_sign_up() {
    let service = Service::start_in_process().await;
    let server = service.api(&[]);
    let created = server
        .post("/users", r#"{"email": "Ada@example.com"}"#)
        .await;
    assert_eq!(created.status, 201, "{}", created.text);
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), format!("/users/{id}"));
    assert_eq!(
        server.get(&format!("/users/{id}")).await.json(),
        created.json()
    );
    let again = server
        .post("/users", r#"{"email": "ada@EXAMPLE.com"}"#)
        .await;
    assert_eq!(code(&again), (409, "email_in_use".to_owned()));

    let token = sandbox_token("ada@example.com");
    let early = server
        .authenticate("sign-in", &token, "ada@example.com")
        .await;
    assert_eq!(code(&early), (404, "account_not_found".to_owned()));
    let signed_up = server.sign_up("ada@example.com").await;
    assert_eq!(signed_up.user(), id);
    assert_eq!(server.sign_in("ada@example.com").await.user(), id);

    // With a bearer token, only that user is visible.
    let bob = server.sign_up("bob@example.com").await;
    let as_ada = server.with_bearer(signed_up.access());
    assert_eq!(as_ada.get(&format!("/users/{id}")).await.status, 200);
    let other = as_ada.get(&format!("/users/{}", bob.user())).await;
    assert_eq!(code(&other), (404, "user_not_found".to_owned()));
    assert_eq!(
        as_ada.get("/users?email=bob@example.com").await.json()["data"],
        json!([])
    );
    assert_eq!(
        as_ada.get("/users?email=ada@example.com").await.json()["data"][0]["id"],
        id
    );
    for id in [
        "nonsense",
        "plan_01920000000070008000000000000001",
        "usr_01920000000070008000000000000001",
    ] {
        let response = server.get(&format!("/users/{id}")).await;
        assert_eq!(code(&response), (404, "user_not_found".to_owned()));
    }
    for query in [
        "?email=",
        "?email=x",
        "?mail=ada@example.com",
        "?email=a@b.com&email=a@b.com",
    ] {
        let response = server.get(&format!("/users{query}")).await;
        assert_eq!(
            code(&response),
            (400, "invalid_parameter".to_owned()),
            "{query}"
        );
    }

    // Events contain no email address.
    let client = service.database.connect().await;
    let rows = client.query("SELECT kind, data::text FROM events WHERE kind LIKE 'user.%' OR kind LIKE 'session.%' ORDER BY at, id", &[]).await.unwrap();
    // Events of one instant have no order.
    let mut kinds: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    kinds.sort_unstable();
    let created = ["session.created"; 3];
    assert_eq!(
        kinds,
        [
            &created[..],
            &["user.claimed", "user.created", "user.created"]
        ]
        .concat()
    );
    for row in &rows {
        assert!(
            !row.get::<_, &str>(1).contains('@'),
            "{}",
            row.get::<_, &str>(1)
        );
    }
}
