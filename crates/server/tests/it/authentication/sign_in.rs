//! Sign-up, sign-in, and the check that somebody is signed in, with tokens of a real provider.

use serde_json::{Value, json};

use crate::harness::{
    api::Answer,
    people::{Tokens, outside_token},
    process::run_ok,
    provider::{Answers, Forger, OpenIdProvider},
    service::Service,
};

/// Lists a provider for the only tenant.
fn list(service: &Service, issuer: &str, further: &[&str]) {
    let arguments = [
        "provider",
        "add",
        "--issuer",
        issuer,
        "--audience",
        "product",
    ];
    run_ok(&service.variables, &[&arguments[..], further].concat());
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.problem())
}

/// The whole way, as the interface shows it: sign up, be signed in, refresh, sign in again.
async fn walk(service: &Service, token: &str, email: &str) {
    let server = service.caller(&[]).with("x-forwarded-for", "203.0.113.7");
    let unknown = server.authenticate("sign-in", token, email).await;
    assert_eq!(code(&unknown), (404, "account_not_found".to_owned()));

    let up = server.authenticate("sign-up", token, email).await;
    assert_eq!(up.status, 201, "{}", up.text);
    let up = Tokens::of(&up);
    assert_eq!(up.0["token_type"], "Bearer");
    assert_eq!(up.0["expires_in"], 900);
    assert_eq!(up.0["user"]["id"], up.user());
    assert_eq!(up.0["user"]["email"], email);

    let checked = server.check(up.access()).await;
    assert_eq!(checked.status, 200, "{}", checked.text);
    let checked = checked.json();
    assert_eq!(checked["logged_in"], true);
    assert_eq!(checked["user"], up.0["user"]);
    assert_eq!(checked["session"]["id"], up.session());
    assert_eq!(checked["session"]["ip"], "203.0.113.7");

    let refreshed = Tokens::of(&server.refresh(up.refresh()).await);
    assert_eq!(refreshed.session(), up.session());
    assert_ne!(refreshed.refresh(), up.refresh());
    assert_eq!(server.check(refreshed.access()).await.status, 200);

    let again = server.authenticate("sign-up", token, email).await;
    assert_eq!(code(&again), (409, "account_exists".to_owned()));
    let signed_in = server.authenticate("sign-in", token, email).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let signed_in = Tokens::of(&signed_in);
    assert_eq!(signed_in.user(), up.user());
    assert_ne!(signed_in.session(), up.session());
    assert_eq!(server.check(signed_in.access()).await.status, 200);
    // The first session goes on.
    assert_eq!(server.check(up.access()).await.status, 200);
}

/// JWTs of every kind of key, with the e-mail address and without.
#[tokio::test]
async fn all_four_with_tokens_of_a_real_provider() {
    let provider = OpenIdProvider::start().await;
    let service = Service::start().await;
    list(&service, &provider.issuer, &[]);
    for alg in ["EdDSA", "ES256", "RS256"] {
        for in_token in [true, false] {
            let name = format!("{alg}-{in_token}").to_lowercase();
            let email = format!("{name}@example.com");
            let wish = json!({"sub": name, "email": email, "email_verified": true, "audience": "product", "alg": alg, "in_token": in_token});
            walk(&service, &provider.mint(wish).await, &email).await;
        }
    }
}

/// Tokens that say nothing by themselves.
#[tokio::test]
async fn all_four_with_opaque_tokens() {
    let provider = OpenIdProvider::start().await;
    let wish = json!({"sub": "u1", "email": "ada@example.com", "email_verified": true});
    let secret = std::env::temp_dir().join(format!("perennial-secret-{}", std::process::id()));
    std::fs::write(&secret, "app-secret").unwrap();

    let service = Service::start().await;
    let file = secret.to_str().unwrap();
    let asked = [
        "--verify",
        "introspection",
        "--client-id",
        "app",
        "--client-secret-file",
        file,
    ];
    let arguments = [
        "provider",
        "add",
        "--issuer",
        &provider.issuer,
        "--audience",
        "app",
    ];
    run_ok(&service.variables, &[&arguments[..], &asked].concat());
    walk(
        &service,
        &provider.mint(wish.clone()).await,
        "ada@example.com",
    )
    .await;
    std::fs::remove_file(secret).unwrap();

    let service = Service::start().await;
    let asked = ["--verify", "userinfo", "--accept-any-audience"];
    let arguments = ["provider", "add", "--issuer", &provider.issuer];
    run_ok(&service.variables, &[&arguments[..], &asked].concat());
    walk(&service, &provider.mint(wish).await, "ada@example.com").await;
}

