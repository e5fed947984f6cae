//! A user's sessions: seen, ended, and gone with the account.

use std::{process::Command, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    api::{Answer, Api},
    people::{Tokens, outside_token},
    process::{Server, run_err, run_ok},
    service::Service,
    wait_until,
};

const TOKENS: &str = "/authentication/tokens";

async fn send(caller: &Api, method: &str, path: &str) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    caller.try_send(method, path, None).await.unwrap()
}

/// The nine endpoints as the interface lays them down: method, path, headers C, B and X, and the body.
#[tokio::test]
async fn the_nine_endpoints_row_by_row() {
    let service = Service::start().await;
    let (_, client_id) = service.make_client(&[]);
    let c = service.anonymous().with("client-id", &client_id);
    let x = c.with("x-forwarded-for", "203.0.113.7");
    let body =
        json!({"access_token": outside_token("ada@example.com"), "email": "ada@example.com"})
            .to_string();

    // POST /authentication/sign-up          C, X   access_token, email
    let signed_up = x.post("/authentication/sign-up", &body).await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);
    // POST /authentication/sign-in          C, X   access_token, email
    let signed_in = x.post("/authentication/sign-in", &body).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let tokens = Tokens::of(&signed_in);
    let b = c.on_behalf_of(tokens.access());
    // POST /authentication/user-logged-in   C, B   none
    let logged_in = send(&b, "POST", "/authentication/user-logged-in").await;
    assert_eq!(logged_in.status, 200, "{}", logged_in.text);
    assert_eq!(logged_in.json()["logged_in"], true);
    // POST /authentication/refresh-token    C      refresh_token
    let body = json!({"refresh_token": tokens.refresh()}).to_string();
    let refreshed = c.post("/authentication/refresh-token", &body).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    // GET /authentication/tokens            C, B   none
    let listed = send(&b, "GET", TOKENS).await;
    assert_eq!(listed.status, 200, "{}", listed.text);
    assert_eq!(listed.json()["data"].as_array().unwrap().len(), 2);
    // POST /authentication/tokens/revoke-all-except-current   C, B   none
    let others = send(
        &b,
        "POST",
        "/authentication/tokens/revoke-all-except-current",
    )
    .await;
    assert_eq!(others.json(), json!({"success": true, "revoked": 1}));
    // POST /authentication/tokens/logout    C, B   none
    let out = send(&b, "POST", "/authentication/tokens/logout").await;
    assert_eq!(out.json(), json!({"success": true, "revoked": 1}));
    assert_eq!(
        send(&b, "POST", "/authentication/tokens/logout")
            .await
            .status,
        401
    );
    // POST /authentication/tokens/revoke-all   C, B   none
    let b = c.on_behalf_of(c.sign_in("ada@example.com").await.access());
    let all = send(&b, "POST", "/authentication/tokens/revoke-all").await;
    assert_eq!(all.json(), json!({"success": true, "revoked": 1}));
    // DELETE /authentication/delete-my-account/{auth_id}   C, B   none
    let tokens = c.sign_in("ada@example.com").await;
    let b = c.on_behalf_of(tokens.access());
    let deleted = send(
        &b,
        "DELETE",
        &format!("/authentication/delete-my-account/{}", tokens.user()),
    )
    .await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
}

#[tokio::test]
async fn seen_newest_first() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let phone = server
        .with("user-agent", "a phone")
        .with("x-forwarded-for", "203.0.113.7");
    let first = phone.sign_up("ada@example.com").await;
    let second = server.sign_in("ada@example.com").await;
    let third = server.sign_in("ada@example.com").await;
    server.sign_up("bob@example.com").await;
    let listed = server.on_behalf_of(second.access()).get(TOKENS).await;
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
    // What has ended, or run out, is not there.
    send(
        &server.on_behalf_of(third.access()),
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
    let listed = server
        .on_behalf_of(second.access())
        .get(TOKENS)
        .await
        .json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    for query in ["?limit=1", "?x"] {
        let answer = server
            .on_behalf_of(second.access())
            .get(&format!("{TOKENS}{query}"))
            .await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (400, "invalid_parameter")
        );
    }
}

