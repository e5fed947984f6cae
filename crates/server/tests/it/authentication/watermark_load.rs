//! Ending very many sessions: they are refused everywhere within a second, a user with many sessions
//! ends them within two, and session checks of other users are not slower meanwhile.
//!
//! `SESSIONS` sets the number of sessions, 100 per user. `just prove mass-revocation` uses 1,000,000 and a release
//! build, and limits the slowdown of checks. The default only shows that it works.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use reqwest::Method;
use tokio_postgres::Client;

use crate::harness::{
    api::ApiClient,
    client::create_client,
    cluster::Cluster,
    database::connect,
    env_number,
    in_process::InProcessServer,
    process::{Process, Server, Variables, run_ok, sandbox},
    raw_connection::send_at_rate,
    service::Service,
    stored_sessions::{insert_sessions, issue_access_tokens},
    wait_until,
};

const ISSUER: &str = "https://compromised.example";

/// Returns the number of sessions, and whether to check times.
fn sessions() -> (i64, bool) {
    env_number("SESSIONS").map_or((5_000, false), |number| (number, true))
}

/// Two instances without workers on a private cluster, and an instance in this process that issues
/// access tokens for sessions that SQL has inserted.
struct LoadFixture {
    cluster: Cluster,
    variables: Variables,
    servers: [Server; 2],
    apis: [ApiClient; 2],
    issuing: InProcessServer,
    database: Client,
    client: String,
}