/// Catalogue: 39, 40, 41, 68, 72, 78.
#[tokio::test]
async fn who_is_not_let_in() {
    let forger = Forger::start().await;
    let service = Service::start().await;
    list(&service, &forger.issuer, &[]);
    let server = service.caller(&[]);
    let good = forger.token_with("x", None);
    let email = "a@example.com";
    let up = server.authenticate("sign-up", &good, "A@Example.com").await;
    assert_eq!(up.status, 201, "{}", up.text);

    // One body for everything that is wrong with a token, at both.
    let slash = forger.token_with(
        "iss",
        Some(&json!(format!("{}/", forger.issuer)).to_string()),
    );
    let bad = [
        "x".to_owned(),
        forger.token_with("iss", Some("\"https://elsewhere.example\"")),
        slash,
        forger.token_with("iss", None),
        forger.token_with("aud", None),
        forger.token_with("aud", Some("\"another\"")),
        forger.token_with("exp", Some("1")),
        forger.token_with("sub", None),
        format!("{good}x"),
        forger.sign(r#"{"alg":"none"}"#, "{}"),
    ];
    let mut bodies = std::collections::BTreeSet::new();
    for token in &bad {
        for how in ["sign-in", "sign-up"] {
            let answer = server.authenticate(how, token, email).await;
            assert_eq!(code(&answer), (401, "invalid_token".to_owned()), "{token}");
            let mut body = answer.json();
            for field in ["request_id", "instance"] {
                body[field] = Value::Null;
            }
            bodies.insert(body.to_string());
        }
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");

    // The address must be the one that the provider vouches for.
    let unverified = forger.token_with("email_verified", Some("false"));
    let says_none = forger.token_with("email", Some("7"));
    forger.answer(Answers::Userinfo(
        forger.keys.clone(),
        200,
        r#"{"sub": "u1"}"#.to_owned(),
    ));
    let without = forger.token_with("email", None);
    for how in ["sign-in", "sign-up"] {
        for token in [&unverified, &without] {
            let answer = server.authenticate(how, token, email).await;
            assert_eq!(code(&answer), (403, "email_unverified".to_owned()));
        }
        let answer = server.authenticate(how, &says_none, email).await;
        assert_eq!(answer.status, 401);
        for other in [
            "b@example.com",
            "a@example.org",
            "\u{430}@example.com",
            "a+x@example.com",
        ] {
            let answer = server.authenticate(how, &good, other).await;
            assert_eq!(code(&answer), (403, "email_mismatch".to_owned()), "{other}");
        }
    }
    // What is no address at all is told so, before anybody is asked.
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
        let answer = server.authenticate("sign-in", &good, other).await;
        assert_eq!(answer.status, 422, "{other}");
        assert!(
            answer.field_errors()[0].starts_with("/email "),
            "{}",
            answer.text
        );
    }

    // Another identity with this account's address, in whatever form, is not that account.
    for twin in ["a@example.com", "A@EXAMPLE.COM"] {
        let json = json!(twin).to_string();
        let claims = forger.token_with("email", Some(&json));
        let other = other_subject(&forger, &claims, "u2");
        let answer = server.authenticate("sign-in", &other, twin).await;
        assert_eq!(code(&answer), (404, "account_not_found".to_owned()));
        let answer = server.authenticate("sign-up", &other, twin).await;
        assert_eq!(code(&answer), (409, "email_in_use".to_owned()));
    }
    assert_eq!(service.count("SELECT count(*) FROM users").await, 1);
    assert_eq!(service.count("SELECT count(*) FROM sessions").await, 1);
}

/// The same claims, of another subject.
fn other_subject(forger: &Forger, token: &str, subject: &str) -> String {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap());
    let mut claims: Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    claims["sub"] = json!(subject);
    forger.sign(crate::harness::provider::HEADER, &claims.to_string())
}

