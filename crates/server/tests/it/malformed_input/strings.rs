//! Text with a meaning elsewhere: paths, SQL, HTML, templates, formulas and terminal escapes.

use reqwest::Method;

use super::target::{PLANS, Target, assert_no_internals};

/// Malformed input: 42, 43.
#[tokio::test]
async fn invalid_slug_in_the_path_is_not_found() {
    let target = Target::start().await;
    // Nothing is decoded twice. Raw, because an HTTP client would normalize some paths.
    for path in [
        "..",
        "%2e%2e",
        "%2f",
        "..%2ftarget",
        "%00",
        "target%00",
        "%252e",
        "%2574arget",
        "%ff",
        "%",
        "%zz",
        "%c3%a9",
        "00000000-0000-0000-0000-000000000000",
        "plan_00000000000000000000000000000000",
        "%20target",
        "target%20",
        "target%0a",
        "*",
        "-1",
        "0",
        "null",
        "undefined",
        "__proto__",
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let request = format!(
                "{method} {PLANS}/{path} HTTP/1.1\r\nhost: x\r\nclient-id: {}\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
                target.client_id
            );
            let response = target.raw(request.as_bytes()).await;
            assert!(
                response.starts_with("HTTP/1.1 404 "),
                "{method} {path}: {response}"
            );
            assert!(
                response.contains("not_found"),
                "{method} {path}: {response}"
            );
            assert_no_internals(&response);
        }
    }
    let long = format!("{PLANS}/{}", "x".repeat(10 * 1024));
    target
        .assert_rejects(Method::GET, &long, None, (404, "plan_not_found"))
        .await;
    target.assert_unchanged().await;
}

/// Malformed input: 44, 45.
#[tokio::test]
async fn sql_in_values_has_no_effect() {
    let target = Target::start_in_process().await;
    let attacks = [
        "'; DROP TABLE subscription_plans; --",
        "' OR '1'='1",
        "1; SELECT pg_sleep(10)",
        "'||pg_sleep(10)||'",
        "\") UNION SELECT 1 --",
        "$1",
        "\\' OR 1=1 --",
        "%27%20OR%201=1",
        "%",
        "_",
        "%_%",
        "\\",
    ];
    let percent = |text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        bytes.concat()
    };
    for attack in attacks {
        target
            .assert_rejects(
                Method::GET,
                &format!("{PLANS}/{}", percent(attack)),
                None,
                (404, "plan_not_found"),
            )
            .await;
        for parameter in ["is_active", "tier", "billing_cycle", "sort", "limit"] {
            let path = format!("{PLANS}?{parameter}={}", percent(attack));
            target
                .assert_rejects(Method::GET, &path, None, (400, "invalid_parameter"))
                .await;
        }
        let cursor = format!("{PLANS}?cursor={}", percent(attack));
        target
            .assert_rejects(Method::GET, &cursor, None, (400, "invalid_cursor"))
            .await;
        let raw = serde_json::to_string(attack).unwrap();
        target
            .assert_rejects_field("slug", &raw, "invalid_format")
            .await;
        target
            .assert_rejects_field("billing_cycle", &raw, "unknown_value")
            .await;
        target
            .assert_rejects_field("currency", &raw, "unknown_value")
            .await;
    }
    target.assert_unchanged().await;
    // Free text is stored unchanged.
    for attack in attacks {
        let raw = serde_json::to_string(attack).unwrap();
        for field in ["name", "description", "features", "product_id"] {
            assert_eq!(target.create_with_field(field, &raw).await[field], attack);
        }
    }
    // A wildcard in a slug matches only itself.
    for slug in ["a_b", "axb", "a.b"] {
        let body = super::target::plan_with("slug", &format!("\"{slug}\""));
        assert_eq!(target.api.post(PLANS, &body).await.status, 201);
    }
    for slug in ["a_b", "axb", "a.b"] {
        let plan = target.api.get(&format!("{PLANS}/{slug}")).await.json();
        assert_eq!(plan["slug"], slug);
    }
}

/// Malformed input: 46, 47.
#[tokio::test]
async fn html_templates_and_formulas_are_stored_verbatim() {
    let target = Target::start_in_process().await;
    let texts = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "{{7*7}}",
        "${7*7}",
        "<%= 7*7 %>",
        "#{7*7}",
        "=1+1",
        "=HYPERLINK(\"http://x\")",
        "+1",
        "-1",
        "@SUM(A1)",
        "%0aalert",
        "&lt;b&gt;",
    ];
    for text in texts {
        let raw = serde_json::to_string(text).unwrap();
        assert_eq!(target.create_with_field("name", &raw).await["name"], text);
        // Values in error messages cannot be interpreted as HTML.
        let response = target
            .api
            .post(PLANS, &super::target::plan_with("billing_cycle", &raw))
            .await;
        assert_eq!(response.problem(), "unknown_value");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("content-type"), "application/problem+json");
        assert_no_internals(&response.text);
    }
    let errors = target
        .api
        .get("/docs/errors/<script>alert(1)</script>")
        .await;
    assert_eq!(errors.status, 404);
}

/// Malformed input: 48.
#[tokio::test]
async fn control_characters_do_not_reach_the_log() {
    let target = Target::start().await;
    let forged = "{\"level\":\"ERROR\",\"forged\":true}";
    for path in [
        "/subscription-plans/%0d%0a{\"level\":\"ERROR\",\"forged\":true}",
        "/subscription-plans/%1b%5b31mred",
        "/%0d%0aforged%1b%5b2J",
        "/subscription-plans?sort=%0aforged%1b%5b31m",
    ] {
        let response = target.api.get(path).await;
        assert!([400, 404].contains(&response.status), "{path}");
        assert_no_internals(&response.text);
    }
    let tabbed = target
        .api
        .with("x-request-id", "a\tb{}")
        .get("/nothing")
        .await;
    assert!(tabbed.header("x-request-id").starts_with("req_"));
    target.api.with("user-agent", forged).get("/nothing").await;
    target
        .api
        .post(
            PLANS,
            &super::target::plan_with("billing_cycle", r#""\u001b[31m\nforged""#),
        )
        .await;
    let log = target.service.server.process.log();
    assert!(
        log.contains("response status="),
        "requests are logged: {log}"
    );
    assert!(!log.contains("forged") && !log.contains('\u{1b}'), "{log}");
    assert!(!log.contains(&target.client_id), "{log}");
    target.assert_unchanged().await;
}
