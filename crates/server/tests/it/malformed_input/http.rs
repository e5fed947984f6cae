//! Malformed headers, methods, paths and parameters.

use reqwest::Method;

use super::target::{PLANS, Target};
use crate::{harness::service::Service, subscription_plans::minimal_plan};

/// Malformed input: 53.
#[tokio::test]
async fn invalid_client_ids_are_rejected() {
    let target = Target::start().await;
    let anonymous = target.service.anonymous();
    let value = &target.client_id;
    let mut responses = Vec::new();
    for api in [
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
        let api = api.with("x-request-id", "same");
        for method in [Method::GET, Method::DELETE] {
            let path = "/subscription-plans/target";
            let response = target
                .assert_rejects_as(&api, method, path, None, (401, "invalid_client"))
                .await;
            responses.push(response.text);
        }
    }
    responses.dedup();
    assert_eq!(responses.len(), 1, "equal responses: {responses:?}");
    target.assert_unchanged().await;
}

/// Malformed input: 56.
#[tokio::test]
async fn unsupported_methods_are_rejected() {
    let target = Target::start().await;
    for method in ["TRACE", "PATCH", "OPTIONS", "PROPFIND", "get", "PURGE"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for path in [PLANS, "/subscription-plans/target"] {
            let response = target
                .assert_rejects(method.clone(), path, None, (405, "method_not_allowed"))
                .await;
            assert!(
                response.header("allow").contains("GET"),
                "{}",
                response.header("allow")
            );
        }
    }
    let connect = target
        .raw(b"CONNECT 127.0.0.1:5432 HTTP/1.1\r\nhost: 127.0.0.1:5432\r\n\r\n")
        .await;
    assert!(connect.starts_with("HTTP/1.1 40"), "{connect}");
    // Method override headers are ignored.
    for header in [
        "x-http-method-override",
        "x-method-override",
        "x-http-method",
    ] {
        let api = target.api.with(header, "DELETE");
        assert_eq!(api.get("/subscription-plans/target").await.status, 200);
    }
    target.assert_unchanged().await;
}

/// Malformed input: 59.
#[tokio::test]
async fn out_of_range_parameters_are_rejected() {
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
            .assert_rejects(Method::GET, &path, None, (400, "invalid_parameter"))
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
            .assert_rejects(Method::GET, &path, None, (400, "invalid_cursor"))
            .await;
    }
    let many: Vec<String> = (0..1_000).map(|n| format!("p{n}=1")).collect();
    target
        .assert_rejects(
            Method::GET,
            &format!("{PLANS}?{}", many.join("&")),
            None,
            (400, "invalid_parameter"),
        )
        .await;
    // Unknown parameters are rejected.
    for path in [
        "/subscription-plans/target?x=1",
        "/subscription-plans/target?limit=1",
    ] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let body = (method == Method::PUT).then_some(b"{}".as_slice());
            target
                .assert_rejects(method, path, body, (400, "invalid_parameter"))
                .await;
        }
    }
    target
        .assert_rejects(
            Method::POST,
            &format!("{PLANS}?slug=y"),
            Some(minimal_plan("x").to_string().as_bytes()),
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
    target.assert_unchanged().await;
}

/// Malformed input: 60.
#[tokio::test]
async fn near_miss_paths_return_not_found() {
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
        // Raw, because an HTTP client would normalize the path.
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nclient-id: {}\r\n\r\n",
            target.client_id
        );
        let response = target.raw(request.as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 404 "), "{path}: {response}");
    }
    target
        .assert_rejects(
            Method::GET,
            &format!("{plan};x=1"),
            None,
            (404, "plan_not_found"),
        )
        .await;
    target.assert_unchanged().await;
}