/// A provider in trouble is no reason to send a user away.
#[tokio::test]
async fn a_provider_that_cannot_be_asked_is_503() {
    for answers in [
        Answers::Never,
        Answers::Body("<html>"),
        Answers::Body("{}"),
        Answers::Endlessly,
        Answers::Elsewhere("http://127.0.0.1:1".to_owned()),
    ] {
        let forger = Forger::start().await;
        let service = Service::start().await;
        list(&service, &forger.issuer, &[]);
        let server = service.caller(&[]);
        forger.answer(answers);
        let token = forger.token_with("x", None);
        for how in ["sign-in", "sign-up"] {
            let answer = server.authenticate(how, &token, "a@example.com").await;
            assert_eq!(code(&answer), (503, "unavailable".to_owned()));
            assert_eq!(answer.header("retry-after"), "1");
        }
    }
    // Nobody listens there.
    let service = Service::start().await;
    let forger = Forger::start().await;
    list(&service, "http://127.0.0.1:1", &[]);
    let token = forger.token_with("iss", Some("\"http://127.0.0.1:1\""));
    let answer = service
        .caller(&[])
        .authenticate("sign-in", &token, "a@example.com")
        .await;
    assert_eq!(code(&answer), (503, "unavailable".to_owned()));
}

/// Catalogue: 78.
#[tokio::test]
async fn many_sign_ups_at_once() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_DATABASE_POOL", "16".to_owned());
    })
    .await;
    let server = service.caller(&[]);
    let (_, publishable) = service.make_client(&["--kind", "publishable"]);
    let browser = service.anonymous().with("client-id", &publishable);
    for round in 0..20 {
        // The same person twenty times, in two spellings; every other round made ahead of time.
        let email = format!("p{round}@example.com");
        if round % 2 == 1 {
            let made = server
                .post("/users", &json!({"email": email}).to_string())
                .await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                let caller = if n % 2 == 0 {
                    server.clone()
                } else {
                    browser.clone()
                };
                let spelt = if n % 3 == 0 {
                    email.to_uppercase()
                } else {
                    email.clone()
                };
                let token = outside_token(&email);
                tokio::spawn(async move { caller.authenticate("sign-up", &token, &spelt).await })
            })
            .collect();
        let mut first = 0;
        for task in tasks {
            let answer = task.await.unwrap();
            if answer.status == 201 {
                first += 1;
            } else {
                assert_eq!(code(&answer), (409, "account_exists".to_owned()));
            }
        }
        assert_eq!(first, 1);
    }
    assert_eq!(service.count("SELECT count(*) FROM users").await, 20);
    assert_eq!(service.count("SELECT count(*) FROM identities").await, 20);
    assert_eq!(service.count("SELECT count(*) FROM sessions").await, 20);
}

/// An address that has changed at the provider changes here, unless it is somebody else's.
#[tokio::test]
async fn an_address_that_changes() {
    let provider = OpenIdProvider::start().await;
    let service = Service::start().await;
    list(&service, &provider.issuer, &[]);
    let server = service.caller(&[]);
    let mint = async |sub: &str, email: &str| {
        provider
            .mint(json!({"sub": sub, "email": email, "email_verified": true, "audience": "product", "alg": "EdDSA", "in_token": true}))
            .await
    };
    let ada = server
        .authenticate(
            "sign-up",
            &mint("ada", "ada@example.com").await,
            "ada@example.com",
        )
        .await;
    let ada = Tokens::of(&ada);
    let bob = server
        .authenticate(
            "sign-up",
            &mint("bob", "bob@example.com").await,
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
            &mint("ada", "Ada@new.example").await,
            "ada@new.example",
        )
        .await;
    let moved = Tokens::of(&moved);
    assert_eq!(moved.user(), ada.user());
    assert_eq!(moved.0["user"]["email"], "Ada@new.example");
    // Her other device sees it too.
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
            &mint("ada", "bob@example.com").await,
            "bob@example.com",
        )
        .await;
    assert_eq!(Tokens::of(&taken).0["user"]["email"], "Ada@new.example");
    // The old address is free.
    let eve = server
        .authenticate(
            "sign-up",
            &mint("eve", "ada@example.com").await,
            "ada@example.com",
        )
        .await;
    assert_eq!(eve.status, 201, "{}", eve.text);
    assert_ne!(Tokens::of(&eve).user(), ada.user());
}

