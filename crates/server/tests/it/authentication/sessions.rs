//! Sessions of a user: listed, revoked, and erased with the account.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    api::{ApiClient, ApiResponse},
    auth::{SessionTokens, sandbox_token},
    process::{run_err, run_ok},
    service::{InstancePair, Service},
    wait_until,
};

const TOKENS: &str = "/authentication/tokens";

async fn send(api: &ApiClient, method: &str, path: &str) -> ApiResponse {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    api.try_send(method, path, None).await.unwrap()
}

#[tokio::test]
async fn sessions_are_listed_newest_first() {
    let service = Service::start_in_process().await;
    let server = service.api(&[]);
    let phone = server
        .with("user-agent", "a phone")
        .with("x-forwarded-for", "203.0.113.7");
    let first = phone.sign_up("ada@example.com").await;
    let second = server.sign_in("ada@example.com").await;
    let third = server.sign_in("ada@example.com").await;
    server.sign_up("bob@example.com").await;
    let listed = server.with_bearer(second.access()).get(TOKENS).await;
    assert_eq!(listed.header("cache-control"), "no-store");
    let listed = listed.json()["data"].as_array().unwrap().clone();
    let ids: Vec<&str> = listed
        .iter()
        .map(|session| session["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [third.session(), second.session(), first.session()]);
    let current: Vec<bool> = listed
        .iter()
        .map(|session| session["current"].as_bool().unwrap())
        .collect();
    assert_eq!(current, [false, true, false]);
    let own = &listed[2];
    assert_eq!(
        (&own["ip"], &own["user_agent"]),
        (&json!("203.0.113.7"), &json!("a phone"))
    );
    assert_eq!(own["issuer"], "urn:perennial:sandbox");
    let mut names: Vec<&String> = own.as_object().unwrap().keys().collect();
    names.sort();
    let expected = [
        "client_id",
        "created_at",
        "current",
        "expires_at",
        "id",
        "ip",
        "issuer",
        "last_used_at",
        "user_agent",
    ];
    assert_eq!(names, expected);
    // Revoked and expired sessions are not listed.
    send(
        &server.with_bearer(third.access()),
        "POST",
        "/authentication/tokens/logout",
    )
    .await;
    let client = service.database.connect().await;
    let expire = format!(
        "UPDATE sessions SET expires_at = now() WHERE id = '{}'",
        first.session().trim_start_matches("ses_")
    );
    client.execute(&expire, &[]).await.unwrap();
    let listed = server.with_bearer(second.access()).get(TOKENS).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    for query in ["?limit=1", "?x"] {
        let response = server
            .with_bearer(second.access())
            .get(&format!("{TOKENS}{query}"))
            .await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (400, "invalid_parameter")
        );
    }
}

/// Malformed input: 76.
#[tokio::test]
async fn revoked_session_is_rejected_on_all_instances() {
    let InstancePair {
        service,
        here,
        there,
        other_server: _other_server,
    } = InstancePair::start(&[]).await;
    here.sign_up("bob@example.com").await;
    let other_user = here.sign_in("bob@example.com").await;
    here.sign_up("ada@example.com").await;
    // Method, path, which of three sessions are revoked, and the reason in the event.
    let cases = [
        (
            "POST",
            "/authentication/tokens/logout",
            [true, false, false],
            "logout",
        ),
        (
            "POST",
            "/authentication/tokens/revoke-all",
            [true, true, true],
            "revoke_all",
        ),
        (
            "POST",
            "/authentication/tokens/revoke-all-except-current",
            [false, true, true],
            "revoke_all_except_current",
        ),
        (
            "DELETE",
            "/authentication/delete-my-account/",
            [true, true, true],
            "account_erased",
        ),
    ];
    for (method, path, revoked, reason) in cases {
        let client = service.database.connect().await;
        client.batch_execute("UPDATE sessions SET ended_at = now() WHERE user_id NOT IN (SELECT id FROM users WHERE email LIKE 'bob%')").await.unwrap();
        let mut three = Vec::new();
        for _ in 0..3 {
            three.push(here.sign_in("ada@example.com").await);
        }
        for tokens in &three {
            for api in [&here, &there] {
                assert_eq!(api.check(tokens.access()).await.status, 200);
            }
        }
        let path = if method == "DELETE" {
            format!("{path}{}", three[0].user())
        } else {
            path.to_owned()
        };
        let response = send(&here.with_bearer(three[0].access()), method, &path).await;
        assert!([200, 204].contains(&response.status), "{}", response.text);
        for (tokens, ended) in three.iter().zip(revoked) {
            let expected = if ended { 401 } else { 200 };
            assert_eq!(
                here.check(tokens.access()).await.status,
                expected,
                "{reason} here"
            );
            wait_until(reason, Duration::from_secs(1), async || {
                there.check(tokens.access()).await.status == expected
            })
            .await;
            assert_eq!(
                there.refresh(tokens.refresh()).await.status,
                expected,
                "{reason}"
            );
        }
        // A revoked token cannot revoke anything.
        if revoked[0] {
            let again = send(&there.with_bearer(three[0].access()), method, &path).await;
            assert_eq!(
                (again.status, again.problem().as_str()),
                (401, "invalid_token")
            );
        }
        // One event: of the session, or of the user with the number of sessions.
        let event =
            "SELECT kind, data FROM events WHERE kind LIKE '%revoked' AND data->>'reason' = $1";
        let event = client.query_one(event, &[&reason]).await.unwrap();
        let (kind, data): (&str, Value) = (event.get(0), event.get(1));
        if reason == "logout" {
            assert_eq!(
                (kind, &data["id"]),
                ("session.revoked", &json!(three[0].session()))
            );
        } else {
            let ended = revoked.iter().filter(|ended| **ended).count();
            assert_eq!(
                (kind, &data["count"]),
                ("user.sessions_revoked", &json!(ended))
            );
        }
    }
    assert_eq!(here.check(other_user.access()).await.status, 200);
}

/// The response does not depend on whether the account exists.
#[tokio::test]
async fn deleting_another_account_is_rejected() {
    let service = Service::start_in_process().await;
    let server = service.api(&[]);
    let ada = server.sign_up("ada@example.com").await;
    let bob = server.sign_up("bob@example.com").await;
    let as_ada = server.with_bearer(ada.access());
    let mut bodies = std::collections::BTreeSet::new();
    for id in [
        bob.user(),
        "usr_01920000000070008000000000000001",
        "nonsense",
        "%00",
        ada.session(),
    ] {
        let response = send(
            &as_ada,
            "DELETE",
            &format!("/authentication/delete-my-account/{id}"),
        )
        .await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (403, "not_your_account"),
            "{id}"
        );
        let mut body = response.json();
        for field in ["request_id", "instance"] {
            body[field] = Value::Null;
        }
        bodies.insert(body.to_string());
    }
    assert_eq!(bodies.len(), 1);
    assert_eq!(server.check(bob.access()).await.status, 200);
    assert_eq!(
        service
            .count("SELECT count(*) FROM users WHERE erased_at IS NOT NULL")
            .await,
        0
    );
}

