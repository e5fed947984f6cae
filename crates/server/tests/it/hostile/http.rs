//! Requests that are strange as requests: their headers, methods, paths and parameters.

use reqwest::Method;

use super::target::{PLANS, Target};
use crate::{harness::service::Service, subscription_plans::minimal};

/// Catalogue: 53.
#[tokio::test]
async fn clients_that_are_none() {
    let target = Target::start().await;
    let anonymous = target.service.anonymous();
    let value = &target.client_id;
    let mut answers = Vec::new();
    for caller in [
        anonymous.clone(),
        anonymous.with("client-id", ""),
        anonymous.with("client-id", "unknown"),
        anonymous.with("client-id", &"x".repeat(10_000)),
        anonymous.with("client-id", &format!("{value}x")),
        anonymous.with("client-id", &value[1..]),
        anonymous.with("client-id", &value.to_uppercase()),
        anonymous.with("client-id", "' OR 1=1 --"),
        anonymous.with("client-id", value).with("client-id", value),
        anonymous
            .with("client-id", value)
            .with("client-id", "other"),
        anonymous.with("client_id", value),
        anonymous.with("authorization", &format!("Bearer {value}")),
    ] {
        let caller = caller.with("x-request-id", "same");
        for method in [Method::GET, Method::DELETE] {
            let path = "/subscription-plans/target";
            let answer = target
                .refuses_of(&caller, method, path, None, (401, "invalid_client"))
                .await;
            answers.push(answer.text);
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "one body for all: {answers:?}");
    target.is_unchanged().await;
}

/// Catalogue: 56.
#[tokio::test]
async fn methods_that_are_not_meant() {
    let target = Target::start().await;
    for method in ["TRACE", "PATCH", "OPTIONS", "PROPFIND", "get", "PURGE"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for path in [PLANS, "/subscription-plans/target"] {
            let answer = target
                .refuses(method.clone(), path, None, (405, "method_not_allowed"))
                .await;
            assert!(
                answer.header("allow").contains("GET"),
                "{}",
                answer.header("allow")
            );
        }
    }
    let connect = target
        .raw(b"CONNECT 127.0.0.1:5432 HTTP/1.1\r\nhost: 127.0.0.1:5432\r\n\r\n")
        .await;
    assert!(connect.starts_with("HTTP/1.1 40"), "{connect}");
    // A header does not make another method of a request.
    for header in [
        "x-http-method-override",
        "x-method-override",
        "x-http-method",
    ] {
        let caller = target.caller.with(header, "DELETE");
        assert_eq!(caller.get("/subscription-plans/target").await.status, 200);
    }
    target.is_unchanged().await;
}

/// Catalogue: 59.
#[tokio::test]
async fn parameters_and_urls_out_of_bounds() {
    let target = Target::start().await;
    for limit in [
        "-1",
        "0",
        "201",
        "1e9",
        "1000000000",
        "99999999999999999999",
        "",
        "x",
        "1.5",
        " 1",
        "0x10",
    ] {
        let path = format!("{PLANS}?limit={limit}");
        target
            .refuses(Method::GET, &path, None, (400, "invalid_parameter"))
            .await;
    }
    for cursor in [
        "x",
        "AAAA",
        "%00",
        &"A".repeat(20_000),
        "eyJpZCI6MX0",
        "../../etc",
    ] {
        let path = format!("{PLANS}?cursor={cursor}");
        target
            .refuses(Method::GET, &path, None, (400, "invalid_cursor"))
            .await;
    }
    let many: Vec<String> = (0..1_000).map(|n| format!("p{n}=1")).collect();
    target
        .refuses(
            Method::GET,
            &format!("{PLANS}?{}", many.join("&")),
            None,
            (400, "invalid_parameter"),
        )
        .await;
    // Endpoints that take no parameters say so.
    for path in [
        "/subscription-plans/target?x=1",
        "/subscription-plans/target?limit=1",
    ] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let body = (method == Method::PUT).then_some(b"{}".as_slice());
            target
                .refuses(method, path, body, (400, "invalid_parameter"))
                .await;
        }
    }
    target
        .refuses(
            Method::POST,
            &format!("{PLANS}?slug=y"),
            Some(minimal("x").to_string().as_bytes()),
            (400, "invalid_parameter"),
        )
        .await;
    let long = target
        .raw(format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(64 * 1024)).as_bytes())
        .await;
    assert!(
        long.starts_with("HTTP/1.1 414 ") || long.starts_with("HTTP/1.1 431 "),
        "{long}"
    );
    target.is_unchanged().await;
}

