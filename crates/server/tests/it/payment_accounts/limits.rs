//! Rate limits of notifications: by peer without a valid signature, by account with one.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use reqwest::Method;

use super::{TestAccount, subscription_event};
use crate::harness::service::{InProcessService, Service};

const PEER_LIMIT: u32 = 50;
const SECONDS: u32 = 3;

/// Ten times the limit, from one address: to an account with and without a signature, to unknown accounts and to paths that
/// name none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsigned_requests_above_the_peer_limit_cause_no_database_statement() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_PEER", PEER_LIMIT.to_string());
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    let (api, anonymous) = (service.api(&[]), service.anonymous());
    let account = TestAccount::stripe(&api, &anonymous).await;
    account.accept(&subscription_event("evt_1", "sub_1")).await;
    let uses = async || {
        let server = &service.server;
        server.database_uses("pool").await + server.database_uses("lane").await
    };
    // What the service reads by itself: the clock of the sandbox, the master key, signing keys.
    let idle_start = uses().await;
    let started = Instant::now();
    tokio::time::sleep(Duration::from_secs(SECONDS.into())).await;
    let idle_rate = (uses().await - idle_start) as f64 / started.elapsed().as_secs_f64();
    let (before, started) = (uses().await, Instant::now());
    let mut requests = tokio::task::JoinSet::new();
    let total = PEER_LIMIT * 10 * SECONDS;
    for number in 0..total {
        let (anonymous, known) = (anonymous.clone(), account.path());
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
    let count = (uses().await - before) as f64;
    let expected = idle_rate * started.elapsed().as_secs_f64();
    println!("{statuses:?}; {count} database uses, {expected:.0} when idle");
    assert!(
        statuses
            .keys()
            .all(|status| [401, 404, 429].contains(status))
    );
    assert!(statuses[&429] > total / 2, "{statuses:?}");
    // The accounts may be read again if a heartbeat is late, but not for each request.
    assert!(count < expected * 1.5 + 10.0, "{count}, {expected}");

    // Signed notifications from the same address are accepted nevertheless.
    for number in 0..PEER_LIMIT * 3 {
        account
            .accept(&subscription_event(&format!("evt_s{number}"), "sub_1"))
            .await;
        let unsigned = account.send_with("t=1,v1=0", b"{}").await.status;
        assert!([401, 429].contains(&unsigned), "{unsigned}");
    }
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
