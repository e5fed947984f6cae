//! Bodies that are no JSON, too much of it, or JSON with something up its sleeve.

use reqwest::Method;
use tokio::io::AsyncWriteExt;

use super::target::{PLANS, Target, plan_with, read_until_silent};
use crate::subscription_plans::minimal;

const MALFORMED: (u16, &str) = (400, "malformed_json");
const TOO_LARGE: (u16, &str) = (413, "payload_too_large");
const UNSUPPORTED: (u16, &str) = (415, "unsupported_media_type");

/// Catalogue: 1, 2, 3, 4.
#[tokio::test]
async fn empty_cut_off_doubled_or_commented() {
    let target = Target::start().await;
    let plan = minimal("x").to_string();
    // Every place at which a body can be cut off, the very beginning among them.
    for length in 0..plan.len() {
        target.refuses_plan(&plan[..length], MALFORMED).await;
    }
    for body in ["", " ", "\n\t"] {
        target.refuses_change(body, MALFORMED).await;
    }
    for body in [
        format!("{plan}{plan}"),
        format!("{plan} {{}}"),
        format!("{plan} x"),
        format!("{plan}\0"),
        format!("{plan} // said"),
        format!("/* said */ {plan}"),
        format!("# said\n{plan}"),
        plan.replace('}', ",}"),
        plan.replace("\"name\"", "name"),
        plan.replace('"', "'"),
        plan_with("variants", r#"["a",]"#),
    ] {
        target.refuses_plan(body, MALFORMED).await;
    }
    target.is_unchanged().await;
}

/// Catalogue: 5, 6.
#[tokio::test]
async fn other_encodings_and_broken_ones() {
    let target = Target::start().await;
    let plan = minimal("x").to_string();
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
        target.refuses_plan(body, MALFORMED).await;
    }
    // Not UTF-8, overlong, a surrogate, beyond the last character, cut off.
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
        target.refuses_plan(body, MALFORMED).await;
    }
    target.is_unchanged().await;
}