/// Catalogue: 76.
#[tokio::test]
async fn ended_here_at_once_and_elsewhere_within_a_second() {
    let service = Service::start_with(|variables| {
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "http://perennial.example".to_owned(),
        );
    })
    .await;
    let other_server = Server::start(&service.variables).await;
    let (_, client) = service.make_client(&[]);
    let here = service.anonymous().with("client-id", &client);
    let there = Api::new(&other_server.url).with("client-id", &client);
    here.sign_up("bob@example.com").await;
    let stranger = here.sign_in("bob@example.com").await;
    here.sign_up("ada@example.com").await;
    // How it is ended, which of three it ends, and why, in the event.
    let ways = [
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
    for (method, path, ends, reason) in ways {
        let client = service.database.connect().await;
        client.batch_execute("UPDATE sessions SET ended_at = now() WHERE user_id NOT IN (SELECT id FROM users WHERE email LIKE 'bob%')").await.unwrap();
        let mut three = Vec::new();
        for _ in 0..3 {
            three.push(here.sign_in("ada@example.com").await);
        }
        for tokens in &three {
            for caller in [&here, &there] {
                assert_eq!(caller.check(tokens.access()).await.status, 200);
            }
        }
        let path = if method == "DELETE" {
            format!("{path}{}", three[0].user())
        } else {
            path.to_owned()
        };
        let answer = send(&here.on_behalf_of(three[0].access()), method, &path).await;
        assert!([200, 204].contains(&answer.status), "{}", answer.text);
        for (tokens, ended) in three.iter().zip(ends) {
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
        // A dead token ends nothing.
        if ends[0] {
            let again = send(&there.on_behalf_of(three[0].access()), method, &path).await;
            assert_eq!(
                (again.status, again.problem().as_str()),
                (401, "invalid_token")
            );
        }
        let count = format!(
            "SELECT count(*) FROM events WHERE kind = 'session.revoked' AND data->>'reason' = '{reason}'"
        );
        let ended = ends.iter().filter(|ended| **ended).count();
        assert_eq!(service.count(&count).await, ended as i64);
    }
    assert_eq!(here.check(stranger.access()).await.status, 200);
}

/// Somebody else's account is refused in the same words, whether or not it exists.
#[tokio::test]
async fn only_ones_own_account() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let ada = server.sign_up("ada@example.com").await;
    let bob = server.sign_up("bob@example.com").await;
    let as_ada = server.on_behalf_of(ada.access());
    let mut bodies = std::collections::BTreeSet::new();
    for id in [
        bob.user(),
        "usr_01920000000070008000000000000001",
        "nonsense",
        "%00",
        ada.session(),
    ] {
        let answer = send(
            &as_ada,
            "DELETE",
            &format!("/authentication/delete-my-account/{id}"),
        )
        .await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (403, "not_your_account"),
            "{id}"
        );
        let mut body = answer.json();
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

fn dump(service: &Service) -> String {
    let dump = Command::new("pg_dump")
        .args(["--data-only", "-d", &service.database.url])
        .output()
        .unwrap();
    assert!(dump.status.success());
    String::from_utf8(dump.stdout).unwrap()
}

/// Nothing of the person remains, and the person can come back as somebody new.
#[tokio::test]
async fn nothing_of_an_erased_user_remains() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_LOG", "trace".to_owned());
    })
    .await;
    let (_, client) = service.make_client(&[]);
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
    assert!(dump(&service).contains("canary"));
    let path = format!("/authentication/delete-my-account/{}", first.user());
    assert_eq!(
        send(&server.on_behalf_of(second.access()), "DELETE", &path)
            .await
            .status,
        204
    );

    let dump = dump(&service);
    for trace in ["canary", "203.0.113.99"] {
        let found = dump.lines().find(|line| line.contains(trace));
        assert!(found.is_none(), "{found:?}");
    }
    assert!(dump.contains("user.erased"));
    assert!(!service.server.process.log().contains("canary"));
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    assert!(!metrics.contains("canary"));

    // Gone for everybody.
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
        .authenticate("sign-in", &outside_token(email), email)
        .await;
    assert_eq!(
        (back.status, back.problem().as_str()),
        (404, "account_not_found")
    );
    assert_eq!(server.refresh(first.refresh()).await.status, 401);
    let again = server.sign_up(email).await;
    assert_ne!(again.user(), first.user());
}

/// Whoever signs in while the account is being deleted is not signed in to nothing.
#[tokio::test]
async fn deleted_while_signing_in() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_DATABASE_POOL", "12".to_owned());
    })
    .await;
    let server = service.caller(&[]);
    for round in 0..50 {
        let email = format!("p{round}@example.com");
        let tokens = server.sign_up(&email).await;
        let token = outside_token(&email);
        let path = format!("/authentication/delete-my-account/{}", tokens.user());
        let as_user = server.on_behalf_of(tokens.access());
        let deleting = send(&as_user, "DELETE", &path);
        let sign_in = || server.authenticate("sign-in", &token, &email);
        let (deleted, one, two, three) = tokio::join!(deleting, sign_in(), sign_in(), sign_in());
        assert_eq!(deleted.status, 204, "{}", deleted.text);
        for answer in [one, two, three] {
            assert!([200, 404].contains(&answer.status), "{}", answer.text);
            if answer.status == 200 {
                // It was before the deletion, and went with it.
                assert_eq!(server.check(Tokens::of(&answer).access()).await.status, 401);
            }
        }
    }
    let live = "SELECT count(*) FROM sessions JOIN users ON users.id = user_id WHERE erased_at IS NOT NULL AND ended_at IS NULL";
    assert_eq!(service.count(live).await, 0);
}

