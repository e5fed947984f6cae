//! Traces, as an OTLP collector receives them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    harness::{reserve_port, service::Service, wait_until},
    subscription_plans::minimal_plan,
};

/// Starts a collector and returns its URL and all bytes that it receives.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let port = reserve_port();
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
                    let response = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
                    let _ = stream.write_all(response).await;
                }
            });
        }
    });
    (format!("http://127.0.0.1:{port}"), received)
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

#[tokio::test]
async fn spans_continue_the_callers_trace() {
    let (endpoint, received) = collector().await;
    let mut service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_OTLP_ENDPOINT", endpoint);
    })
    .await;
    let (_, client_id) = service.create_client(&[]);
    let api = service
        .anonymous()
        .with("client-id", &client_id)
        .with(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        .with("x-request-id", "traced-request");
    let mut plan = minimal_plan("traced");
    plan["name"] = "traced-plan-name".into();
    let created = api.post("/subscription-plans", &plan.to_string()).await;
    assert_eq!(created.status, 201);
    assert_eq!(api.get("/subscription-plans/nothing").await.status, 404);
    // Pending spans are sent on shutdown.
    assert!(service.server.process.stop().await);
    let all = || received.lock().unwrap().clone();
    wait_until("the spans arrive", Duration::from_secs(10), async || {
        contains(&all(), b"commit")
    })
    .await;
    let all = all();
    for expected in [
        b"POST /v1/traces".as_slice(),
        b"POST /subscription-plans",
        b"GET /subscription-plans/{slug}",
        b"traced-request",
        b"INSERT INTO subscription_plans",
        // The client's trace and span ids.
        b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c",
        b"\xb7\xad\x6b\x71\x69\x20\x33\x31",
    ] {
        assert!(
            contains(&all, expected),
            "{}",
            String::from_utf8_lossy(expected)
        );
    }
    for secret in [client_id.as_bytes(), b"traced-plan-name"] {
        assert!(!contains(&all, secret));
    }
}

#[tokio::test]
async fn unreachable_collector_does_not_affect_requests() {
    let mut service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_OTLP_ENDPOINT", "http://127.0.0.1:1".to_owned());
    })
    .await;
    let api = service.api(&[]);
    for _ in 0..20 {
        assert_eq!(api.get("/subscription-plans").await.status, 200);
    }
    assert!(service.server.process.stop().await);
}