/// Accounts that a server makes ahead of time.
#[tokio::test]
async fn made_ahead_of_time() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let made = server
        .post("/users", r#"{"email": "Ada@example.com"}"#)
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location"), format!("/users/{id}"));
    assert_eq!(
        server.get(&format!("/users/{id}")).await.json(),
        made.json()
    );
    let again = server
        .post("/users", r#"{"email": "ada@EXAMPLE.com"}"#)
        .await;
    assert_eq!(code(&again), (409, "email_in_use".to_owned()));

    let token = outside_token("ada@example.com");
    let early = server
        .authenticate("sign-in", &token, "ada@example.com")
        .await;
    assert_eq!(code(&early), (404, "account_not_found".to_owned()));
    let up = server.sign_up("ada@example.com").await;
    assert_eq!(up.user(), id);
    assert_eq!(server.sign_in("ada@example.com").await.user(), id);

    // On behalf of somebody, that one alone is seen.
    let bob = server.sign_up("bob@example.com").await;
    let as_ada = server.on_behalf_of(up.access());
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
        let answer = server.get(&format!("/users/{id}")).await;
        assert_eq!(code(&answer), (404, "user_not_found".to_owned()));
    }
    for query in [
        "",
        "?email=",
        "?email=x",
        "?mail=ada@example.com",
        "?email=a@b.com&email=a@b.com",
    ] {
        let answer = server.get(&format!("/users{query}")).await;
        assert_eq!(
            code(&answer),
            (400, "invalid_parameter".to_owned()),
            "{query}"
        );
    }

    // What happened is recorded, and no address in it.
    let client = service.database.connect().await;
    let rows = client.query("SELECT kind, data::text FROM events WHERE kind LIKE 'user.%' OR kind LIKE 'session.%' ORDER BY at, id", &[]).await.unwrap();
    // Those of one instant are in no order.
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

/// What a user may do with plans: read the active ones.
#[tokio::test]
async fn a_bearer_and_the_plans() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    for (slug, active) in [("on", true), ("off", false)] {
        let plan = json!({"name": slug, "slug": slug, "price": 1, "billing_cycle": "monthly", "is_active": active});
        assert_eq!(
            server
                .post("/subscription-plans", &plan.to_string())
                .await
                .status,
            201
        );
    }
    let ada = server.sign_up("ada@example.com").await;
    let as_ada = server.on_behalf_of(ada.access());
    assert_eq!(
        server.get("/subscription-plans").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let seen = as_ada.get("/subscription-plans").await.json();
    assert_eq!(seen["data"].as_array().unwrap().len(), 1);
    assert_eq!(seen["data"][0]["slug"], "on");
    assert_eq!(as_ada.get("/subscription-plans/on").await.status, 200);
    assert_eq!(as_ada.get("/subscription-plans/off").await.status, 404);
    assert_eq!(
        as_ada
            .get("/subscription-plans?is_active=false")
            .await
            .json()["data"],
        json!([])
    );
    // A cursor of the server's list is not one of the user's.
    let page = server.get("/subscription-plans?limit=1").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/subscription-plans?limit=1&cursor={cursor}");
    assert_eq!(server.get(&path).await.status, 200);
    assert_eq!(
        code(&as_ada.get(&path).await),
        (400, "invalid_cursor".to_owned())
    );
    let refused = (403, "not_for_users".to_owned());
    assert_eq!(
        code(&as_ada.post("/subscription-plans", "{}").await),
        refused
    );
    assert_eq!(
        code(&as_ada.put("/subscription-plans/on", r#"{"tier": 1}"#).await),
        refused
    );
    assert_eq!(
        code(&as_ada.delete("/subscription-plans/on").await),
        refused
    );
    let nonsense = server
        .on_behalf_of("nonsense")
        .get("/subscription-plans")
        .await;
    assert_eq!(code(&nonsense), (401, "invalid_token".to_owned()));
}