/// Malformed input: 64.
#[tokio::test]
async fn missing_or_forged_host_is_handled() {
    let target = Target::start().await;
    let request =
        |hosts: &str| format!("GET /nothing HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
    for hosts in ["", "host: a\r\nhost: b\r\n", "host: a\r\nhost: a\r\n"] {
        let response = target.raw(request(hosts).as_bytes()).await;
        assert!(
            response.starts_with("HTTP/1.1 400 "),
            "{hosts:?}: {response}"
        );
        assert!(response.contains("invalid_request"), "{response}");
    }
    for (host, status, code) in [
        ("evil.example", 421, "misdirected_request"),
        ("localhost.evil.example", 421, "misdirected_request"),
        ("127.0.0.1@evil.example", 421, "misdirected_request"),
        ("' OR 1", 421, "misdirected_request"),
        ("", 421, "misdirected_request"),
        ("127.0.0.1:1", 404, "not_found"),
        ("[::1]", 404, "not_found"),
    ] {
        let response = target
            .raw(
                request(&format!(
                    "host: {host}\r\nx-forwarded-host: evil.example\r\n"
                ))
                .as_bytes(),
            )
            .await;
        let status = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&status), "{host}: {response}");
        assert!(response.contains(code), "{host}: {response}");
        // Links use the public URL.
        assert!(
            response.contains(&format!("{}/docs/errors", target.service.server.url))
                && !response.contains("evil"),
            "{response}"
        );
    }
    let old = target.raw(b"GET /nothing HTTP/1.0\r\n\r\n").await;
    assert!(old.contains(" 404 "), "HTTP/1.0 needs no Host: {old}");
    target.assert_unchanged().await;
}

/// Malformed input: 65.
#[tokio::test]
async fn bodies_of_get_and_delete_are_ignored() {
    let target = Target::start().await;
    // Bodies are skipped, and the next request on the connection works.
    for body in ["{\"is_active\": false}", "not json", &"x".repeat(100_000)] {
        let response = target
            .api
            .try_send(
                Method::GET,
                "/subscription-plans/target",
                Some(body.as_bytes().to_vec()),
            )
            .await
            .unwrap();
        assert_eq!(response.status, 200);
    }
    target
        .assert_rejects(
            Method::DELETE,
            "/subscription-plans/none",
            Some(b"{\"slug\": \"target\"}"),
            (404, "plan_not_found"),
        )
        .await;
    target.assert_unchanged().await;
}

/// Malformed input: 66.
#[tokio::test]
async fn unmet_accept_is_ignored_and_stale_if_match_rejected() {
    let target = Target::start().await;
    // JSON is the only representation.
    for accept in [
        "text/html",
        "application/xml;q=1",
        "x",
        "",
        "*/*;q=0",
        "application/json;version=9",
    ] {
        let response = target
            .api
            .with("accept", accept)
            .get("/subscription-plans/target")
            .await;
        assert_eq!(
            (response.status, response.header("content-type")),
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
        let api = target
            .api
            .with("content-type", "application/json")
            .with("if-match", stale);
        let path = "/subscription-plans/target";
        let failed = (412, "precondition_failed");
        target
            .assert_rejects_as(&api, Method::PUT, path, Some(b"{\"tier\": 5}"), failed)
            .await;
        target
            .assert_rejects_as(&api, Method::DELETE, path, None, failed)
            .await;
    }
    target.assert_unchanged().await;
}

/// Malformed input: 67.
#[tokio::test]
async fn expired_idempotency_key_can_be_reused() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]).with("idempotency-key", "k");
    let post = async |slug: &str| api.post(PLANS, &minimal_plan(slug).to_string()).await;
    assert_eq!(post("first").await.status, 201);
    let other = post("second").await;
    assert_eq!(
        (other.status, other.problem().as_str()),
        (422, "idempotency_key_reused")
    );
    let database = service.database.connect().await;
    let expire = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
    assert_eq!(database.execute(expire, &[]).await.unwrap(), 1);
    // After it has expired, the key can be used for another request.
    let created = post("second").await;
    assert_eq!(
        (created.status, created.header("idempotency-replayed")),
        (201, "")
    );
    assert_eq!(post("second").await.header("idempotency-replayed"), "true");
}