/// The user can sign up again as a new user.
#[tokio::test]
async fn erased_user_leaves_no_personal_data() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_LOG", "trace".to_owned());
    })
    .await;
    let (_, client) = service.create_client(&[]);
    let server = service.anonymous().with("client-id", &client);
    let email = "canary.of.the.mine@example.com";
    let keyed = server.with("idempotency-key", "k1");
    assert_eq!(
        keyed
            .post("/users", &json!({"email": email}).to_string())
            .await
            .status,
        201
    );
    let phone = server
        .with("user-agent", "canary phone")
        .with("x-forwarded-for", "203.0.113.99");
    let first = phone.sign_up(email).await;
    let second = phone.sign_in(email).await;
    assert!(service.database.dump().contains("canary"));
    let path = format!("/authentication/delete-my-account/{}", first.user());
    assert_eq!(
        send(&server.with_bearer(second.access()), "DELETE", &path)
            .await
            .status,
        204
    );

    let dump = service.database.dump();
    for remnant in ["canary", "203.0.113.99"] {
        let line = dump.lines().find(|line| line.contains(remnant));
        assert!(line.is_none(), "{line:?}");
    }
    assert!(dump.contains("user.erased"));
    assert!(!service.server.process.log().contains("canary"));
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    assert!(!metrics.contains("canary"));

    let user = server.get(&format!("/users/{}", first.user())).await;
    assert_eq!(
        (user.status, user.problem().as_str()),
        (404, "user_not_found")
    );
    assert_eq!(
        server.get(&format!("/users?email={email}")).await.json()["data"],
        json!([])
    );
    let back = server
        .authenticate("sign-in", &sandbox_token(email), email)
        .await;
    assert_eq!(
        (back.status, back.problem().as_str()),
        (404, "account_not_found")
    );
    assert_eq!(server.refresh(first.refresh()).await.status, 401);
    let again = server.sign_up(email).await;
    assert_ne!(again.user(), first.user());
}

