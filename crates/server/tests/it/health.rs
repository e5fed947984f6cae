//! `/livez`, `/readyz` and `/metrics`, as a supervisor sees them; request ids, and what every answer
//! carries.

use crate::harness::{
    process::{Server, sandbox},
    service::Service,
};

#[tokio::test]
async fn alive_but_not_ready_without_a_database() {
    let server = Server::spawn(&sandbox("postgres://127.0.0.1:1/nothing"));
    server.wait_for("/livez").await;
    let (status, said) = server.admin("/readyz").await.unwrap();
    assert_eq!((status, said.as_str()), (503, "waiting for the database\n"));
    assert_eq!(
        server.admin("/livez").await.unwrap(),
        (200, "ok\n".to_owned())
    );
}

#[tokio::test]
async fn metrics_by_matched_path() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    for slug in ["one", "two"] {
        caller.get(&format!("/subscription-plans/{slug}")).await;
    }
    caller.get("/nothing").await;
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
async fn every_answer_has_a_request_id() {
    let service = Service::start().await;
    let anonymous = service.anonymous();
    let made = anonymous.get("/nothing").await;
    assert!(
        made.header("x-request-id").starts_with("req_"),
        "{}",
        made.header("x-request-id")
    );
    assert!(!made.header("api-version").is_empty());
    let echoed = anonymous
        .with("x-request-id", "A.b_c-9")
        .get("/nothing")
        .await;
    assert_eq!(echoed.header("x-request-id"), "A.b_c-9");
    for unfit in ["", "a b", "é", &"x".repeat(129), "{{}}"] {
        let answer = anonymous.with("x-request-id", unfit).get("/nothing").await;
        assert!(answer.header("x-request-id").starts_with("req_"), "{unfit}");
    }
}

#[tokio::test]
async fn other_methods_are_told_which_there_are() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    for (path, method, allow) in [
        (
            "/subscription-plans",
            reqwest::Method::PATCH,
            "GET,HEAD,POST",
        ),
        (
            "/subscription-plans/x",
            reqwest::Method::POST,
            "GET,HEAD,PUT,DELETE",
        ),
    ] {
        let answer = caller.try_send(method, path, None).await.unwrap();
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (405, "method_not_allowed")
        );
        assert_eq!(answer.header("allow"), allow);
    }
}

/// Half a header does not hold a connection for ever, and the others are served meanwhile.
#[tokio::test]
async fn half_a_header_is_cut_off() {
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

/// Half a body neither.
#[tokio::test]
async fn half_a_body_is_given_up() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let service = Service::start().await;
    let (_, value) = service.make_client(&[]);
    let address = service.server.url.replace("http://", "");
    let mut slow = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST /subscription-plans HTTP/1.1\r\nhost: x\r\nclient-id: {value}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    slow.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    let limit = std::time::Duration::from_secs(12);
    let read = tokio::time::timeout(limit, slow.read_exact(&mut answer)).await;
    assert!(read.is_ok(), "no answer after 12 s");
    assert_eq!(answer, b"HTTP/1.1 408");
}

/// Whoever watches readiness learns of a stop while requests are still being finished.
#[tokio::test]
async fn readiness_is_off_while_stopping() {
    use tokio::io::AsyncWriteExt;
    let mut service = Service::start().await;
    let address = service.server.url.replace("http://", "");
    let (_, value) = service.make_client(&[]);
    let mut unfinished = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST /subscription-plans HTTP/1.1\r\nhost: x\r\nclient-id: {value}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    unfinished.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let admin_url = service.server.admin_url.clone();
    let (ended_well, said) = tokio::join!(service.server.process.stop(), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let answer = reqwest::get(format!("{admin_url}/readyz")).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    });
    assert_eq!(said, (503, "stopping\n".to_owned()));
    assert!(ended_well, "{}", service.server.process.log());
}
