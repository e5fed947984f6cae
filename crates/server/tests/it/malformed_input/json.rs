//! Malformed, oversized and mislabeled JSON bodies.

use reqwest::Method;
use tokio::io::AsyncWriteExt;

use super::target::{PLANS, Target, plan_with, read_until_idle};
use crate::subscription_plans::minimal_plan;

const MALFORMED: (u16, &str) = (400, "malformed_json");
const TOO_LARGE: (u16, &str) = (413, "payload_too_large");
const UNSUPPORTED: (u16, &str) = (415, "unsupported_media_type");

/// Malformed input: 1, 2, 3, 4, 29, 31.
#[tokio::test]
async fn truncated_repeated_or_commented_json_is_rejected() {
    let target = Target::start().await;
    let plan = minimal_plan("x").to_string();
    // Truncated at every position.
    for length in 0..plan.len() {
        target.assert_rejects_plan(&plan[..length], MALFORMED).await;
    }
    for body in ["", " ", "\n\t"] {
        target.assert_rejects_update(body, MALFORMED).await;
    }
    for body in [
        format!("{plan}{plan}"),
        format!("{plan} {{}}"),
        format!("{plan} x"),
        format!("{plan}\0"),
        format!("{plan} // comment"),
        format!("/* comment */ {plan}"),
        format!("# comment\n{plan}"),
        plan.replace('}', ",}"),
        plan.replace("\"name\"", "name"),
        plan.replace('"', "'"),
        plan_with("variants", r#"["a",]"#),
    ] {
        target.assert_rejects_plan(body, MALFORMED).await;
    }
    // Numbers that JSON does not have.
    for number in [
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        ".5",
        "1.",
        "0x10",
        "1_000",
        "1,5",
        "007",
        "--1",
        "1e",
    ] {
        for field in ["price", "tier"] {
            target
                .assert_rejects_plan(plan_with(field, number), MALFORMED)
                .await;
        }
    }
    target.assert_unchanged().await;
}

/// Malformed input: 5, 6.
#[tokio::test]
async fn other_encodings_are_rejected() {
    let target = Target::start().await;
    let plan = minimal_plan("x").to_string();
    let wide = |bytes: fn(u16) -> [u8; 2]| plan.encode_utf16().flat_map(bytes).collect::<Vec<_>>();
    let wider: Vec<u8> = plan
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    for body in [
        [b"\xef\xbb\xbf", plan.as_bytes()].concat(),
        wide(u16::to_le_bytes),
        wide(u16::to_be_bytes),
        [b"\xff\xfe".to_vec(), wide(u16::to_le_bytes)].concat(),
        wider,
    ] {
        target.assert_rejects_plan(body, MALFORMED).await;
    }
    // Invalid, overlong, surrogate, above U+10FFFF, and truncated UTF-8.
    for bytes in [
        b"\xff".as_slice(),
        b"\x80",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf0\x9f\x92",
    ] {
        let (head, tail) = plan.split_once("Pro").unwrap();
        let body = [head.as_bytes(), bytes, tail.as_bytes()].concat();
        target.assert_rejects_plan(body, MALFORMED).await;
    }
    target.assert_unchanged().await;
}

/// Malformed input: 7, 8.
#[tokio::test]
async fn lone_surrogates_and_nul_are_rejected() {
    let target = Target::start().await;
    for field in [
        "name",
        "description",
        "features",
        "product_id",
        "href",
        "slug",
        "billing_cycle",
    ] {
        for surrogate in [r"\ud800", r"\udc00", r"\ud800x", r"\udc00\ud800"] {
            target
                .assert_rejects_field(field, &format!(r#""a{surrogate}""#), "wrong_type")
                .await;
        }
        // An escaped NUL is valid JSON, but not valid text. A raw NUL is not valid JSON.
        let code = if field == "billing_cycle" {
            "unknown_value"
        } else {
            "invalid_format"
        };
        target
            .assert_rejects_field(field, r#""a\u0000b""#, code)
            .await;
        target
            .assert_rejects_plan(plan_with(field, "\"a\0b\""), MALFORMED)
            .await;
    }
    target
        .assert_rejects_field("variants", r#"["a\u0000b"]"#, "invalid_format")
        .await;
    target.assert_unchanged().await;
}

/// Malformed input: 9, 10, 11, 12, 13.
#[tokio::test]
async fn duplicate_unknown_or_non_object_json_is_rejected() {
    let target = Target::start().await;
    let plan = minimal_plan("x").to_string();
    for body in [
        "[]",
        "[{}]",
        r#"["Pro", "x", 19.99, "monthly"]"#,
        "null",
        "true",
        "0",
        "\"x\"",
    ] {
        target.assert_rejects_plan(body, MALFORMED).await;
        target.assert_rejects_update(body, MALFORMED).await;
    }
    // Duplicate keys, with and without escapes.
    for twice in [r#"{"name":"Other","#, r#"{"n\u0061me":"Other","#] {
        target
            .assert_rejects_plan(plan.replacen('{', twice, 1), MALFORMED)
            .await;
    }
    for unknown in [
        "Name",
        "NAME",
        " name",
        "name ",
        "ｎame",
        "na\\u0301me",
        "role",
        "tenant_id",
        "deleted_at",
        "is_admin",
        "__proto__",
        "constructor",
        "prototype",
        "$where",
        "name.first",
        "name[0]",
        "",
    ] {
        let body = plan.replacen('{', &format!(r#"{{"{unknown}":1,"#), 1);
        target
            .assert_rejects_plan(&body, (422, "unknown_field"))
            .await;
        target
            .assert_rejects_update(format!(r#"{{"{unknown}":1}}"#), (422, "unknown_field"))
            .await;
    }
    target
        .assert_rejects_plan(
            plan.replacen('{', r#"{"__proto__":{"is_active":false},"#, 1),
            (422, "unknown_field"),
        )
        .await;
    target.assert_unchanged().await;

    // Read-only fields of responses are accepted and ignored.
    let read_only =
        r#"{"id":"plan_00000000000070008000000000000001","created_at":"1970-01-01T00:00:00Z","#;
    let created = target
        .api
        .post(PLANS, &plan.replacen('{', read_only, 1))
        .await
        .json();
    assert_ne!(created["id"], "plan_00000000000070008000000000000001");
    assert!(!created["created_at"].as_str().unwrap().starts_with("1970"));
}

/// Malformed input: 14, 15, 16, 17.
#[tokio::test]
async fn oversized_json_is_rejected() {
    let target = Target::start().await;
    let nested =
        |depth: usize| format!(r#"{{"name":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
    for depth in [1, 127, 128, 129, 30_000] {
        let response = target.api.post(PLANS, &nested(depth)).await;
        assert!(
            [400, 422].contains(&response.status),
            "{depth}: {}",
            response.text
        );
        let expected = match response.status {
            400 => MALFORMED,
            _ => (422, "wrong_type"),
        };
        target.assert_rejects_update(nested(depth), expected).await;
    }
    target.assert_rejects_plan(nested(100_000), TOO_LARGE).await;

    let items = |count: usize| format!("[{}\"v\"]", "\"v\",".repeat(count - 1));
    target
        .assert_rejects_field("variants", &items(101), "too_many")
        .await;
    target
        .assert_rejects_field("variants", &items(15_000), "too_many")
        .await;
    target
        .assert_rejects_field(
            "variants",
            &format!("[{}0]", "0,".repeat(30_000)),
            "wrong_type",
        )
        .await;
    target
        .assert_rejects_plan(plan_with("variants", &items(1_000_000)), TOO_LARGE)
        .await;

    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|n| format!("\"k{n}\":0")).collect();
        format!("{{{}}}", keys.join(","))
    };
    let many = target
        .assert_rejects_update(keys(5_000), (422, "unknown_field"))
        .await;
    assert!(many.field_errors().len() <= 100 && many.text.len() < 20_000);
    target.assert_rejects_plan(keys(1_000_000), TOO_LARGE).await;

    for length in [64 * 1024 + 1, 1 << 20] {
        let text = format!("\"{}\"", "x".repeat(length));
        target
            .assert_rejects_plan(plan_with("name", &text), TOO_LARGE)
            .await;
    }
    // 100 MiB, with a length or in chunks: rejected before they are sent.
    for framing in ["content-length: 104857600", "transfer-encoding: chunked"] {
        let mut stream = target.connect().await;
        let head = format!(
            "POST {PLANS} HTTP/1.1\r\nhost: x\r\nclient-id: {}\r\ncontent-type: application/json\r\n{framing}\r\n\r\n",
            target.client_id
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 65_536], b"\r\n"].concat();
        let mut sent = 0;
        while sent < 100 << 20 {
            match tokio::time::timeout(
                std::time::Duration::from_millis(200),
                stream.write_all(&chunk),
            )
            .await
            {
                Ok(Ok(())) => sent += chunk.len(),
                _ => break,
            }
        }
        let response = read_until_idle(&mut stream).await;
        assert!(
            response.starts_with("HTTP/1.1 413 "),
            "{framing}: {response}"
        );
    }
    target.assert_unchanged().await;
}

/// Malformed input: 18.
#[tokio::test]
async fn body_size_limit_is_exact() {
    let target = Target::start().await;
    let padded = |slug: &str, length: usize| {
        let plan = minimal_plan(slug).to_string();
        format!("{plan}{}", " ".repeat(length - plan.len()))
    };
    let limit = 64 * 1024;
    target
        .assert_rejects_plan(padded("x", limit + 1), (413, "payload_too_large"))
        .await;
    target.assert_unchanged().await;
    for (slug, length) in [("below", limit - 1), ("at", limit)] {
        assert_eq!(
            target.api.post(PLANS, &padded(slug, length)).await.status,
            201
        );
    }
}

/// Malformed input: 19, 20.
#[tokio::test]
async fn unsupported_media_type_is_rejected() {
    let target = Target::start().await;
    let plan = minimal_plan("x").to_string();
    // Expands to a megabyte, if it were decompressed.
    let bomb = [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], &[0xed; 1_000]].concat();
    let json = target.api.with("content-type", "application/json");
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"] {
        let api = json.with("content-encoding", encoding);
        for body in [plan.as_bytes(), &bomb] {
            target
                .assert_rejects_as(&api, Method::POST, PLANS, Some(body), UNSUPPORTED)
                .await;
        }
    }
    target
        .assert_rejects_as(
            &target.api,
            Method::POST,
            PLANS,
            Some(plan.as_bytes()),
            UNSUPPORTED,
        )
        .await;
    for declared in [
        "",
        "text/plain",
        "application/jsonx",
        "application/json; charset=utf-16",
        "application/xml",
        "multipart/form-data",
        "application/x-www-form-urlencoded",
        "*/*",
        "application/json, text/plain",
    ] {
        let api = target.api.with("content-type", declared);
        target
            .assert_rejects_as(
                &api,
                Method::POST,
                PLANS,
                Some(plan.as_bytes()),
                UNSUPPORTED,
            )
            .await;
    }
    target.assert_unchanged().await;
    for (number, declared) in ["application/json", "Application/JSON; charset=UTF-8"]
        .iter()
        .enumerate()
    {
        let body = minimal_plan(&format!("good-{number}"))
            .to_string()
            .into_bytes();
        let response = target
            .api
            .with("content-type", declared)
            .send(Method::POST, PLANS, Some(body))
            .await;
        assert_eq!(response.status, 201, "{declared}: {}", response.text);
    }
}
