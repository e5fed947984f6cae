//! An orderly end: not one request is lost, whatever is going on.

use std::{
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    harness::{api::Api, process::Server, service::Service, wait_until},
    subscription_plans::minimal,
};

/// Two instances take turns being told to stop, twenty times, under a load of reads and writes that is
/// sent, as a load balancer would, to whichever instance says that it is ready. Each request is sent once,
/// with no second try.
#[tokio::test]
async fn told_to_stop_twenty_times_under_load_alone() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_DRAIN_SECONDS", "1".to_owned());
    })
    .await;
    let (_, client_id) = service.make_client(&[]);
    let first = service.anonymous().with("client-id", &client_id);
    assert_eq!(
        first
            .post("/subscription-plans", &minimal("read").to_string())
            .await
            .status,
        201
    );

    let mut servers = [
        Server::start(&service.variables).await,
        Server::start(&service.variables).await,
    ];
    let ready = Arc::new(RwLock::new(Vec::new()));
    let caller = |server: &Server| Api::new(&server.url).with("client-id", &client_id);
    let send_to = |callers: Vec<Api>| *ready.write().unwrap() = callers;
    send_to(servers.iter().map(caller).collect());

    let (over, count, written) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicU64::new(0)),
    );
    let load: Vec<_> = (0..8)
        .map(|worker: usize| {
            let (ready, over, count, written) =
                (ready.clone(), over.clone(), count.clone(), written.clone());
            tokio::spawn(async move {
                let mut turn = worker;
                while !over.load(Ordering::Relaxed) {
                    turn += 1;
                    let caller: Api = {
                        let ready = ready.read().unwrap();
                        ready[turn % ready.len()].clone()
                    };
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    if worker < 2 {
                        let body = minimal(&format!("w{number}")).to_string();
                        let json = caller.with("content-type", "application/json");
                        let answer = json
                            .try_send(
                                reqwest::Method::POST,
                                "/subscription-plans",
                                Some(body.into_bytes()),
                            )
                            .await;
                        assert_eq!(
                            answer.unwrap_or_else(|error| panic!("{error:?}")).status,
                            201
                        );
                        written.fetch_add(1, Ordering::Relaxed);
                    } else {
                        let answer = caller
                            .try_send(reqwest::Method::GET, "/subscription-plans/read", None)
                            .await;
                        assert_eq!(
                            answer.unwrap_or_else(|error| panic!("{error:?}")).status,
                            200
                        );
                    }
                }
            })
        })
        .collect();

    for round in 0..20 {
        let index = round % 2;
        let others = vec![caller(&servers[1 - index])];
        let stopping = &mut servers[index];
        let admin_url = stopping.admin_url.clone();
        let noticed = async {
            // A load balancer that asks every 100 ms.
            wait_until("readiness goes off", Duration::from_secs(2), async || {
                tokio::time::sleep(Duration::from_millis(90)).await;
                let answer = reqwest::get(format!("{admin_url}/readyz")).await;
                answer.is_ok_and(|answer| answer.status() == 503)
            })
            .await;
            send_to(others);
        };
        let (ended_well, ()) = tokio::join!(stopping.process.stop(), noticed);
        assert!(ended_well, "{}", stopping.process.log());
        assert!(
            !stopping.process.log().contains("cut off"),
            "{}",
            stopping.process.log()
        );
        *stopping = Server::start(&service.variables).await;
        send_to(servers.iter().map(caller).collect());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    over.store(true, Ordering::Relaxed);
    for worker in load {
        worker.await.unwrap();
    }
    let sent = count.load(Ordering::Relaxed);
    let stored = service
        .count("SELECT count(*) FROM subscription_plans")
        .await;
    assert_eq!(stored as u64, written.load(Ordering::Relaxed) + 1);
    println!(
        "{sent} requests, {} of them writes, none lost",
        written.load(Ordering::Relaxed)
    );
    assert!(sent > 2_000, "only {sent} requests were sent");
}
