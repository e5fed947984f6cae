//! A server that is killed while it receives notifications.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{TestAccount, subscription_event};
use crate::harness::{env_number, service::Service};

/// Sends notifications until `stop`, and stores the event ids of those that were acknowledged.
async fn send(
    account: TestAccount,
    numbers: Arc<AtomicU64>,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let id = format!("evt_{number}");
        let event = subscription_event(&id, &format!("sub_{}", number % 7)).to_string();
        let signature = account.sign(event.as_bytes());
        let client = account.anonymous.with(account.header(), &signature);
        let body = Some(event.into_bytes());
        let response = client
            .try_send(reqwest::Method::POST, &account.path(), body)
            .await;
        match response {
            Ok(response) if response.status == 200 => {
                acknowledged.lock().unwrap().insert(id);
            }
            Ok(response) => assert_eq!(response.status, 503, "{}", response.text),
            // The server was killed.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// `KILLS` sets the number of SIGKILLs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_loses_no_acknowledged_notification() {
    let kills = env_number("KILLS").unwrap_or(5_u32);
    let mut service = Service::start().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let numbers = Arc::new(AtomicU64::new(0));
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let (account, stop) = (account.clone(), stop.clone());
            tokio::spawn(send(account, numbers.clone(), acknowledged.clone(), stop))
        })
        .collect();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(300)).await;
        service.server.restart(&service.variables).await;
    }
    stop.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.await.unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    let database = service.database.connect().await;
    let stored = "SELECT event_id FROM payment_notifications";
    let stored: Vec<String> = { database.query(stored, &[]).await.unwrap() }
        .iter()
        .map(|row| row.get(0))
        .collect();
    let unique: BTreeSet<String> = stored.iter().cloned().collect();
    assert_eq!(stored.len(), unique.len(), "each event is stored once");
    let lost: Vec<&String> = acknowledged.difference(&unique).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    // Each stored notification has marked its object, in the same transaction.
    let wanted = service
        .count("SELECT sum(wanted)::bigint FROM payment_objects")
        .await;
    assert_eq!(usize::try_from(wanted).unwrap(), stored.len());
    println!(
        "{kills} kills, {} acknowledged, {} stored",
        acknowledged.len(),
        stored.len()
    );
}
