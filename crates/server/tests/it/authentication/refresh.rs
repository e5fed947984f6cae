//! Refresh tokens: rotation, reuse detection, and repeated responses.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    process::{Server, Variables, run_ok},
    service::Service,
    wait_until,
};

/// Two instances on one database, each with an API client.
struct TwoInstances {
    service: Service,
    first: ApiClient,
    second: ApiClient,
    _second_server: Server,
}

fn configure(variables: &mut Variables) {
    // Enough connections that admission control rejects nothing.
    variables.insert("PERENNIAL_DATABASE_POOL", "40".to_owned());
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "http://perennial.example".to_owned(),
    );
}

impl TwoInstances {
    /// Returns a client of the first instance for even numbers, and of the second for odd ones.
    fn instance(&self, number: usize) -> ApiClient {
        let instances = [&self.first, &self.second];
        instances[number % 2].clone()
    }

    /// Signs up on the first instance and returns the refresh token.
    async fn sign_up(&self) -> String {
        let tokens = self.first.sign_up("ada@example.com").await;
        tokens.refresh().to_owned()
    }

    /// Fills both connection pools, which takes a while.
    async fn open_connections(&self) {
        for _ in 0..5 {
            let requests: Vec<_> = (0..80)
                .map(|n| {
                    let api = self.instance(n);
                    tokio::spawn(async move { api.get("/subscription-plans").await })
                })
                .collect();
            for request in requests {
                request.await.unwrap();
            }
        }
    }

    async fn start() -> Self {
        let service = Service::start_with(configure).await;
        let second_server = Server::start(&service.variables).await;
        let (_, client) = service.create_client(&[]);
        Self {
            first: service.anonymous().with("client-id", &client),
            second: ApiClient::new(&second_server.url).with("client-id", &client),
            service,
            _second_server: second_server,
        }
    }

    /// Updates the session's row.
    async fn update(&self, columns: &str) {
        let client = self.service.database.connect().await;
        let sql = format!("UPDATE sessions SET {columns}");
        client.execute(&sql, &[]).await.unwrap();
    }

