//! Refresh tokens: used once, never lost, and not worth stealing.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::harness::{api::Api, people::Tokens, process::Server, service::Service, wait_until};

/// A service with two instances, and a client of it at each.
struct Two {
    service: Service,
    one: Api,
    other: Api,
    _other_server: Server,
}

impl Two {
    /// Has both instances open all the connections that they may have, which takes its time once.
    async fn open_connections(&self) {
        for _ in 0..5 {
            let asked: Vec<_> = (0..80)
                .map(|n| {
                    let caller = if n % 2 == 0 { &self.one } else { &self.other };
                    let caller = caller.clone();
                    tokio::spawn(async move { caller.get("/subscription-plans").await })
                })
                .collect();
            for one in asked {
                one.await.unwrap();
            }
        }
    }

    async fn start() -> Self {
        let service = Service::start_with(|variables| {
            // As many as come at once: this is about who is first, not about standing in line.
            variables.insert("PERENNIAL_DATABASE_POOL", "40".to_owned());
            variables.insert(
                "PERENNIAL_PUBLIC_URL",
                "http://perennial.example".to_owned(),
            );
        })
        .await;
        let other_server = Server::start(&service.variables).await;
        let (_, client) = service.make_client(&[]);
        Self {
            one: service.anonymous().with("client-id", &client),
            other: Api::new(&other_server.url).with("client-id", &client),
            service,
            _other_server: other_server,
        }
    }

    /// Changes the session's row behind the service's back.
    async fn set(&self, what: &str) {
        let client = self.service.database.connect().await;
        let sql = format!("UPDATE sessions SET {what}");
        client.execute(&sql, &[]).await.unwrap();
    }

    /// The only session's row.
    async fn row(&self) -> String {
        let client = self.service.database.connect().await;
        let sql = "SELECT sessions::text FROM sessions";
        client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Both instances refuse this session's token, within a second.
    async fn is_dead(&self, access: &str) {
        let begun = Instant::now();
        for caller in [&self.one, &self.other] {
            wait_until("the session is dead", Duration::from_secs(1), async || {
                caller.check(access).await.status == 401
            })
            .await;
        }
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
}

fn refused(answer: &crate::harness::api::Answer) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (401, "invalid_grant")
    );
}

/// However many send the same token at once, wherever: one successor, and everybody gets it.
#[tokio::test]
async fn a_hundred_refreshes_of_one_token_alone() {
    let two = Two::start().await;
    let mut token = two
        .one
        .sign_up("ada@example.com")
        .await
        .refresh()
        .to_owned();
    two.open_connections().await;
    for round in 0..200 {
        let tasks: Vec<_> = (0..100)
            .map(|n| {
                let caller = if n % 2 == 0 {
                    two.one.clone()
                } else {
                    two.other.clone()
                };
                let token = token.clone();
                tokio::spawn(async move { caller.refresh(&token).await })
            })
            .collect();
        let mut successors = BTreeSet::new();
        let mut access = String::new();
        for task in tasks {
            let answer = task.await.unwrap();
            assert_eq!(answer.status, 200, "round {round}: {}", answer.text);
            let tokens = Tokens::of(&answer);
            successors.insert(tokens.refresh().to_owned());
            access = tokens.access().to_owned();
        }
        assert_eq!(successors.len(), 1, "round {round}");
        token = successors.pop_first().unwrap();
        if round % 20 == 0 {
            assert_eq!(two.other.check(&access).await.status, 200);
        }
    }
    assert_eq!(two.service.count("SELECT count(*) FROM sessions").await, 1);
    assert_eq!(
        two.service
            .count("SELECT generation::bigint FROM sessions")
            .await,
        200
    );
    assert_eq!(
        two.service
            .count("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL")
            .await,
        0
    );
}

/// Catalogue: 76, 77.
#[tokio::test]
async fn an_old_token_ends_the_session() {
    let two = Two::start().await;
    // Two generations old.
    let first = two.one.sign_up("ada@example.com").await;
    let second = Tokens::of(&two.other.refresh(first.refresh()).await);
    let third = Tokens::of(&two.one.refresh(second.refresh()).await);
    for caller in [&two.one, &two.other] {
        assert_eq!(caller.check(third.access()).await.status, 200);
    }
    refused(&two.one.refresh(first.refresh()).await);
    assert_eq!(
        two.one.check(third.access()).await.status,
        401,
        "here at once"
    );
    two.is_dead(third.access()).await;
    for token in [&first, &second, &third] {
        refused(&two.other.refresh(token.refresh()).await);
        assert_eq!(two.other.check(token.access()).await.status, 401);
    }

    // One generation old, its successor seen in use, and 30 seconds later.
    let first = two.one.sign_in("ada@example.com").await;
    let second = Tokens::of(&two.one.refresh(first.refresh()).await);
    assert_eq!(two.other.check(second.access()).await.status, 200);
    // Within the 30 seconds it gets the same again.
    let again = Tokens::of(&two.other.refresh(first.refresh()).await);
    assert_eq!(again.refresh(), second.refresh());
    two.set("refreshed_at = refreshed_at - interval '31 seconds'")
        .await;
    refused(&two.other.refresh(first.refresh()).await);
    two.is_dead(second.access()).await;

    let events = "SELECT count(*) FROM events WHERE kind = 'session.revoked' AND data->>'reason' = 'refresh_token_reused'";
    assert_eq!(two.service.count(events).await, 2);
}