impl LoadFixture {
    async fn start() -> Self {
        let cluster = Cluster::start_for_measurement();
        let mut variables = sandbox(&cluster.url());
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
        variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "http://perennial.example".to_owned(),
        );
        let servers = [
            Server::start(&variables).await,
            Server::start(&variables).await,
        ];
        let (_, client) = create_client(&cluster.url(), &[]);
        let api = |server: &Server| ApiClient::new(&server.url).with("client-id", &client);
        Self {
            apis: [api(&servers[0]), api(&servers[1])],
            issuing: InProcessServer::start(&variables).await,
            database: connect(&cluster.url()).await,
            cluster,
            variables,
            servers,
            client,
        }
    }

    /// Returns access tokens for sessions of the issuer.
    async fn tokens(&self, issuer: &str, number: i64) -> Vec<String> {
        issue_access_tokens(&self.issuing.app, &self.database, issuer, number).await
    }

    /// Checks all tokens on both instances. Returns the times at which accepted checks were sent.
    async fn accepted(&self, tokens: &[String]) -> Vec<Timestamp> {
        let check = async |api: &ApiClient| {
            let mut accepted = Vec::new();
            for token in tokens {
                let sent_at = Timestamp::now();
                match api.check(token).await.status {
                    200 => accepted.push(sent_at),
                    401 => {}
                    status => panic!("{status}"),
                }
            }
            accepted
        };
        let (first, second) = tokio::join!(check(&self.apis[0]), check(&self.apis[1]));
        [first, second].concat()
    }

    /// Runs `perennial session revoke` while the tokens are checked. Returns how long after the
    /// watermark the last one was accepted.
    async fn time_to_refuse(&self, arguments: &[&str], scope: &str, tokens: &[String]) -> Duration {
        for _ in 0..2 {
            assert_eq!(self.accepted(tokens).await.len(), 2 * tokens.len());
        }
        let arguments = [&["session", "revoke", "--yes"], arguments].concat();
        let (variables, mut last_accepted) = (self.variables.clone(), Timestamp::now());
        let revoke = async {
            let owned: Vec<String> = arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect();
            let run = move || {
                let arguments: Vec<&str> = owned.iter().map(String::as_str).collect();
                run_ok(&variables, &arguments)
            };
            tokio::task::spawn_blocking(run).await.unwrap()
        };
        let check = async {
            loop {
                match self.accepted(tokens).await.into_iter().max() {
                    Some(sent_at) => last_accepted = sent_at,
                    None => return last_accepted,
                }
            }
        };
        let started = Instant::now();
        let (output, last_accepted) = tokio::join!(revoke, check);
        let sql = "SELECT set_at FROM session_watermarks WHERE scope = $1";
        let set_at: Timestamp = self
            .database
            .query_one(sql, &[&scope])
            .await
            .unwrap()
            .get(0);
        let late = last_accepted.duration_since(set_at);
        println!(
            "{arguments:?}: {}, in {:.2?}; last accepted {late:.0?} after the watermark",
            output.trim(),
            started.elapsed()
        );
        late.unsigned_abs() * u32::from(late.is_positive())
    }

    async fn count(&self, query: &str) -> i64 {
        self.database.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Returns requests that check sessions of another issuer.
    async fn checks(&self, number: usize) -> Arc<Vec<Vec<u8>>> {
        self.apis[0].sign_up("ada@example.com").await;
        let mut requests = Vec::new();
        for _ in 0..number {
            let tokens = self.apis[0].sign_in("ada@example.com").await;
            let request = format!(
                "POST /authentication/user-logged-in HTTP/1.1\r\nhost: x\r\nclient-id: {}\r\nauthorization: Bearer {}\r\n\r\n",
                self.client,
                tokens.access()
            );
            requests.push(request.into_bytes());
        }
        Arc::new(requests)
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

const LEFT: &str = "SELECT count(*) FROM sessions WHERE ended_at IS NULL AND issuer = 'https://compromised.example'";

#[tokio::test]
async fn very_many_sessions_end_within_a_second_without_slowing_checks() {
    let (sessions, timed) = sessions();
    let (rate, time, probes) = if timed { (500, 10, 300) } else { (100, 1, 20) };
    let time = Duration::from_secs(time);
    let fixture = LoadFixture::start().await;
    let started = Instant::now();
    insert_sessions(&fixture.database, sessions, ISSUER).await;
    println!("{sessions} sessions in {:.0?}", started.elapsed());
    let requests = fixture.checks(if timed { 90 } else { 20 }).await;

    let tokens = fixture.tokens(ISSUER, probes).await;
    let late = fixture
        .time_to_refuse(&["--issuer", ISSUER], &format!("issuer:{ISSUER}"), &tokens)
        .await;
    assert!(late < Duration::from_secs(1), "{late:?}");
    assert_eq!(fixture.count(LEFT).await, sessions, "no worker runs");

    // Alternately without and with a worker that ends the rows.
    let url = &fixture.servers[0].url;
    send_at_rate(url, &requests, rate, time / 2).await;
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    let rounds = if timed { 5 } else { 1 };
    for round in 1..=rounds {
        let (_, without) = send_at_rate(url, &requests, rate, time).await;
        let before = fixture.count(LEFT).await;
        let worker = Process::spawn(&fixture.variables, &["work"]);
        let (_, with) = send_at_rate(url, &requests, rate, time).await;
        drop(worker);
        let left = fixture.count(LEFT).await;
        println!(
            "round {round}: p99 {without:.2?} idle, {with:.2?} while {} rows ended",
            before - left
        );
        if timed {
            assert!(
                left < before,
                "nothing ended while checks were sent; use more sessions"
            );
        }
        idle.push(without);
        busy.push(with);
    }
    let (idle, busy) = (median(idle), median(busy));
    println!("median p99 of {rounds} rounds: {idle:.2?} idle, {busy:.2?} while sessions end");
    let started = Instant::now();
    let worker = Process::spawn(&fixture.variables, &["work"]);
    let limit = Duration::from_mins(20);
    wait_until("the rows end", limit, async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        fixture.count(LEFT).await == 0
    })
    .await;
    println!("the other rows ended after {:.0?}", started.elapsed());
    let event = "SELECT count(*) FROM events WHERE kind = 'tenant.sessions_revoked'";
    wait_until("the event is recorded", limit, async || {
        fixture.count(event).await == 1
    })
    .await;
    let counted =
        "SELECT (data->>'count')::bigint FROM events WHERE kind = 'tenant.sessions_revoked'";
    assert_eq!(fixture.count(counted).await, sessions);
    drop(worker);

    insert_sessions(&fixture.database, sessions, "https://other.example").await;
    let tokens = fixture.tokens("https://other.example", probes).await;
    let late = fixture
        .time_to_refuse(&["--all"], "installation", &tokens)
        .await;
    assert!(late < Duration::from_secs(1), "{late:?}");
    let again = fixture.apis[0].sign_in("ada@example.com").await;
    for api in &fixture.apis {
        assert_eq!(api.check(again.access()).await.status, 200);
    }
    if timed {
        let ratio = busy.as_secs_f64() / idle.as_secs_f64();
        assert!(ratio < 2.0, "p99: {ratio:.2} times as long");
    }
    drop(fixture.cluster);
}

/// Inserts 10,000 active sessions of a user.
async fn insert_sessions_of(database: &Client, email: &str) {
    let sql = format!(
        "INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, salt, generation, confirmed_generation,
            refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id)
         SELECT tenant_id, gen_random_uuid(), id, gen_random_uuid(), 'https://old.example', '203.0.113.7',
            decode(md5(n::text), 'hex'), 0, 0, old, old, old, now() + interval '9 days',
            nextval('session_numbers'), 0
         FROM users, generate_series(1, 10000) AS n,
            LATERAL (SELECT now() - interval '5 days' - n * interval '1 second' AS old) AS times
         WHERE email = '{email}'"
    );
    assert_eq!(database.execute(&sql, &[]).await.unwrap(), 10_000);
}