/// Catalogue: 60.
#[tokio::test]
async fn paths_that_are_almost_right() {
    let target = Target::start().await;
    let plan = "/subscription-plans/target";
    for path in [
        "//subscription-plans",
        "/subscription-plans/",
        "/subscription-plans//target",
        "/subscription-plans/target/",
        "/SUBSCRIPTION-PLANS",
        "/subscription-plans/target/x",
        "/subscription%2dplans%2ftarget",
        "/subscription-plans;x",
        "/./subscription-plans%2f",
        "/subscription-plans/./../target/x",
        "/v1/subscription-plans",
    ] {
        // As bytes: a library would tidy the path up.
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nclient-id: {}\r\n\r\n",
            target.client_id
        );
        let answer = target.raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
    target
        .refuses(
            Method::GET,
            &format!("{plan};x=1"),
            None,
            (404, "plan_not_found"),
        )
        .await;
    target.is_unchanged().await;
}

/// Catalogue: 64.
#[tokio::test]
async fn hosts_missing_and_forged() {
    let target = Target::start().await;
    let request =
        |hosts: &str| format!("GET /nothing HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
    for hosts in ["", "host: a\r\nhost: b\r\n", "host: a\r\nhost: a\r\n"] {
        let answer = target.raw(request(hosts).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{hosts:?}: {answer}");
        assert!(answer.contains("invalid_request"), "{answer}");
    }
    for host in ["evil.example", "127.0.0.1:1", "[::1]", "' OR 1", ""] {
        let answer = target
            .raw(
                request(&format!(
                    "host: {host}\r\nx-forwarded-host: evil.example\r\n"
                ))
                .as_bytes(),
            )
            .await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{host}: {answer}");
        // Our links lead to ourselves.
        assert!(
            answer.contains(&format!("{}/docs/errors", target.service.server.url))
                && !answer.contains("evil"),
            "{answer}"
        );
    }
    let old = target.raw(b"GET /nothing HTTP/1.0\r\n\r\n").await;
    assert!(old.contains(" 404 "), "HTTP/1.0 needs no Host: {old}");
    target.is_unchanged().await;
}

/// Catalogue: 65.
#[tokio::test]
async fn bodies_where_none_are_meant() {
    let target = Target::start().await;
    // Nobody reads them, and what follows on the connection is not taken for a part of them.
    for body in ["{\"is_active\": false}", "not json", &"x".repeat(100_000)] {
        let answer = target
            .caller
            .try_send(
                Method::GET,
                "/subscription-plans/target",
                Some(body.as_bytes().to_vec()),
            )
            .await
            .unwrap();
        assert_eq!(answer.status, 200);
    }
    target
        .refuses(
            Method::DELETE,
            "/subscription-plans/none",
            Some(b"{\"slug\": \"target\"}"),
            (404, "plan_not_found"),
        )
        .await;
    target.is_unchanged().await;
}

/// Catalogue: 66.
#[tokio::test]
async fn wishes_that_cannot_be_met() {
    let target = Target::start().await;
    // There is one representation; whoever wishes for another gets this one.
    for accept in [
        "text/html",
        "application/xml;q=1",
        "x",
        "",
        "*/*;q=0",
        "application/json;version=9",
    ] {
        let answer = target
            .caller
            .with("accept", accept)
            .get("/subscription-plans/target")
            .await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, "application/json"),
            "{accept}"
        );
    }
    for stale in [
        "\"stale\"",
        "stale",
        "W/\"stale\"",
        "\"",
        "",
        "\"a\", \"b\"",
    ] {
        let caller = target
            .caller
            .with("content-type", "application/json")
            .with("if-match", stale);
        let path = "/subscription-plans/target";
        let failed = (412, "precondition_failed");
        target
            .refuses_of(&caller, Method::PUT, path, Some(b"{\"tier\": 5}"), failed)
            .await;
        target
            .refuses_of(&caller, Method::DELETE, path, None, failed)
            .await;
    }
    target.is_unchanged().await;
}

/// Catalogue: 67.
#[tokio::test]
async fn an_idempotency_key_that_has_expired() {
    let service = Service::start().await;
    let caller = service.caller(&[]).with("idempotency-key", "k");
    let post = async |slug: &str| caller.post(PLANS, &minimal(slug).to_string()).await;
    assert_eq!(post("first").await.status, 201);
    let other = post("second").await;
    assert_eq!(
        (other.status, other.problem().as_str()),
        (422, "idempotency_key_reused")
    );
    let database = service.database.connect().await;
    let expire = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
    assert_eq!(database.execute(expire, &[]).await.unwrap(), 1);
    // A day later it stands for nothing any more.
    let anew = post("second").await;
    assert_eq!(
        (anew.status, anew.header("idempotency-replayed")),
        (201, "")
    );
    assert_eq!(post("second").await.header("idempotency-replayed"), "true");
}