/// An answer that got lost is given again: after an hour, and not after two days.
#[tokio::test]
async fn a_lost_answer_is_given_again() {
    let two = Two::start().await;
    let first = two.one.sign_up("ada@example.com").await;
    let lost = Tokens::of(&two.one.refresh(first.refresh()).await);
    two.set("refreshed_at = refreshed_at - interval '1 hour'")
        .await;
    let found = Tokens::of(&two.other.refresh(first.refresh()).await);
    assert_eq!(found.refresh(), lost.refresh());
    // Once it is in use, the one before is worth nothing any more.
    assert_eq!(two.other.check(found.access()).await.status, 200);
    refused(&two.one.refresh(first.refresh()).await);
    two.is_dead(found.access()).await;

    let first = two.one.sign_in("ada@example.com").await;
    let lost = Tokens::of(&two.one.refresh(first.refresh()).await);
    two.set("refreshed_at = refreshed_at - interval '25 hours'")
        .await;
    refused(&two.other.refresh(first.refresh()).await);
    two.is_dead(lost.access()).await;
}

/// Catalogue: 77.
#[tokio::test]
async fn a_token_that_is_not_ones_own_changes_nothing() {
    let two = Two::start().await;
    let tokens = two.one.sign_up("ada@example.com").await;
    let newer = Tokens::of(&two.one.refresh(tokens.refresh()).await);
    let newest = Tokens::of(&two.one.refresh(newer.refresh()).await);
    assert_eq!(two.one.check(newest.access()).await.status, 200);
    let before = two.row().await;
    let another = two.service.caller(&[]);
    let browser = two.service.caller(&["--kind", "publishable"]);
    crate::harness::process::run_ok(
        &two.service.variables,
        &["tenant", "create", "--name", "other"],
    );
    let foreign = two.service.caller(&["--tenant", "other"]);
    // Not even an old one, which would end the session if its own client had sent it.
    for caller in [&another, &browser, &foreign] {
        for token in [&tokens, &newer, &newest] {
            refused(&caller.refresh(token.refresh()).await);
        }
    }
    let text = newest.refresh();
    let mut altered = text.to_owned();
    let last = if text.ends_with('A') { "B" } else { "A" };
    altered.replace_range(text.len() - 2..text.len() - 1, last);
    for token in [&altered, &text[..40], "prn_rt_", "x", newest.access()] {
        let answer = two.one.refresh(token).await;
        // What is too long to be one is told so.
        assert!([401, 422].contains(&answer.status), "{}", answer.text);
    }
    assert_eq!(two.row().await, before);
    assert_eq!(two.one.refresh(newest.refresh()).await.status, 200);

    // Over: idle for too long.
    let tokens = two.one.sign_in("ada@example.com").await;
    two.set("expires_at = now()").await;
    refused(&two.one.refresh(tokens.refresh()).await);
    assert_eq!(two.other.check(tokens.access()).await.status, 401);
}

/// A database that was set back an hour does not know the newest tokens. They are refused, and nobody is signed out.
#[tokio::test]
async fn a_database_that_was_set_back() {
    let two = Two::start().await;
    let first = two.one.sign_up("ada@example.com").await;
    let second = Tokens::of(&two.one.refresh(first.refresh()).await);
    let client = two.service.database.connect().await;
    client
        .batch_execute("CREATE TABLE backup AS SELECT * FROM sessions")
        .await
        .unwrap();
    let third = Tokens::of(&two.one.refresh(second.refresh()).await);
    let fourth = Tokens::of(&two.one.refresh(third.refresh()).await);
    let restore = "UPDATE sessions SET (generation, confirmed_generation, refreshed_at)
        = (backup.generation, backup.confirmed_generation, backup.refreshed_at) FROM backup";
    client.batch_execute(restore).await.unwrap();
    let before = two.row().await;
    for token in [&third, &fourth] {
        refused(&two.other.refresh(token.refresh()).await);
    }
    assert_eq!(two.row().await, before);
    // The token that was the current one then is that again, and access tokens go on until they end.
    assert_eq!(two.other.check(fourth.access()).await.status, 200);
    let answer = two.one.refresh(second.refresh()).await;
    assert_eq!(Tokens::of(&answer).refresh(), third.refresh());
}

/// Ten thousand refreshes leave as many rows as before, in no more space than a few pages.
#[tokio::test]
async fn ten_thousand_refreshes_add_no_row_alone() {
    let two = Two::start().await;
    let mut all = Vec::new();
    for n in 0..8 {
        all.push(two.one.sign_up(&format!("p{n}@example.com")).await);
    }
    let count = "SELECT sum((xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM ' || relname, false, true, '')))[1]::text::bigint)::bigint
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'";
    let before = two.service.count(count).await;
    let tasks: Vec<_> = all
        .into_iter()
        .enumerate()
        .map(|(n, tokens)| {
            let caller = if n % 2 == 0 {
                two.one.clone()
            } else {
                two.other.clone()
            };
            tokio::spawn(async move {
                let mut token = tokens.refresh().to_owned();
                for _ in 0..1_250 {
                    token = Tokens::of(&caller.refresh(&token).await)
                        .refresh()
                        .to_owned();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(
        two.service
            .count("SELECT sum(generation)::bigint FROM sessions")
            .await,
        10_000
    );
    assert_eq!(two.service.count(count).await, before);
    let size = two
        .service
        .count("SELECT pg_relation_size('sessions')")
        .await;
    assert!(size <= 64 * 8192, "{size} bytes for eight sessions");
}
