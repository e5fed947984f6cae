//! Health endpoints, metrics, request ids, and timeouts of incomplete requests.

use crate::harness::{
    process::{Server, http_get, sandbox},
    service::Service,
};

#[tokio::test]
async fn server_without_database_is_live_but_not_ready() {
    let server = Server::spawn(&sandbox("postgres://127.0.0.1:1/nothing"));
    server.wait_for_ok("/livez").await;
    let (status, output) = server.admin("/readyz").await.unwrap();
    assert_eq!(
        (status, output.as_str()),
        (503, "waiting for the database\n")
    );
    assert_eq!(
        server.admin("/livez").await.unwrap(),
        (200, "ok\n".to_owned())
    );
}

#[tokio::test]
async fn request_metrics_are_labeled_by_route() {
    let service = Service::start().await;
    let api = service.api(&[]);
    for slug in ["one", "two"] {
        api.get(&format!("/subscription-plans/{slug}")).await;
    }
    api.get("/nothing").await;
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    let counted = r#"perennial_http_request_seconds_count{method="GET",route="/subscription-plans/{slug}",status="404"} 2"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.contains(r#"route="(none)""#));
    assert!(
        metrics.contains(r#"perennial_database_lanes_open{cell="home"} 2"#),
        "{metrics}"
    );
    assert!(!metrics.contains("/one") && !metrics.contains("/nothing"));
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let service = Service::start_in_process().await;
    let anonymous = service.anonymous();
    let created = anonymous.get("/nothing").await;
    assert!(
        created.header("x-request-id").starts_with("req_"),
        "{}",
        created.header("x-request-id")
    );
    assert!(!created.header("api-version").is_empty());
    let echoed = anonymous
        .with("x-request-id", "A.b_c-9")
        .get("/nothing")
        .await;
    assert_eq!(echoed.header("x-request-id"), "A.b_c-9");
    for invalid in ["", "a b", "é", &"x".repeat(129), "{{}}"] {
        let response = anonymous
            .with("x-request-id", invalid)
            .get("/nothing")
            .await;
        assert!(
            response.header("x-request-id").starts_with("req_"),
            "{invalid}"
        );
    }
}

/// Other requests are served meanwhile.
#[tokio::test]
async fn incomplete_header_times_out() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let service = Service::start().await;
    let address = service.server.url.replace("http://", "");
    let mut slow = tokio::net::TcpStream::connect(&address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nhos").await.unwrap();
    assert_eq!(service.anonymous().get("/nothing").await.status, 404);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(
        std::time::Duration::from_secs(12),
        slow.read_to_end(&mut rest),
    )
    .await;
    assert!(ended.is_ok(), "still open after 12 s");
}

#[tokio::test]
async fn incomplete_body_times_out() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let service = Service::start().await;
    let (_, value) = service.create_client(&[]);
    let address = service.server.url.replace("http://", "");
    let mut slow = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST /subscription-plans HTTP/1.1\r\nhost: x\r\nclient-id: {value}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    slow.write_all(request.as_bytes()).await.unwrap();
    let mut response = vec![0; 12];
    let limit = std::time::Duration::from_secs(12);
    let read = tokio::time::timeout(limit, slow.read_exact(&mut response)).await;
    assert!(read.is_ok(), "no response after 12 s");
    assert_eq!(response, b"HTTP/1.1 408");
}

/// Readiness reports the stop while a request is still running.
#[tokio::test]
async fn stopping_server_is_not_ready() {
    use tokio::io::AsyncWriteExt;
    let mut service = Service::start().await;
    let address = service.server.url.replace("http://", "");
    let (_, value) = service.create_client(&[]);
    let mut unfinished = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST /subscription-plans HTTP/1.1\r\nhost: x\r\nclient-id: {value}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    unfinished.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let admin_url = service.server.admin_url.clone();
    let (stopped, readiness) = tokio::join!(service.server.process.stop(), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        http_get(&admin_url, "/readyz").await.unwrap()
    });
    assert_eq!(readiness, (503, "stopping\n".to_owned()));
    assert!(stopped, "{}", service.server.process.log());
}
