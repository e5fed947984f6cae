//! Graceful shutdown: no request is lost while instances restart.

use std::{
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    harness::{
        api::ApiClient,
        env_number,
        process::{Server, http_get},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

/// Two instances restart in turn under reads and writes, which go, as with a load balancer, to an instance
/// that is ready. No request is retried. `RESTARTS` sets how many; `just prove rolling-restarts` uses 20.
#[tokio::test]
async fn restarts_under_load_lose_no_request() {
    let restarts = env_number("RESTARTS").unwrap_or(6);
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_DRAIN_SECONDS", "1".to_owned());
    })
    .await;
    let (_, client_id) = service.create_client(&[]);
    let first = service.anonymous().with("client-id", &client_id);
    assert_eq!(
        first
            .post("/subscription-plans", &minimal_plan("read").to_string())
            .await
            .status,
        201
    );

    let mut servers = [
        Server::start(&service.variables).await,
        Server::start(&service.variables).await,
    ];
    let ready = Arc::new(RwLock::new(Vec::new()));
    let api = |server: &Server| ApiClient::new(&server.url).with("client-id", &client_id);
    let send_to = |clients: Vec<ApiClient>| *ready.write().unwrap() = clients;
    send_to(servers.iter().map(api).collect());

    let (done, count, written) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicU64::new(0)),
    );
    let load: Vec<_> = (0..8)
        .map(|worker: usize| {
            let (ready, done, count, written) =
                (ready.clone(), done.clone(), count.clone(), written.clone());
            tokio::spawn(async move {
                let mut turn = worker;
                while !done.load(Ordering::Relaxed) {
                    turn += 1;
                    let api: ApiClient = {
                        let ready = ready.read().unwrap();
                        ready[turn % ready.len()].clone()
                    };
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    if worker < 2 {
                        let body = minimal_plan(&format!("w{number}")).to_string();
                        let json = api.with("content-type", "application/json");
                        let response = json
                            .try_send(
                                reqwest::Method::POST,
                                "/subscription-plans",
                                Some(body.into_bytes()),
                            )
                            .await;
                        assert_eq!(
                            response.unwrap_or_else(|error| panic!("{error:?}")).status,
                            201
                        );
                        written.fetch_add(1, Ordering::Relaxed);
                    } else {
                        let response = api
                            .try_send(reqwest::Method::GET, "/subscription-plans/read", None)
                            .await;
                        assert_eq!(
                            response.unwrap_or_else(|error| panic!("{error:?}")).status,
                            200
                        );
                    }
                }
            })
        })
        .collect();

    for round in 0..restarts {
        let index = round % 2;
        let others = vec![api(&servers[1 - index])];
        let stopping = &mut servers[index];
        let admin_url = stopping.admin_url.clone();
        let update_targets = async {
            // A readiness check about every 100 ms.
            wait_until(
                "the instance is not ready",
                Duration::from_secs(2),
                async || {
                    tokio::time::sleep(Duration::from_millis(90)).await;
                    let response = http_get(&admin_url, "/readyz").await;
                    response.is_ok_and(|(status, _)| status == 503)
                },
            )
            .await;
            send_to(others);
        };
        let (stopped, ()) = tokio::join!(stopping.process.stop(), update_targets);
        assert!(stopped, "{}", stopping.process.log());
        assert!(
            !stopping.process.log().contains("cut off"),
            "{}",
            stopping.process.log()
        );
        *stopping = Server::start(&service.variables).await;
        send_to(servers.iter().map(api).collect());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    done.store(true, Ordering::Relaxed);
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
    let expected = restarts as u64 * 100;
    assert!(sent > expected, "only {sent} requests were sent");
}

/// A client can connect at the last instant before the listener is closed. Its request must not be lost.
#[tokio::test]
async fn connection_without_a_request_is_served_during_the_shutdown() {
    let service = Service::start().await;
    let mut server = Server::start(&service.variables).await;
    let address = server.url.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    // Accepted after the first one, so its response proves that the service has accepted both.
    assert_eq!(http_get(&server.url, "/openapi.json").await.unwrap().0, 200);
    let (stopped, response) = tokio::join!(server.process.stop(), async {
        let is_closed = async || TcpStream::connect(&address).await.is_err();
        wait_until("the listener is closed", Duration::from_secs(10), is_closed).await;
        let request = format!("GET /openapi.json HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    });
    assert!(stopped, "{}", server.process.log());
    assert!(response.starts_with("HTTP/1.1 200"), "{response:.200}");
}