    /// Returns the row of the only session.
    async fn row(&self) -> String {
        let client = self.service.database.connect().await;
        let sql = "SELECT sessions::text FROM sessions";
        client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Asserts that both instances reject this token within a second.
    async fn assert_revoked(&self, access: &str) {
        let started = Instant::now();
        for api in [&self.first, &self.second] {
            wait_until(
                "the session is revoked",
                Duration::from_secs(1),
                async || api.check(access).await.status == 401,
            )
            .await;
        }
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}

/// Malformed input: 76, 77.
#[tokio::test]
async fn reused_refresh_token_revokes_the_session() {
    let instances = TwoInstances::start().await;
    // A token that is two generations old.
    let first = instances.first.sign_up("ada@example.com").await;
    let second = SessionTokens::from_response(&instances.second.refresh(first.refresh()).await);
    let third = SessionTokens::from_response(&instances.first.refresh(second.refresh()).await);
    for api in [&instances.first, &instances.second] {
        assert_eq!(api.check(third.access()).await.status, 200);
    }
    instances
        .first
        .refresh(first.refresh())
        .await
        .assert_problem(401, "invalid_grant");
    assert_eq!(
        instances.first.check(third.access()).await.status,
        401,
        "immediately on the same instance"
    );
    instances.assert_revoked(third.access()).await;
    for token in [&first, &second, &third] {
        instances
            .second
            .refresh(token.refresh())
            .await
            .assert_problem(401, "invalid_grant");
        assert_eq!(instances.second.check(token.access()).await.status, 401);
    }

    // A token that is one generation old, 30 s after its successor was used.
    let first = instances.first.sign_in("ada@example.com").await;
    let second = SessionTokens::from_response(&instances.first.refresh(first.refresh()).await);
    assert_eq!(instances.second.check(second.access()).await.status, 200);
    // Within 30 s it gets the same successor.
    let again = SessionTokens::from_response(&instances.second.refresh(first.refresh()).await);
    assert_eq!(again.refresh(), second.refresh());
    instances
        .update("refreshed_at = refreshed_at - interval '31 seconds'")
        .await;
    instances
        .second
        .refresh(first.refresh())
        .await
        .assert_problem(401, "invalid_grant");
    instances.assert_revoked(second.access()).await;

    let events = "SELECT count(*) FROM events WHERE kind = 'session.revoked' AND data->>'reason' = 'refresh_token_reused'";
    assert_eq!(instances.service.count(events).await, 2);
}

/// Possible once after 30 seconds, with an event, but not after 10 minutes.
#[tokio::test]
async fn lost_refresh_response_can_be_repeated_once_within_ten_minutes() {
    let instances = TwoInstances::start().await;
    let first = instances.first.sign_up("ada@example.com").await;
    let lost = SessionTokens::from_response(&instances.first.refresh(first.refresh()).await);
    instances
        .update("refreshed_at = refreshed_at - interval '590 seconds'")
        .await;
    let repeated = SessionTokens::from_response(&instances.second.refresh(first.refresh()).await);
    assert_eq!(repeated.refresh(), lost.refresh());
    let events = "SELECT count(*) FROM events WHERE kind = 'session.refresh_repeated'
        AND (data->>'seconds_since_refresh')::int BETWEEN 590 AND 600 AND client_id IS NOT NULL AND request_id IS NOT NULL";
    assert_eq!(instances.service.count(events).await, 1);
    // Another tab gets the same tokens for 30 seconds, without another event.
    let other_tab = SessionTokens::from_response(&instances.first.refresh(first.refresh()).await);
    assert_eq!(other_tab.refresh(), lost.refresh());
    assert_eq!(instances.service.count(events).await, 1);
    // Then the predecessor is rejected, although the successor was not used.
    instances
        .update("refreshed_at = refreshed_at - interval '31 seconds'")
        .await;
    instances
        .first
        .refresh(first.refresh())
        .await
        .assert_problem(401, "invalid_grant");
    instances.assert_revoked(repeated.access()).await;

    let first = instances.first.sign_in("ada@example.com").await;
    let lost = SessionTokens::from_response(&instances.first.refresh(first.refresh()).await);
    instances
        .update("refreshed_at = refreshed_at - interval '601 seconds'")
        .await;
    instances
        .second
        .refresh(first.refresh())
        .await
        .assert_problem(401, "invalid_grant");
    instances.assert_revoked(lost.access()).await;
}

/// Of concurrent late repeats on two instances, one is recorded, and all get the same tokens.
#[tokio::test]
async fn concurrent_late_repeats_are_recorded_once() {
    let instances = TwoInstances::start().await;
    let mut token = instances.sign_up().await;
    for round in 1..=20 {
        let lost = SessionTokens::from_response(&instances.first.refresh(&token).await);
        instances
            .update("refreshed_at = refreshed_at - interval '5 minutes'")
            .await;
        let requests: Vec<_> = (0..8)
            .map(|n| {
                let api = instances.instance(n);
                let token = token.clone();
                tokio::spawn(async move { api.refresh(&token).await })
            })
            .collect();
        for request in requests {
            let tokens = SessionTokens::from_response(&request.await.unwrap());
            assert_eq!(tokens.refresh(), lost.refresh(), "round {round}");
        }
        let events = "SELECT count(*) FROM events WHERE kind = 'session.refresh_repeated'";
        assert_eq!(instances.service.count(events).await, round);
        token = lost.refresh().to_owned();
    }
}

/// Malformed input: 77.
#[tokio::test]
async fn refresh_token_of_another_client_changes_nothing() {
    let instances = TwoInstances::start().await;
    let tokens = instances.first.sign_up("ada@example.com").await;
    let newer = SessionTokens::from_response(&instances.first.refresh(tokens.refresh()).await);
    let newest = SessionTokens::from_response(&instances.first.refresh(newer.refresh()).await);
    assert_eq!(instances.first.check(newest.access()).await.status, 200);
    let before = instances.row().await;
    let another = instances.service.api(&[]);
    let browser = instances.service.api(&["--kind", "publishable"]);
    run_ok(
        &instances.service.variables,
        &["tenant", "create", "--name", "other"],
    );
    let foreign = instances.service.api(&["--tenant", "other"]);
    // Not even an old one, which would revoke the session if its own client had sent it.
    for api in [&another, &browser, &foreign] {
        for token in [&tokens, &newer, &newest] {
            api.refresh(token.refresh())
                .await
                .assert_problem(401, "invalid_grant");
        }
    }
    let text = newest.refresh();
    let mut altered = text.to_owned();
    let place = text.len() - 2..text.len() - 1;
    let other = if &text[place.clone()] == "A" {
        "B"
    } else {
        "A"
    };
    altered.replace_range(place, other);
    for token in [&altered, &text[..40], "prn_rt_", "x", newest.access()] {
        let response = instances.first.refresh(token).await;
        // A token that is too long is a validation error.
        assert!([401, 422].contains(&response.status), "{}", response.text);
    }
    assert_eq!(instances.row().await, before);
    assert_eq!(instances.first.refresh(newest.refresh()).await.status, 200);

    // The session has expired.
    let tokens = instances.first.sign_in("ada@example.com").await;
    instances.update("expires_at = now()").await;
    instances
        .first
        .refresh(tokens.refresh())
        .await
        .assert_problem(401, "invalid_grant");
    assert_eq!(instances.second.check(tokens.access()).await.status, 401);
}

/// A restored database does not know the newest tokens. They are rejected without revoking sessions.
#[tokio::test]
async fn refresh_after_restore_signs_nobody_out() {
    let instances = TwoInstances::start().await;
    let first = instances.first.sign_up("ada@example.com").await;
    let second = SessionTokens::from_response(&instances.first.refresh(first.refresh()).await);
    let client = instances.service.database.connect().await;
    client
        .batch_execute("CREATE TABLE backup AS SELECT * FROM sessions")
        .await
        .unwrap();
    let third = SessionTokens::from_response(&instances.first.refresh(second.refresh()).await);
    let fourth = SessionTokens::from_response(&instances.first.refresh(third.refresh()).await);
    let restore = "UPDATE sessions SET (generation, confirmed_generation, refreshed_at)
        = (backup.generation, backup.confirmed_generation, backup.refreshed_at) FROM backup";
    client.batch_execute(restore).await.unwrap();
    let before = instances.row().await;
    for token in [&third, &fourth] {
        instances
            .second
            .refresh(token.refresh())
            .await
            .assert_problem(401, "invalid_grant");
    }
    assert_eq!(instances.row().await, before);
    // The token that was current in the backup works again, and access tokens stay valid.
    assert_eq!(instances.second.check(fourth.access()).await.status, 200);
    let response = instances.first.refresh(second.refresh()).await;
    assert_eq!(
        SessionTokens::from_response(&response).refresh(),
        third.refresh()
    );
}

/// Tests that saturate the machine, and so run without other tests.
mod saturation {
    use tokio_postgres::Client;

    use super::*;
    use crate::harness::{
        client::create_client, cluster::Cluster, database::connect, process::sandbox,
    };

    /// Returns the number of rows of each table, except those that background tasks write: the event log, and the tasks that
    /// have run.
    async fn rows_by_table(client: &Client) -> String {
        let query = "SELECT string_agg(relname || ' ' || (xpath('/row/n/text()', query_to_xml(
                'SELECT count(*) AS n FROM ' || relname, false, true, '')))[1]::text, ', ' ORDER BY relname)
            FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
              AND relname NOT LIKE 'event_log%' AND relname <> 'task_leases'";
        client.query_one(query, &[]).await.unwrap().get(0)
    }

    /// 10,000 refreshes add no rows and need no more than 64 pages. In a private cluster: PostgreSQL reuses the space of a row
    /// version when all transactions of the cluster see a newer one, so those of other databases would add pages.
    #[tokio::test]
    async fn refreshes_add_no_rows() {
        let cluster = Cluster::start();
        let mut variables = sandbox(&cluster.url());
        configure(&mut variables);
        let servers = [
            Server::start(&variables).await,
            Server::start(&variables).await,
        ];
        let (_, value) = create_client(&cluster.url(), &[]);
        let instances = servers
            .each_ref()
            .map(|server| ApiClient::new(&server.url).with("client-id", &value));
        let mut all = Vec::new();
        for n in 0..8 {
            all.push(instances[0].sign_up(&format!("p{n}@example.com")).await);
        }
        let client = connect(&cluster.url()).await;
        let before = rows_by_table(&client).await;
        let tasks: Vec<_> = all
            .into_iter()
            .enumerate()
            .map(|(n, tokens)| {
                let api = instances[n % 2].clone();
                tokio::spawn(async move {
                    let mut token = tokens.refresh().to_owned();
                    for _ in 0..1_250 {
                        token = SessionTokens::from_response(&api.refresh(&token).await)
                            .refresh()
                            .to_owned();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let count = async |sql: &str| -> i64 { client.query_one(sql, &[]).await.unwrap().get(0) };
        let refreshes = count("SELECT sum(generation)::bigint FROM sessions").await;
        assert_eq!(refreshes, 10_000);
        assert_eq!(rows_by_table(&client).await, before);
        let size = count("SELECT pg_relation_size('sessions')").await;
        assert!(size <= 64 * 8192, "{size} bytes for eight sessions");
    }

    /// 200 rounds of 100 concurrent refreshes with one token: all get the same successor.
    #[tokio::test]
    async fn concurrent_refreshes_return_one_successor() {
        let instances = TwoInstances::start().await;
        let mut token = instances.sign_up().await;
        instances.open_connections().await;
        for round in 0..200 {
            let tasks: Vec<_> = (0..100)
                .map(|n| {
                    let api = instances.instance(n);
                    let token = token.clone();
                    tokio::spawn(async move { api.refresh(&token).await })
                })
                .collect();
            let mut successors = BTreeSet::new();
            let mut access = String::new();
            for task in tasks {
                let response = task.await.unwrap();
                assert_eq!(response.status, 200, "round {round}: {}", response.text);
                let tokens = SessionTokens::from_response(&response);
                successors.insert(tokens.refresh().to_owned());
                access = tokens.access().to_owned();
            }
            assert_eq!(successors.len(), 1, "round {round}");
            token = successors.pop_first().unwrap();
            if round % 20 == 0 {
                assert_eq!(instances.second.check(&access).await.status, 200);
            }
        }
        assert_eq!(
            instances
                .service
                .count("SELECT count(*) FROM sessions")
                .await,
            1
        );
        assert_eq!(
            instances
                .service
                .count("SELECT generation::bigint FROM sessions")
                .await,
            200
        );
        assert_eq!(
            instances
                .service
                .count("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL")
                .await,
            0
        );
    }
}