/// Once a minute it is written down that a session is in use, by one of those who use it; the others do not wait for it, nor
/// for each other.
#[tokio::test]
async fn used_by_many_at_once_after_a_while() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    server.sign_up("ada@example.com").await;
    let database = service.database.connect().await;
    for _ in 0..20 {
        let tokens = server.sign_in("ada@example.com").await;
        let long_ago = "UPDATE sessions SET last_used_at = last_used_at - interval '1 hour'";
        database.execute(long_ago, &[]).await.unwrap();
        let mut checks = tokio::task::JoinSet::new();
        for _ in 0..32 {
            let (server, token) = (server.clone(), tokens.access().to_owned());
            checks.spawn(async move { server.check(&token).await.status });
        }
        let answered = tokio::time::timeout(Duration::from_secs(10), checks.join_all()).await;
        let answered = answered.expect("everybody is answered");
        assert!(answered.iter().all(|status| *status == 200), "{answered:?}");
        let just_now =
            "SELECT count(*) FROM sessions WHERE last_used_at > now() - interval '1 minute'";
        assert_eq!(service.count(just_now).await, 1);
    }
}

/// For whoever answers the user, or the law: by address, by id, by session.
#[tokio::test]
async fn operators_look_up_end_and_erase() {
    let service = Service::start().await;
    let server = service.caller(&[]);
    let first = server
        .with("user-agent", "a phone")
        .sign_up("ada@example.com")
        .await;
    let second = server.sign_in("ada@example.com").await;
    let run = |arguments: &[&str]| run_ok(&service.variables, arguments);
    for who in ["ADA@example.com", first.user(), second.session()] {
        let shown = run(&["user", "show", who]);
        for part in [
            first.user(),
            "ada@example.com",
            "urn:perennial:sandbox",
            "a phone",
            first.session(),
        ] {
            assert!(shown.contains(part), "{who}: {shown}");
        }
        let json: Value = serde_json::from_str(&run(&["user", "show", who, "--json"])).unwrap();
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

    // One session, then all; the running instance hears of it.
    for tokens in [&first, &second] {
        assert_eq!(server.check(tokens.access()).await.status, 200);
    }
    let gone = async |tokens: &Tokens| {
        wait_until("the session is ended", Duration::from_secs(1), async || {
            server.check(tokens.access()).await.status == 401
        })
        .await;
    };
    assert!(run(&["session", "revoke", first.session()]).contains("ended 1 session"));
    gone(&first).await;
    assert_eq!(server.check(second.access()).await.status, 200);
    assert!(run(&["session", "revoke", "ada@example.com"]).contains("ended 1 session"));
    gone(&second).await;
    assert!(run(&["session", "list", "ada@example.com"]).contains("signed in nowhere"));

    let third = server.sign_in("ada@example.com").await;
    assert!(run(&["user", "erase", "ada@example.com"]).contains("would erase"));
    assert_eq!(server.check(third.access()).await.status, 200);
    assert!(run(&["user", "erase", "ada@example.com", "--yes"]).contains("erased usr_"));
    gone(&third).await;
    for who in ["ada@example.com", first.user(), "nobody@example.com"] {
        let said = run_err(&service.variables, &["user", "show", who]);
        assert!(said.contains("there is no such user"), "{said}");
    }
    let said = run_err(
        &service.variables,
        &["user", "show", "plan_01920000000070008000000000000001"],
    );
    assert!(said.contains("the id of a user (usr_…)"), "{said}");
}

/// A device left lying about deletes nothing, where the tenant says so.
#[tokio::test]
async fn only_shortly_after_a_sign_in() {
    let service = Service::start().await;
    run_ok(
        &service.variables,
        &["tenant", "set", "--recent-sign-in", "300"],
    );
    let server = service.caller(&[]);
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
    let answer = send(&server.on_behalf_of(old.access()), "DELETE", &path).await;
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (403, "reauthentication_required")
    );
    let new = server.sign_in("ada@example.com").await;
    assert_eq!(
        send(&server.on_behalf_of(new.access()), "DELETE", &path)
            .await
            .status,
        204
    );
}