/// A concurrent sign-in fails, or its session is deleted with the account.
#[tokio::test]
async fn sign_in_during_deletion_leaves_no_session() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_DATABASE_POOL", "12".to_owned());
    })
    .await;
    let server = service.api(&[]);
    for round in 0..50 {
        let email = format!("p{round}@example.com");
        let tokens = server.sign_up(&email).await;
        let token = sandbox_token(&email);
        let path = format!("/authentication/delete-my-account/{}", tokens.user());
        let as_user = server.with_bearer(tokens.access());
        let deleting = send(&as_user, "DELETE", &path);
        let sign_in = || server.authenticate("sign-in", &token, &email);
        let (deleted, one, two, three) = tokio::join!(deleting, sign_in(), sign_in(), sign_in());
        assert_eq!(deleted.status, 204, "{}", deleted.text);
        for response in [one, two, three] {
            assert!([200, 404].contains(&response.status), "{}", response.text);
            if response.status == 200 {
                assert_eq!(
                    server
                        .check(SessionTokens::from_response(&response).access())
                        .await
                        .status,
                    401
                );
            }
        }
    }
    let live = "SELECT count(*) FROM sessions JOIN users ON users.id = user_id WHERE erased_at IS NOT NULL AND ended_at IS NULL";
    assert_eq!(service.count(live).await, 0);
}

/// Users are found by email address, user id and session id.
#[tokio::test]
async fn user_commands_show_revoke_and_erase() {
    let service = Service::start_in_process().await;
    let server = service.api(&[]);
    let first = server
        .with("user-agent", "a phone")
        .sign_up("ada@example.com")
        .await;
    let second = server.sign_in("ada@example.com").await;
    let run = |arguments: &[&str]| run_ok(&service.variables, arguments);
    for selector in ["ADA@example.com", first.user(), second.session()] {
        let shown = run(&["user", "show", selector]);
        for part in [
            first.user(),
            "ada@example.com",
            "urn:perennial:sandbox",
            "a phone",
            first.session(),
        ] {
            assert!(shown.contains(part), "{selector}: {shown}");
        }
        let json: Value =
            serde_json::from_str(&run(&["user", "show", selector, "--json"])).unwrap();
        assert_eq!(json["user"]["id"], first.user());
        assert_eq!(json["sessions"].as_array().unwrap().len(), 2);
    }
    let all: Value = serde_json::from_str(&run(&["user", "export", "ada@example.com"])).unwrap();
    assert_eq!(all["events"][0]["kind"], "user.created");
    assert_eq!(
        run(&["session", "list", "ada@example.com", "--json"])
            .lines()
            .count(),
        2
    );

    // One session, then all; the running instance is notified.
    for tokens in [&first, &second] {
        assert_eq!(server.check(tokens.access()).await.status, 200);
    }
    let wait_until_revoked = async |tokens: &SessionTokens| {
        wait_until(
            "the session is revoked",
            Duration::from_secs(1),
            async || server.check(tokens.access()).await.status == 401,
        )
        .await;
    };
    assert!(run(&["session", "revoke", first.session()]).contains("revoked 1 session"));
    wait_until_revoked(&first).await;
    assert_eq!(server.check(second.access()).await.status, 200);
    assert!(run(&["session", "revoke", "ada@example.com"]).contains("revoked 1 session"));
    wait_until_revoked(&second).await;
    assert!(run(&["session", "list", "ada@example.com"]).contains("no active session"));

    let third = server.sign_in("ada@example.com").await;
    assert!(run(&["user", "erase", "ada@example.com"]).contains("would erase"));
    assert_eq!(server.check(third.access()).await.status, 200);
    assert!(run(&["user", "erase", "ada@example.com", "--yes"]).contains("erased usr_"));
    wait_until_revoked(&third).await;
    for selector in ["ada@example.com", first.user(), "nobody@example.com"] {
        let output = run_err(&service.variables, &["user", "show", selector]);
        assert!(output.contains("there is no such user"), "{output}");
    }
    let output = run_err(
        &service.variables,
        &["user", "show", "plan_01920000000070008000000000000001"],
    );
    assert!(output.contains("the id of a user (usr_…)"), "{output}");
}

#[tokio::test]
async fn deletion_requires_a_recent_sign_in() {
    let service = Service::start_in_process().await;
    run_ok(
        &service.variables,
        &["tenant", "set", "--recent-sign-in", "300"],
    );
    let server = service.api(&[]);
    let old = server.sign_up("ada@example.com").await;
    let client = service.database.connect().await;
    client
        .execute(
            "UPDATE sessions SET created_at = created_at - interval '10 minutes'",
            &[],
        )
        .await
        .unwrap();
    let path = format!("/authentication/delete-my-account/{}", old.user());
    let response = send(&server.with_bearer(old.access()), "DELETE", &path).await;
    assert_eq!(
        (response.status, response.problem().as_str()),
        (403, "reauthentication_required")
    );
    let new = server.sign_in("ada@example.com").await;
    assert_eq!(
        send(&server.with_bearer(new.access()), "DELETE", &path)
            .await
            .status,
        204
    );
}