/// Catalogue: 7, 8.
#[tokio::test]
async fn characters_that_are_none() {
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
                .refuses_field(field, &format!(r#""a{surrogate}""#), "wrong_type")
                .await;
        }
        // As an escape it is JSON, and PostgreSQL has no such character; as a byte it is not JSON.
        let code = if field == "billing_cycle" {
            "unknown_value"
        } else {
            "invalid_format"
        };
        target.refuses_field(field, r#""a\u0000b""#, code).await;
        target
            .refuses_plan(plan_with(field, "\"a\0b\""), MALFORMED)
            .await;
    }
    target
        .refuses_field("variants", r#"["a\u0000b"]"#, "invalid_format")
        .await;
    target.is_unchanged().await;
}

/// Catalogue: 9, 10, 11, 12, 13.
#[tokio::test]
async fn other_things_than_one_plain_object() {
    let target = Target::start().await;
    let plan = minimal("x").to_string();
    for body in [
        "[]",
        "[{}]",
        r#"["Pro", "x", 19.99, "monthly"]"#,
        "null",
        "true",
        "0",
        "\"x\"",
    ] {
        target.refuses_plan(body, MALFORMED).await;
        target.refuses_change(body, MALFORMED).await;
    }
    // The same key twice, however it is written.
    for twice in [r#"{"name":"Other","#, r#"{"n\u0061me":"Other","#] {
        target
            .refuses_plan(plan.replacen('{', twice, 1), MALFORMED)
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
        target.refuses_plan(&body, (422, "unknown_field")).await;
        target
            .refuses_change(format!(r#"{{"{unknown}":1}}"#), (422, "unknown_field"))
            .await;
    }
    target
        .refuses_plan(
            plan.replacen('{', r#"{"__proto__":{"is_active":false},"#, 1),
            (422, "unknown_field"),
        )
        .await;
    target.is_unchanged().await;

    // What our own answers carry is accepted, and ignored.
    let own =
        r#"{"id":"plan_00000000000070008000000000000001","created_at":"1970-01-01T00:00:00Z","#;
    let made = target
        .caller
        .post(PLANS, &plan.replacen('{', own, 1))
        .await
        .json();
    assert_ne!(made["id"], "plan_00000000000070008000000000000001");
    assert!(!made["created_at"].as_str().unwrap().starts_with("1970"));
}

/// Catalogue: 14, 15, 16, 17.
#[tokio::test]
async fn too_deep_too_many_too_long() {
    let target = Target::start().await;
    let nested =
        |depth: usize| format!(r#"{{"name":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
    for depth in [1, 127, 128, 129, 30_000] {
        let answer = target.caller.post(PLANS, &nested(depth)).await;
        assert!(
            [400, 422].contains(&answer.status),
            "{depth}: {}",
            answer.text
        );
        let expected = match answer.status {
            400 => MALFORMED,
            _ => (422, "wrong_type"),
        };
        target.refuses_change(nested(depth), expected).await;
    }
    target.refuses_plan(nested(100_000), TOO_LARGE).await;

    let items = |count: usize| format!("[{}\"v\"]", "\"v\",".repeat(count - 1));
    target
        .refuses_field("variants", &items(101), "too_many")
        .await;
    target
        .refuses_field("variants", &items(15_000), "too_many")
        .await;
    target
        .refuses_field(
            "variants",
            &format!("[{}0]", "0,".repeat(30_000)),
            "wrong_type",
        )
        .await;
    target
        .refuses_plan(plan_with("variants", &items(1_000_000)), TOO_LARGE)
        .await;

    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|n| format!("\"k{n}\":0")).collect();
        format!("{{{}}}", keys.join(","))
    };
    let many = target
        .refuses_change(keys(5_000), (422, "unknown_field"))
        .await;
    assert!(many.field_errors().len() <= 100 && many.text.len() < 20_000);
    target.refuses_plan(keys(1_000_000), TOO_LARGE).await;

    for length in [64 * 1024 + 1, 1 << 20] {
        let text = format!("\"{}\"", "x".repeat(length));
        target
            .refuses_plan(plan_with("name", &text), TOO_LARGE)
            .await;
    }
    // A hundred mebibytes, declared or in chunks: the answer is there while they are still coming.
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
        let answer = read_until_silent(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{framing}: {answer}");
    }
    target.is_unchanged().await;
}

/// Catalogue: 18.
#[tokio::test]
async fn at_the_bodys_limit() {
    let target = Target::start().await;
    let padded = |slug: &str, length: usize| {
        let plan = minimal(slug).to_string();
        format!("{plan}{}", " ".repeat(length - plan.len()))
    };
    let limit = 64 * 1024;
    target
        .refuses_plan(padded("x", limit + 1), (413, "payload_too_large"))
        .await;
    target.is_unchanged().await;
    for (slug, length) in [("below", limit - 1), ("at", limit)] {
        assert_eq!(
            target
                .caller
                .post(PLANS, &padded(slug, length))
                .await
                .status,
            201
        );
    }
}

/// Catalogue: 19, 20.
#[tokio::test]
async fn declared_as_something_else() {
    let target = Target::start().await;
    let plan = minimal("x").to_string();
    // A bomb of a megabyte in a kilobyte, if anybody were to open it.
    let bomb = [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], &[0xed; 1_000]].concat();
    let json = target.caller.with("content-type", "application/json");
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"] {
        let caller = json.with("content-encoding", encoding);
        for body in [plan.as_bytes(), &bomb] {
            target
                .refuses_of(&caller, Method::POST, PLANS, Some(body), UNSUPPORTED)
                .await;
        }
    }
    target
        .refuses_of(
            &target.caller,
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
        let caller = target.caller.with("content-type", declared);
        target
            .refuses_of(
                &caller,
                Method::POST,
                PLANS,
                Some(plan.as_bytes()),
                UNSUPPORTED,
            )
            .await;
    }
    target.is_unchanged().await;
    for (number, declared) in ["application/json", "Application/JSON; charset=UTF-8"]
        .iter()
        .enumerate()
    {
        let body = minimal(&format!("good-{number}")).to_string().into_bytes();
        let answer = target
            .caller
            .with("content-type", declared)
            .send_bytes(PLANS, body)
            .await;
        assert_eq!(answer.status, 201, "{declared}: {}", answer.text);
    }
}
