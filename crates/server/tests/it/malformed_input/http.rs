//! Malformed headers, methods, paths and parameters.

use reqwest::Method;

use super::target::{PLANS, Target};
use crate::subscription_plans::minimal_plan;

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

/// Malformed input: 43, 79.
#[tokio::test]
async fn unknown_ids_return_not_found() {
    let target = Target::start_in_process().await;
    for (kind, prefix, code) in [
        ("/subscriptions", "sub", "subscription_not_found"),
        ("/subscription-payments", "pay", "payment_not_found"),
    ] {
        for id in [
            format!("{prefix}_01920000000070008000000000000001"),
            "01920000-0000-7000-8000-000000000001".to_owned(),
            "plan_01920000000070008000000000000001".to_owned(),
            "00000000-0000-0000-0000-000000000000".to_owned(),
            "%00".to_owned(),
            "%252e".to_owned(),
            "1'%20OR%201=1".to_owned(),
            "x".repeat(10_000),
        ] {
            let path = format!("{kind}/{id}");
            for (method, body) in [
                (Method::GET, None),
                (Method::PUT, Some(b"{}".as_slice())),
                (Method::DELETE, None),
            ] {
                target
                    .assert_rejects(method, &path, body, (404, code))
                    .await;
            }
        }
    }
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
