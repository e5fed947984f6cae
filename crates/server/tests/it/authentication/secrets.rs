//! Secrets: none can be recovered from a database dump or from the log.

use std::collections::BTreeSet;

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use perennial::config::MasterKey;

use crate::harness::{
    auth::{SessionTokens, sandbox_token},
    identity_provider::{FakeIssuer, add_provider},
    process::{MASTER_KEY, run_ok},
    service::Service,
};

/// Tries every value of a dump as client id, access token, refresh token, identity token and master
/// key.
#[tokio::test]
async fn database_dump_contains_no_usable_secret() {
    let service = Service::start_in_process().await;
    let secret = std::env::temp_dir().join(format!("perennial-dumped-{}", std::process::id()));
    std::fs::write(&secret, "a client secret at a provider").unwrap();
    run_ok(
        &service.variables,
        &[
            "provider",
            "add",
            "--issuer",
            "http://127.0.0.1:1",
            "--audience",
            "a",
            "--verify",
            "introspection",
            "--client-id",
            "app",
            "--client-secret-file",
            secret.to_str().unwrap(),
        ],
    );
    std::fs::remove_file(&secret).unwrap();
    run_ok(
        &service.variables,
        &["keys", "rotate", "--after", "0", "--algorithm", "ES256"],
    );
    let (_, client) = service.create_client(&[]);
    service.create_client(&["--kind", "publishable"]);
    let server = service.anonymous().with("client-id", &client);
    let tokens = server.sign_up("ada@example.com").await;
    let tokens = SessionTokens::from_response(&server.refresh(tokens.refresh()).await);
    assert_eq!(server.check(tokens.access()).await.status, 200);
    let keyed = server.with("idempotency-key", "k1");
    assert_eq!(
        keyed
            .post("/users", r#"{"email": "bob@example.com"}"#)
            .await
            .status,
        201
    );

    let dump = service.database.dump();
    assert!(dump.contains("ada@example.com"));
    for secret in [
        tokens.access(),
        tokens.refresh(),
        &client,
        MASTER_KEY,
        "a client secret at a provider",
    ] {
        assert!(!dump.contains(secret));
    }

    // Each value, each word of it, and its decoded form.
    let mut values: BTreeSet<String> = BTreeSet::new();
    for cell in dump.lines().flat_map(|line| line.split('\t')) {
        let words = cell.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        values.extend(words.chain([cell]).map(str::to_owned));
        if let Some(bytes) = cell
            .strip_prefix("\\\\x")
            .and_then(|digits| hex::decode(digits).ok())
        {
            values.insert(BASE64_URL_SAFE_NO_PAD.encode(&bytes));
            values.insert(BASE64_STANDARD.encode(&bytes));
            values.extend(String::from_utf8(bytes));
        }
    }
    let prefixed: Vec<String> = values
        .iter()
        .flat_map(|value| {
            ["prn_sk_", "prn_pk_", "prn_rt_"].map(|prefix| format!("{prefix}{value}"))
        })
        .collect();
    values.extend(prefixed);
    let printable = |value: &String| {
        !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    };
    values.retain(|value| printable(value) && value.len() < 10_000);
    assert!(values.len() > 300, "only {} values", values.len());
    let right = MasterKey::parse(MASTER_KEY).unwrap();
    for value in &values {
        let as_client = service
            .anonymous()
            .with("client-id", value)
            .get("/subscription-plans")
            .await;
        assert_eq!(as_client.status, 401, "{value}");
        assert_eq!(server.check(value).await.status, 401, "{value}");
        assert!(
            [401, 422].contains(&server.refresh(value).await.status),
            "{value}"
        );
        let signed_in = server
            .authenticate("sign-in", value, "ada@example.com")
            .await;
        // 503, because the configured identity provider does not respond.
        assert!(
            [401, 422, 503].contains(&signed_in.status),
            "{value}: {}",
            signed_in.text
        );
        assert!(!MasterKey::parse(value).is_ok_and(|key| key.expose() == right.expose()));
    }
    println!("{} values tried", values.len());
}

/// At log level `trace`, for successful and failed requests.
#[tokio::test]
async fn secrets_are_never_logged() {
    let fake_issuer = FakeIssuer::start().await;
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_LOG", "trace".to_owned());
    })
    .await;
    add_provider(&service.variables, &fake_issuer.issuer);
    let (_, client) = service.create_client(&[]);
    let (_, disabled) = service.create_client(&[]);
    let server = service.anonymous().with("client-id", &client);
    let email = "canary.in.a.coal.mine@example.com";
    let mut secrets = vec![
        client.clone(),
        disabled.clone(),
        email.to_owned(),
        "canary".to_owned(),
    ];

    let identity_token = fake_issuer.token_with("email", Some(&format!("\"{email}\"")));
    let signed_up =
        SessionTokens::from_response(&server.authenticate("sign-up", &identity_token, email).await);
    let signed_in =
        SessionTokens::from_response(&server.authenticate("sign-in", &identity_token, email).await);
    let first = signed_in.refresh().to_owned();
    let second = SessionTokens::from_response(&server.refresh(&first).await);
    let third = SessionTokens::from_response(&server.refresh(second.refresh()).await);
    assert_eq!(server.check(third.access()).await.status, 200);
    assert_eq!(
        server
            .with_bearer(third.access())
            .get("/subscription-plans")
            .await
            .status,
        200
    );
    // Failed requests.
    assert_eq!(server.refresh(&first).await.status, 401);
    assert_eq!(server.check(third.access()).await.status, 401);
    assert_eq!(
        server
            .check(&format!("{}x", signed_up.access()))
            .await
            .status,
        401
    );
    assert_eq!(
        server
            .authenticate("sign-in", &identity_token, "canary@example.com")
            .await
            .status,
        403
    );
    assert_eq!(
        server
            .authenticate("sign-up", &identity_token, email)
            .await
            .status,
        409
    );
    let unknown = sandbox_token("canary.other@example.com");
    assert_eq!(
        server
            .authenticate("sign-in", &unknown, "canary.other@example.com")
            .await
            .status,
        404
    );
    let expired = fake_issuer.token_with("exp", Some("1"));
    assert_eq!(
        server.authenticate("sign-in", &expired, email).await.status,
        401
    );
    assert_eq!(
        server
            .post("/users", &format!("{{\"email\": \"{email}\"}}"))
            .await
            .status,
        409
    );
    assert_eq!(
        server.get(&format!("/users?email={email}")).await.status,
        200
    );
    assert_eq!(
        server
            .post(
                "/authentication/sign-in",
                &format!("{{\"email\": 7, \"{email}\": 1}}")
            )
            .await
            .status,
        422
    );
    let wrong = service
        .anonymous()
        .with("client-id", &format!("{disabled}canary"));
    assert_eq!(
        wrong.get(&format!("/users?email={email}")).await.status,
        401
    );

    for tokens in [&signed_up, &signed_in, &second, &third] {
        secrets.push(tokens.access().to_owned());
        secrets.push(tokens.refresh().to_owned());
        secrets.extend(tokens.access().split('.').skip(1).map(str::to_owned));
    }
    for token in [&identity_token, &unknown, &expired] {
        secrets.extend(token.split('.').skip(1).map(str::to_owned));
    }
    let log = service.server.process.log();
    assert!(
        log.contains("TRACE") && log.contains("response status="),
        "{log}"
    );
    for secret in &secrets {
        let line = log.lines().find(|line| line.contains(secret.as_str()));
        assert!(line.is_none(), "{secret} in: {}", line.unwrap());
    }
}
