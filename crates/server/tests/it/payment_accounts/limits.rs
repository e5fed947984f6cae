//! Rate limits of notifications: by peer without a valid signature, by account with one.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use reqwest::Method;

use super::{TestAccount, subscription_event};
use crate::harness::{
    api::ApiClient,
    client::create_client,
    cluster::Cluster,
    process::{Server, sandbox},
    service::InProcessService,
};

const PEER_LIMIT: u32 = 50;
const SECONDS: u32 = 3;
const TOTAL: u32 = PEER_LIMIT * 10 * SECONDS;

/// Sends ten times as many requests as the limit allows, from one address: to an account with and without a signature, to
/// unknown accounts and to paths that name none. Returns how often each status was returned.
async fn send_unsigned(anonymous: &ApiClient, known: &str) -> BTreeMap<u16, u32> {
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..TOTAL {
        let (anonymous, known) = (anonymous.clone(), known.to_owned());
        requests.spawn(async move {
            let unknown = format!("/payment-notifications/pac_{:032x}", number + 1);
            let (path, signature) = match number % 4 {
                0 => (known, None),
                1 => (known, Some(format!("t=1,v1={}", "0".repeat(64)))),
                2 => (unknown, Some("x".to_owned())),
                _ => ("/payment-notifications/x".to_owned(), None),
            };
            let client = match signature {
                Some(signature) => anonymous.with("stripe-signature", &signature),
                None => anonymous,
            };
            let body = br#"{"id": "evt_2"}"#.to_vec();
            client.send(Method::POST, &path, Some(body)).await.status
        });
        tokio::time::sleep(Duration::from_secs(1) / (PEER_LIMIT * 10)).await;
    }
    let mut statuses: BTreeMap<u16, u32> = BTreeMap::new();
    for status in requests.join_all().await {
        *statuses.entry(status).or_default() += 1;
    }
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsigned_requests_above_the_peer_limit_cause_no_database_statement() {
    let cluster = Cluster::start_with_statement_log();
    let mut variables = sandbox(&cluster.url());
    variables.insert("PERENNIAL_RATE_PER_PEER", PEER_LIMIT.to_string());
    variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    let server = Server::start(&variables).await;
    let anonymous = ApiClient::new(&server.url);
    let (_, client) = create_client(&cluster.url(), &[]);
    let api = anonymous.with("client-id", &client);
    let account = TestAccount::stripe(&api, &anonymous).await;
    account.accept(&subscription_event("evt_1", "sub_1")).await;
    assert!(statements(&cluster.log()) > 0);
    assert!(cluster.log().contains("payment_accounts"));
    // What the service reads by itself: the clock of the sandbox, the master key, signing keys.
    let (logged, started_at) = (cluster.log().len(), Instant::now());
    tokio::time::sleep(Duration::from_secs(SECONDS.into())).await;
    let idle = statements(&cluster.log()[logged..]);
    let idle_rate = idle as f64 / started_at.elapsed().as_secs_f64();

    // What was cached before the first heartbeat expires, and is read once more.
    let first = account.send_with("t=1,v1=0", b"{}").await;
    assert_eq!(first.status, 401, "{}", first.text);
    // A heartbeat that is late on a busy machine makes the service read the accounts again.
    for attempts_left in (0..3).rev() {
        let (logged, started_at) = (cluster.log().len(), Instant::now());
        let statuses = send_unsigned(&anonymous, &account.path()).await;
        let log = cluster.log().split_off(logged);
        let (used, of_accounts) = (statements(&log), log.matches("payment_").count());
        let expected = idle_rate * started_at.elapsed().as_secs_f64();
        println!(
            "{statuses:?}; {used} statements, {of_accounts} of payment accounts, {expected:.0} when idle"
        );
        let is_expected = |status| [401, 404, 429].contains(status);
        assert!(statuses.keys().all(is_expected), "{statuses:?}");
        assert!(statuses[&429] > TOTAL / 2, "{statuses:?}");
        assert!((used as f64) < expected * 1.5 + 10.0, "{used}, {expected}");
        if of_accounts == 0 {
            break;
        }
        assert!(attempts_left > 0, "{log}");
    }

    // Signed notifications from the same address are accepted nevertheless.
    for number in 0..PEER_LIMIT * 3 {
        account
            .accept(&subscription_event(&format!("evt_s{number}"), "sub_1"))
            .await;
        let unsigned = account.send_with("t=1,v1=0", b"{}").await.status;
        assert!([401, 429].contains(&unsigned), "{unsigned}");
    }
}

/// Returns the number of statements in a log of PostgreSQL.
fn statements(log: &str) -> usize {
    let is_statement =
        |line: &&str| line.contains("LOG:  execute") || line.contains("LOG:  statement");
    log.lines().filter(is_statement).count()
}

#[tokio::test]
async fn signed_notifications_are_limited_by_account() {
    let service = InProcessService::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_CLIENT", "20".to_owned());
    })
    .await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let other = TestAccount::stripe(&api, &service.anonymous()).await;
    let mut limited = None;
    for number in 0..200 {
        let event = subscription_event(&format!("evt_{number}"), "sub_1").to_string();
        let response = account.send(event.as_bytes()).await;
        if response.status == 429 {
            limited = Some(response);
            break;
        }
    }
    let limited = limited.expect("the account is limited");
    limited.assert_problem(429, "rate_limited");
    assert!(limited.text.contains("payment account"), "{}", limited.text);
    other.accept(&subscription_event("evt_1", "sub_1")).await;
}
