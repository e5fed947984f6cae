//! Traces, as a collector receives them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    harness::{free_port, service::Service, wait_until},
    subscription_plans::minimal,
};

/// Takes what is posted to it; answers where, and all bytes so far.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let received = Arc::new(Mutex::new(Vec::new()));
    let all = received.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let all = all.clone();
            tokio::spawn(async move {
                let mut bytes = [0; 8_192];
                while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                    all.lock().unwrap().extend_from_slice(&bytes[..length]);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                }
            });
        }
    });
    (format!("http://127.0.0.1:{port}"), received)
}

fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

#[tokio::test]
async fn a_request_and_its_statements_under_the_callers_trace() {
    let (endpoint, received) = collector().await;
    let mut service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_OTLP_ENDPOINT", endpoint);
    })
    .await;
    let (_, client_id) = service.make_client(&[]);
    let caller = service
        .anonymous()
        .with("client-id", &client_id)
        .with(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        .with("x-request-id", "traced-request");
    let mut plan = minimal("traced");
    plan["name"] = "traced-plan-name".into();
    let made = caller.post("/subscription-plans", &plan.to_string()).await;
    assert_eq!(made.status, 201);
    assert_eq!(caller.get("/subscription-plans/nothing").await.status, 404);
    // What was not sent yet is sent at the end.
    assert!(service.server.process.stop().await);
    let all = || received.lock().unwrap().clone();
    wait_until("the spans arrive", Duration::from_secs(10), async || {
        holds(&all(), b"commit")
    })
    .await;
    let all = all();
    for expected in [
        b"POST /v1/traces".as_slice(),
        b"POST /subscription-plans",
        b"GET /subscription-plans/{slug}",
        b"traced-request",
        b"INSERT INTO subscription_plans",
        // The caller's trace goes on.
        b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c",
        b"\xb7\xad\x6b\x71\x69\x20\x33\x31",
    ] {
        assert!(
            holds(&all, expected),
            "{}",
            String::from_utf8_lossy(expected)
        );
    }
    for secret in [client_id.as_bytes(), b"traced-plan-name"] {
        assert!(!holds(&all, secret));
    }
}

/// A collector that is away takes nothing with it.
#[tokio::test]
async fn a_collector_that_is_away() {
    let mut service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_OTLP_ENDPOINT", "http://127.0.0.1:1".to_owned());
    })
    .await;
    let caller = service.caller(&[]);
    for _ in 0..20 {
        assert_eq!(caller.get("/subscription-plans").await.status, 200);
    }
    assert!(service.server.process.stop().await);
}
