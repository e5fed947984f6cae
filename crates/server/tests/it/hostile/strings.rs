//! Texts that mean something to somebody else: a path, a query, a page, a terminal.

use reqwest::Method;

use super::target::{PLANS, Target, shows_nothing_of_the_inside};

/// Catalogue: 24.
#[tokio::test]
async fn blank() {
    let target = Target::start().await;
    for blank in ["", " ", "\\t \\n", "\u{a0}\u{2003}"] {
        target
            .refuses_field(
                "name",
                &format!("\"{blank}\""),
                if blank.contains("\\t") {
                    "invalid_format"
                } else {
                    "blank"
                },
            )
            .await;
    }
    for field in ["slug", "billing_cycle", "href"] {
        let answer = target
            .caller
            .post(PLANS, &super::target::plan_with(field, "\" \""))
            .await;
        assert_eq!(answer.status, 422, "{field}: {}", answer.text);
    }
    target.is_unchanged().await;
}

/// Catalogue: 42, 43.
#[tokio::test]
async fn slugs_that_are_none() {
    let target = Target::start().await;
    for slug in [
        "..", ".", "-x", "_x", "a/b", "a%2fb", "a b", "é", "a\\\\b", "a\\u0000", "a\\nb", "?", "#",
        "*", "ａ",
    ] {
        target
            .refuses_field("slug", &format!("\"{slug}\""), "invalid_format")
            .await;
    }
    target
        .refuses_field("slug", &format!("\"{}\"", "x".repeat(65)), "too_long")
        .await;
    target
        .refuses_field("slug", &format!("\"{}\"", "x".repeat(256)), "too_long")
        .await;
    // In the path, what cannot be a slug is not found; nothing is decoded twice. As bytes, since a library
    // would tidy some of these up.
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
            let answer = target.raw(request.as_bytes()).await;
            assert!(
                answer.starts_with("HTTP/1.1 404 "),
                "{method} {path}: {answer}"
            );
            assert!(answer.contains("not_found"), "{method} {path}: {answer}");
            shows_nothing_of_the_inside(&answer);
        }
    }
    let long = format!("{PLANS}/{}", "x".repeat(10 * 1024));
    target
        .refuses(Method::GET, &long, None, (404, "plan_not_found"))
        .await;
    target.is_unchanged().await;
}

/// Catalogue: 44, 45.
#[tokio::test]
async fn what_would_be_sql() {
    let target = Target::start().await;
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
            .refuses(
                Method::GET,
                &format!("{PLANS}/{}", percent(attack)),
                None,
                (404, "plan_not_found"),
            )
            .await;
        for parameter in ["is_active", "tier", "billing_cycle", "sort", "limit"] {
            let path = format!("{PLANS}?{parameter}={}", percent(attack));
            target
                .refuses(Method::GET, &path, None, (400, "invalid_parameter"))
                .await;
        }
        let cursor = format!("{PLANS}?cursor={}", percent(attack));
        target
            .refuses(Method::GET, &cursor, None, (400, "invalid_cursor"))
            .await;
        let raw = serde_json::to_string(attack).unwrap();
        target.refuses_field("slug", &raw, "invalid_format").await;
        target
            .refuses_field("billing_cycle", &raw, "unknown_value")
            .await;
        target
            .refuses_field("currency", &raw, "unknown_value")
            .await;
    }
    target.is_unchanged().await;
    // Where any text is welcome it is kept as it is, and does nothing.
    for attack in attacks {
        let raw = serde_json::to_string(attack).unwrap();
        for field in ["name", "description", "features", "product_id"] {
            assert_eq!(target.takes_field(field, &raw).await[field], attack);
        }
    }
    // A wildcard finds itself alone.
    for slug in ["a_b", "axb", "a.b"] {
        let body = super::target::plan_with("slug", &format!("\"{slug}\""));
        assert_eq!(target.caller.post(PLANS, &body).await.status, 201);
    }
    for slug in ["a_b", "axb", "a.b"] {
        let found = target.caller.get(&format!("{PLANS}/{slug}")).await.json();
        assert_eq!(found["slug"], slug);
    }
}

/// Catalogue: 46, 47.
#[tokio::test]
async fn what_would_be_a_page_a_template_or_a_formula() {
    let target = Target::start().await;
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
        assert_eq!(target.takes_field("name", &raw).await["name"], text);
        // What is echoed in an error is JSON as well, and no browser takes it for a page.
        let answer = target
            .caller
            .post(PLANS, &super::target::plan_with("billing_cycle", &raw))
            .await;
        assert_eq!(answer.problem(), "unknown_value");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        shows_nothing_of_the_inside(&answer.text);
    }
    let errors = target
        .caller
        .get("/docs/errors/<script>alert(1)</script>")
        .await;
    assert_eq!(errors.status, 404);
}

/// Catalogue: 48.
#[tokio::test]
async fn lines_and_colours_for_the_log() {
    let target = Target::start().await;
    let forged = "{\"level\":\"ERROR\",\"forged\":true}";
    for path in [
        "/subscription-plans/%0d%0a{\"level\":\"ERROR\",\"forged\":true}",
        "/subscription-plans/%1b%5b31mred",
        "/%0d%0aforged%1b%5b2J",
        "/subscription-plans?sort=%0aforged%1b%5b31m",
    ] {
        let answer = target.caller.get(path).await;
        assert!([400, 404].contains(&answer.status), "{path}");
        shows_nothing_of_the_inside(&answer.text);
    }
    let tabbed = target
        .caller
        .with("x-request-id", "a\tb{}")
        .get("/nothing")
        .await;
    assert!(tabbed.header("x-request-id").starts_with("req_"));
    target
        .caller
        .with("user-agent", forged)
        .get("/nothing")
        .await;
    target
        .caller
        .post(
            PLANS,
            &super::target::plan_with("billing_cycle", r#""\u001b[31m\nforged""#),
        )
        .await;
    let log = target.service.server.process.log();
    assert!(log.contains("answered"), "the log says something: {log}");
    assert!(!log.contains("forged") && !log.contains('\u{1b}'), "{log}");
    assert!(!log.contains(&target.client_id), "{log}");
    target.is_unchanged().await;
}

/// Catalogue: 49.
#[tokio::test]
async fn links_that_lead_elsewhere() {
    let target = Target::start().await;
    for link in [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://a.example/",
        "//a.example/",
        "/relative",
        "a.example",
        "https://",
        "https://user@a.example/",
        "https://user:pw@a.example/",
        "https://a.example:99999/",
        "https://a b/",
        "vbscript:x",
        "http:",
        "\\thttps://a.example/",
    ] {
        target
            .refuses_field("href", &format!("\"{link}\""), "invalid_format")
            .await;
    }
    target.is_unchanged().await;
}

/// Catalogue: 51.
#[tokio::test]
async fn features_with_nothing_between_the_commas() {
    let target = Target::start().await;
    let list = async |features: &str| {
        let raw = serde_json::to_string(features).unwrap();
        let plan = target.takes_field("features", &raw).await;
        assert_eq!(plan["features"], features);
        plan["feature_list"].to_string()
    };
    assert_eq!(list("a,,b").await, r#"["a","b"]"#);
    assert_eq!(list(" a , ,\tb,").await, r#"["a","b"]"#);
    assert_eq!(list(",,,").await, "[]");
    let many = vec!["x"; 10_000].join(",");
    target
        .refuses_field("features", &format!("\"{many}\""), "too_long")
        .await;
}
