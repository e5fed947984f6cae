//! The number of sessions per user, ending one of them, and the timeouts per tenant.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;

use crate::harness::{
    api::{ApiClient, ApiResponse},
    auth::SessionTokens,
    process::{run_err, run_ok},
    service::{InstancePair, Service},
    wait_until,
};

const TOKENS: &str = "/authentication/tokens";

async fn delete(api: &ApiClient, bearer: &SessionTokens, id: &str) -> ApiResponse {
    let api = api.with_bearer(bearer.access());
    let path = format!("{TOKENS}/{id}");
    api.try_send(Method::DELETE, &path, None).await.unwrap()
}

#[tokio::test]
async fn sign_in_beyond_the_limit_ends_the_oldest_session() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_DATABASE_POOL", "10".to_owned());
    })
    .await;
    let api = service.api(&[]);
    let other = api.sign_up("bob@example.com").await;
    let first = api.sign_up("ada@example.com").await;
    let second = api.sign_in("ada@example.com").await;
    for _ in 2..100 {
        api.sign_in("ada@example.com").await;
    }
    // An ended session does not count.
    let ended = api.sign_in("ada@example.com").await;
    assert_eq!(api.check(first.access()).await.status, 401, "the 101st");
    let logout = format!("{TOKENS}/logout");
    let logged_out = api.with_bearer(ended.access());
    logged_out
        .try_send(Method::POST, &logout, None)
        .await
        .unwrap();
    let newest = api.sign_in("ada@example.com").await;
    for tokens in [&second, &newest, &other] {
        assert_eq!(api.check(tokens.access()).await.status, 200);
    }
    let listed = api.with_bearer(second.access()).get(TOKENS).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 100);
    let client = service.database.connect().await;
    let sql = "SELECT data FROM events WHERE kind = 'session.revoked' AND data->>'reason' = 'session_limit'";
    let events = client.query(sql, &[]).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].get::<_, Value>(0)["id"], first.session());

    // Concurrent sign-ins count one after the other.
    let mut signing_in = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let api = api.clone();
        signing_in.spawn(async move { api.sign_in("ada@example.com").await });
    }
    signing_in.join_all().await;
    let active = "SELECT count(*) FROM sessions WHERE ended_at IS NULL
        AND user_id = (SELECT id FROM users WHERE email = 'ada@example.com')";
    assert_eq!(service.count(active).await, 100);
}

#[tokio::test]
async fn user_ends_one_other_session_by_id() {
    let InstancePair {
        service,
        here,
        there,
        other_server: _other_server,
    } = InstancePair::start(&["--kind", "publishable"]).await;
    let bob = here.sign_up("bob@example.com").await;
    let phone = here.sign_up("ada@example.com").await;
    let laptop = here.sign_in("ada@example.com").await;
    for tokens in [&bob, &phone, &laptop] {
        assert_eq!(there.check(tokens.access()).await.status, 200);
    }
    let ended = delete(&here, &laptop, phone.session()).await;
    assert_eq!((ended.status, ended.text.as_str()), (204, ""));
    assert_eq!(here.check(phone.access()).await.status, 401);
    wait_until("the session ends", Duration::from_secs(1), async || {
        there.check(phone.access()).await.status == 401
    })
    .await;
    assert_eq!(there.refresh(phone.refresh()).await.status, 401);
    // A session that has ended, another user's, an unknown one, and no session's id.
    for id in [
        phone.session(),
        bob.session(),
        "ses_01920000000070008000000000000001",
        laptop.user(),
        "nonsense",
        "%00",
    ] {
        let response = delete(&here, &laptop, id).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (404, "session_not_found"),
            "{id}"
        );
    }
    for tokens in [&bob, &laptop] {
        assert_eq!(here.check(tokens.access()).await.status, 200);
    }
    let one = "SELECT count(*) FROM events WHERE kind = 'session.revoked' AND data->>'reason' = 'revoke_one'";
    assert_eq!(service.count(one).await, 1);
    // The current session ends too.
    assert_eq!(delete(&here, &laptop, laptop.session()).await.status, 204);
    assert_eq!(delete(&here, &laptop, laptop.session()).await.status, 401);
}

fn lifetime(tokens: &SessionTokens) -> i64 {
    let expires_at: Timestamp = tokens.0["refresh_expires_at"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    expires_at.duration_since(Timestamp::now()).as_secs()
}

#[tokio::test]
async fn session_timeouts_of_a_tenant_apply_to_new_and_existing_sessions() {
    let InstancePair {
        service,
        here,
        there,
        other_server: _other_server,
    } = InstancePair::start(&[]).await;
    let set = |arguments: &[&str]| {
        run_ok(
            &service.variables,
            &[&["tenant", "set"], arguments].concat(),
        );
    };
    let idle = here.sign_up("ada@example.com").await;
    let refreshed = here.sign_in("ada@example.com").await;
    let recent = here.sign_in("ada@example.com").await;
    let day = 86_400;
    let is_about = |expected: i64, actual: i64| (expected - 60..=expected).contains(&actual);
    assert!(is_about(14 * day, lifetime(&recent)));
    // Two sessions are two hours old, and one of them was refreshed half an hour ago.
    let client = service.database.connect().await;
    for (tokens, refreshed) in [(&idle, "2 hours"), (&refreshed, "30 minutes")] {
        let session = tokens.session().trim_start_matches("ses_");
        let sql = format!(
            "UPDATE sessions SET created_at = created_at - interval '2 hours',
                refreshed_at = refreshed_at - interval '{refreshed}' WHERE id = '{session}'"
        );
        client.execute(&sql, &[]).await.unwrap();
    }
    let statuses = async |expected: [u16; 3]| {
        let sessions = [&idle, &refreshed, &recent];
        wait_until("the setting applies", Duration::from_secs(2), async || {
            let mut statuses = Vec::new();
            for api in [&here, &there] {
                for tokens in sessions {
                    statuses.push(api.check(tokens.access()).await.status);
                }
            }
            statuses == [expected, expected].concat()
        })
        .await;
    };
    statuses([200, 200, 200]).await;
    set(&["--session-idle-timeout", "3600"]);
    statuses([401, 200, 200]).await;
    assert_eq!(here.refresh(idle.refresh()).await.status, 401);
    let listed = here.with_bearer(recent.access()).get(TOKENS).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    let new = here.sign_in("ada@example.com").await;
    assert!(is_about(3600, lifetime(&new)));
    set(&["--session-absolute-timeout", "5400"]);
    statuses([401, 401, 200]).await;
    assert_eq!(there.refresh(refreshed.refresh()).await.status, 401);
    // Longer timeouts take effect at the next refresh.
    set(&[
        "--session-idle-timeout",
        "5184000",
        "--session-absolute-timeout",
        "7776000",
    ]);
    wait_until("the setting applies", Duration::from_secs(2), async || {
        is_about(60 * day, lifetime(&here.sign_in("ada@example.com").await))
    })
    .await;
    let later = SessionTokens::from_response(&here.refresh(new.refresh()).await);
    assert!(is_about(60 * day, lifetime(&later)), "{}", lifetime(&later));
    let listed = service.run_json(&["tenant", "list", "--json"]);
    assert_eq!(listed["session_idle_timeout"], 5_184_000);
    assert_eq!(listed["session_absolute_timeout"], 7_776_000);
    for (flag, value) in [
        ("--session-idle-timeout", "60"),
        ("--session-absolute-timeout", "31536001"),
    ] {
        let output = run_err(&service.variables, &["tenant", "set", flag, value]);
        assert!(output.contains("1800..=31536000"), "{output}");
    }
}
