//! Uses of sessions: the first use of a generation is stored before the response, the time of last
//! use a little later, at most once a minute.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    in_process::InProcessServer,
    process::Server,
    service::Service,
    stored_sessions::{insert_sessions, issue_access_tokens},
    wait_until,
};

/// Starts an instance without workers, so that only requests use the database.
async fn start() -> Service {
    Service::start_with(|variables| {
        variables.extend([
            ("PERENNIAL_WORKERS", "0".to_owned()),
            (
                "PERENNIAL_PUBLIC_URL",
                "http://perennial.example".to_owned(),
            ),
        ]);
    })
    .await
}

async fn update_sessions(service: &Service, columns: &str) {
    let database = service.database.connect().await;
    let sql = format!("UPDATE sessions SET {columns}");
    database.execute(&sql, &[]).await.unwrap();
}

/// Signs up a user, whose session was last used an hour ago.
async fn sign_up_an_hour_ago(service: &Service, api: &ApiClient) -> SessionTokens {
    let tokens = api.sign_up("ada@example.com").await;
    update_sessions(service, "last_used_at = last_used_at - interval '1 hour'").await;
    tokens
}

/// Returns the transaction that wrote the only session's row.
async fn last_writer(service: &Service) -> String {
    let database = service.database.connect().await;
    let sql = "SELECT xmin::text FROM sessions";
    database.query_one(sql, &[]).await.unwrap().get(0)
}

async fn used_sessions(service: &Service) -> i64 {
    let sql = "SELECT count(*) FROM sessions WHERE last_used_at > now() - interval '1 minute'";
    service.count(sql).await
}

/// Checks sessions at the same time.
async fn check_all(api: &ApiClient, access_tokens: impl IntoIterator<Item = String>) {
    let mut checks = JoinSet::new();
    for token in access_tokens {
        let api = api.clone();
        checks.spawn(async move { api.check(&token).await });
    }
    for response in checks.join_all().await {
        assert_eq!(response.status, 200, "{}", response.text);
    }
}

#[tokio::test]
async fn last_use_is_stored_within_seconds_and_once_a_minute() {
    let mut service = start().await;
    let api = service.api(&[]);
    let tokens = sign_up_an_hour_ago(&service, &api).await;
    let access = || tokens.access().to_owned();
    let before = service.server.database_uses("pool").await;
    for _ in 0..5 {
        check_all(&api, (0..32).map(|_| access())).await;
    }
    // Responses have the new time before it is stored. Concurrent first checks differ in it by
    // milliseconds, and the list has the latest.
    let checked = api.check(tokens.access()).await.json();
    let bearer = api.with_bearer(tokens.access());
    let listed = bearer.get("/authentication/tokens").await.json();
    for shown in [&checked["session"], &listed["data"][0]] {
        let last_used_at: Timestamp = shown["last_used_at"].as_str().unwrap().parse().unwrap();
        let age = Timestamp::now().duration_since(last_used_at);
        assert!(age < SignedDuration::from_mins(1), "{last_used_at}");
    }

    let limit = Duration::from_secs(5);
    wait_until("the last use is stored", limit, async || {
        used_sessions(&service).await == 1
    })
    .await;
    let uses = service.server.database_uses("pool").await - before;
    // One for the list and one write; another one, without effect, if the task stored times between
    // two concurrent first checks.
    assert!(uses <= 3, "{uses}");

    let writer = last_writer(&service).await;
    check_all(&api, (0..32).map(|_| access())).await;
    assert!(service.server.process.stop().await);
    assert_eq!(last_writer(&service).await, writer);
}

/// Both instances have read the row before either of them stores the time.
#[tokio::test]
async fn stopping_instances_store_last_use_once() {
    let mut service = start().await;
    let mut second_server = Server::start(&service.variables).await;
    let (_, client) = service.create_client(&[]);
    let first = service.anonymous().with("client-id", &client);
    let second = ApiClient::new(&second_server.url).with("client-id", &client);
    let tokens = sign_up_an_hour_ago(&service, &first).await;
    for api in [&first, &second] {
        assert_eq!(api.check(tokens.access()).await.status, 200);
    }
    assert!(service.server.process.stop().await);
    assert_eq!(used_sessions(&service).await, 1);
    let writer = last_writer(&service).await;
    assert!(second_server.process.stop().await);
    assert_eq!(last_writer(&service).await, writer);
}

#[tokio::test]
async fn last_use_of_a_revoked_session_is_not_stored() {
    let mut service = start().await;
    let api = service.api(&[]);
    let tokens = sign_up_an_hour_ago(&service, &api).await;
    assert_eq!(api.check(tokens.access()).await.status, 200);
    let bearer = api.with_bearer(tokens.access());
    let logout = bearer.post("/authentication/tokens/logout", "").await;
    assert_eq!(logout.status, 200, "{}", logout.text);
    let writer = last_writer(&service).await;
    assert!(service.server.process.stop().await);
    assert_eq!(last_writer(&service).await, writer);
    service.server.restart(&service.variables).await;
    assert_eq!(api.check(tokens.access()).await.status, 401);
}

/// A theft is detected although the instance was killed right after the first use of new tokens.
#[tokio::test]
async fn killed_instance_has_stored_the_first_use_of_a_generation() {
    let mut service = start().await;
    let api = service.api(&[]);
    let first = api.sign_up("ada@example.com").await;
    let second = SessionTokens::from_response(&api.refresh(first.refresh()).await);
    assert_eq!(api.check(second.access()).await.status, 200);
    service.server.process.kill();

    let confirmed = "SELECT count(*) FROM sessions WHERE confirmed_generation = 1";
    assert_eq!(service.count(confirmed).await, 1);
    update_sessions(
        &service,
        "refreshed_at = refreshed_at - interval '31 seconds'",
    )
    .await;
    service.server.restart(&service.variables).await;
    let stolen = api.refresh(first.refresh()).await;
    stolen.assert_problem(401, "invalid_grant");
    assert_eq!(api.check(second.access()).await.status, 401);
    let events = "SELECT count(*) FROM events WHERE data->>'reason' = 'refresh_token_reused'";
    assert_eq!(service.count(events).await, 1);
}

#[tokio::test]
async fn concurrent_first_uses_of_generations_share_statements() {
    const SESSIONS: i64 = 50;
    let service = start().await;
    let api = service.api(&[]);
    let mut database = service.database.connect().await;
    insert_sessions(&database, 100, "a").await;
    update_sessions(&service, "generation = 1").await;
    let issuing = InProcessServer::start(&service.variables).await;
    let tokens = issue_access_tokens(&issuing.app, &database, "a", SESSIONS).await;

    let before = service.server.database_uses("pool").await;
    // Holds back all writes until all requests wait for one.
    let tx = database.transaction().await.unwrap();
    let lock = "LOCK TABLE sessions IN SHARE MODE";
    tx.batch_execute(lock).await.unwrap();
    let unlock = async {
        let in_flight = async || {
            let requests = service.server.metric("perennial_http_requests_in_flight");
            requests.await.unwrap() >= SESSIONS as f64
        };
        let limit = Duration::from_millis(1_500);
        wait_until("all checks wait", limit, in_flight).await;
        tx.commit().await.unwrap();
    };
    tokio::join!(check_all(&api, tokens), unlock);
    let confirmed = "SELECT count(*) FROM sessions WHERE confirmed_generation = 1";
    assert_eq!(service.count(confirmed).await, SESSIONS);
    let statements = service.server.database_uses("pool").await - before;
    assert!(statements <= 10, "{statements} statements");
}