#[tokio::test]
async fn user_with_ten_thousand_sessions_ends_them_within_two_seconds() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let database = service.database.connect().await;
    let within = |what: &str, started: Instant| {
        let took = started.elapsed();
        println!("{what}: {took:.0?}");
        assert!(took < Duration::from_secs(2), "{what}: {took:?}");
    };
    let left = "SELECT count(*) FROM sessions WHERE ended_at IS NULL";

    api.sign_up("ada@example.com").await;
    for (path, kept) in [("revoke-all", 0), ("revoke-all-except-current", 1)] {
        insert_sessions_of(&database, "ada@example.com").await;
        // Ends 100 of the sessions beyond the limit.
        let started = Instant::now();
        let tokens = api.sign_in("ada@example.com").await;
        within("sign-in", started);
        let one_event = format!(
            "SELECT count(*) FROM events WHERE data->>'reason' = '{}'",
            path.replace('-', "_")
        );
        let path = format!("/authentication/tokens/{path}");
        let bearer = api.with_bearer(tokens.access());
        let started = Instant::now();
        let response = bearer.try_send(Method::POST, &path, None).await.unwrap();
        within(&path, started);
        assert_eq!(response.status, 200, "{}", response.text);
        assert!(response.json()["revoked"].as_i64().unwrap() > 9_800);
        assert_eq!(service.count(&one_event).await, 1);
        assert_eq!(
            api.check(tokens.access()).await.status,
            if kept == 1 { 200 } else { 401 }
        );
        wait_until("the rows end", Duration::from_secs(20), async || {
            service.count(left).await == kept
        })
        .await;
    }

    api.sign_up("bob@example.com").await;
    insert_sessions_of(&database, "bob@example.com").await;
    let started = Instant::now();
    let output = run_ok(
        &service.variables,
        &["user", "erase", "bob@example.com", "--yes"],
    );
    within("user erase", started);
    assert!(output.contains("10001 sessions"), "{output}");

    let cyd = api.sign_up("cyd@example.com").await;
    insert_sessions_of(&database, "cyd@example.com").await;
    let path = format!("/authentication/delete-my-account/{}", cyd.user());
    let bearer = api.with_bearer(cyd.access());
    let started = Instant::now();
    let response = bearer.try_send(Method::DELETE, &path, None).await.unwrap();
    within("delete-my-account", started);
    assert_eq!(response.status, 204, "{}", response.text);
    assert_eq!(api.check(cyd.access()).await.status, 401);
    let erased = "SELECT count(*) FROM sessions JOIN users ON users.id = user_id WHERE erased_at IS NOT NULL";
    assert_eq!(
        service.count(erased).await,
        0,
        "with their addresses and devices"
    );
}
