//! HTTP request smuggling and header tricks over raw sockets.

use super::AttackReport;
use crate::{
    malformed_input::target::{PLANS, Target},
    subscription_plans::minimal_plan,
};

/// Returns the status of the only response. More responses mean that a hidden request was handled.
fn raw_outcome(response: &str) -> String {
    let heads = response.match_indices("HTTP/1.1 ");
    let statuses: Vec<&str> = heads
        .filter_map(|(at, _)| response.get(at + 9..at + 12))
        .filter(|status| status.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    match statuses.as_slice() {
        [] => "closed".to_owned(),
        [status] => (*status).to_owned(),
        more => format!("{} responses", more.len()),
    }
}

/// Malformed input: 56, 57, 58, 64.
#[tokio::test]
async fn http_tricks_reach_no_hidden_request() {
    let target = Target::start().await;
    let client = &target.client_id;
    let mut report = AttackReport::new("HTTP smuggling and header tricks");
    let hidden = format!(
        "DELETE /subscription-plans/target HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\n\r\n"
    );
    let plan = minimal_plan("smuggled").to_string();
    let length = plan.len();
    let post = format!(
        "POST {PLANS} HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\ncontent-type: application/json\r\n"
    );

    // Bodies whose end is disputed, followed by a hidden request.
    let chunked = "transfer-encoding: chunked\r\n";
    for (attack, rest) in [
        (
            "content-length, then chunked",
            format!("content-length: 5\r\n{chunked}\r\n3\r\n{{}}x\r\n0\r\n\r\n"),
        ),
        (
            "chunked, then content-length",
            format!("{chunked}content-length: 5\r\n\r\n3\r\n{{}}x\r\n0\r\n\r\n"),
        ),
        (
            "chunked ends before content-length",
            format!(
                "content-length: {}\r\n{chunked}\r\n0\r\n\r\n",
                hidden.len() + 5
            ),
        ),
        (
            "two different content-lengths",
            format!("content-length: {length}\r\ncontent-length: 5\r\n\r\n{plan}"),
        ),
        (
            "content-length list",
            format!("content-length: {length}, 5\r\n\r\n{plan}"),
        ),
        (
            "content-length with a sign",
            format!("content-length: +{length}\r\n\r\n{plan}"),
        ),
        (
            "content-length in hexadecimal",
            format!("content-length: 0x{length:x}\r\n\r\n{plan}"),
        ),
        (
            "content-length with a letter",
            format!("content-length: {length}x\r\n\r\n{plan}"),
        ),
        (
            "negative content-length",
            format!("content-length: -1\r\n\r\n{plan}"),
        ),
        (
            "content-length above 64 bits",
            "content-length: 18446744073709551621\r\n\r\n{}xyz".to_owned(),
        ),
        (
            "content-length with a space in it",
            format!("content-length: {length} 5\r\n\r\n{plan}"),
        ),
        (
            "transfer-encoding xchunked",
            format!("transfer-encoding: xchunked\r\n\r\n{plan}"),
        ),
        (
            "transfer-encoding chunked, identity",
            format!("transfer-encoding: chunked, identity\r\n\r\n{plan}"),
        ),
        (
            "transfer-encoding chunked, gzip",
            format!("transfer-encoding: chunked, gzip\r\n\r\n{plan}"),
        ),
        (
            "transfer-encoding gzip",
            format!("transfer-encoding: gzip\r\n\r\n{plan}"),
        ),
        (
            "transfer-encoding with a space before the colon",
            "transfer-encoding : chunked\r\n\r\n0\r\n\r\n".to_owned(),
        ),
        (
            "transfer-encoding with a vertical tab",
            "transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n".to_owned(),
        ),
        (
            "transfer-encoding in a folded line",
            "transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n".to_owned(),
        ),
        (
            "chunk size above 64 bits",
            format!("{chunked}\r\nfffffffffffffffff\r\n{plan}\r\n0\r\n\r\n"),
        ),
        (
            "negative chunk size",
            format!("{chunked}\r\n-1\r\n{plan}\r\n0\r\n\r\n"),
        ),
        (
            "chunk size that is no number",
            format!("{chunked}\r\nxyz\r\n{plan}\r\n0\r\n\r\n"),
        ),
        (
            "chunk without its line end",
            format!("{chunked}\r\n2\r\n{{}}0\r\n\r\n"),
        ),
        (
            "chunk size with a prefix",
            format!("{chunked}\r\n0x2\r\n{{}}\r\n0\r\n\r\n"),
        ),
        (
            "endless chunk extension",
            format!(
                "{chunked}\r\n2;{}\r\n{{}}\r\n0\r\n\r\n",
                "x".repeat(100_000)
            ),
        ),
    ] {
        let response = target.raw(format!("{post}{rest}{hidden}").as_bytes()).await;
        report.expect(attack, &["400", "413", "431"], &raw_outcome(&response));
    }

    // Malformed request lines and headers.
    let get = |lines: &str| {
        format!(
            "GET /subscription-plans/target HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{lines}\r\n"
        )
    };
    let own = format!("client-id: {client}\r\n");
    for (attack, request, expected) in [
        ("folded header", get(&format!("{own}x: a\r\n b\r\n")), "400"),
        ("NUL in a header", get(&format!("{own}x: a\0b\r\n")), "400"),
        (
            "bare CR in a header",
            get(&format!("{own}x: a\rb: c\r\n")),
            "400",
        ),
        (
            "space in a header name",
            get(&format!("{own}a b: c\r\n")),
            "400",
        ),
        (
            "header without a name",
            get(&format!("{own}: c\r\n")),
            "400",
        ),
        (
            "header without a colon",
            get(&format!("{own}no colon\r\n")),
            "400",
        ),
        (
            "space before the colon",
            get(&format!("{own}x : c\r\n")),
            "400",
        ),
        (
            "bare line feeds",
            "GET /nothing HTTP/1.1\nhost: x\nconnection: close\n\n".to_owned(),
            "404",
        ),
        (
            "line of NULs",
            "\0\0\0\0\r\n\r\n".to_owned(),
            "400 or closed",
        ),
        (
            "NUL in the path",
            "GET /subscription-plans/target\0 HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "space in the path",
            "GET /subscription-plans/ target HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "HTTP/0.9",
            "GET /subscription-plans/target\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "HTTP/9.9",
            "GET / HTTP/9.9\r\n\r\n".to_owned(),
            "400 or 505 or closed",
        ),
        (
            "no host",
            "GET / HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "two hosts",
            get(&format!("{own}host: evil.example\r\n")),
            "400",
        ),
        ("the same host twice", get("host: x\r\n"), "400"),
        (
            "header of 100 KB",
            get(&format!("{own}x: {}\r\n", "x".repeat(100_000))),
            "431",
        ),
        ("101 headers", get(&"x: 1\r\n".repeat(101)), "431"),
        ("10,000 headers", get(&"x: 1\r\n".repeat(10_000)), "431"),
        (
            "path of 64 KB",
            format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(65_536)),
            "414 or 431",
        ),
        ("no client-id", get(""), "401"),
        (
            "two client-ids",
            get(&format!("{own}client-id: other\r\n")),
            "401",
        ),
        (
            "the same client-id twice",
            get(&format!("{own}{own}")),
            "401",
        ),
        (
            "client-id list",
            get(&format!("client-id: {client}, {client}\r\n")),
            "401",
        ),
        (
            "second client-id behind a bare line feed",
            get(&format!("x: a\nclient-id: other\r\n{own}")),
            "401",
        ),
        (
            "client-id in capitals",
            get(&format!("client-id: {}\r\n", client.to_uppercase())),
            "401",
        ),
        (
            "client_id with an underscore",
            get(&format!("client_id: {client}\r\n")),
            "401",
        ),
        (
            "two authorizations",
            get(&format!(
                "{own}authorization: Bearer a\r\nauthorization: Bearer b\r\n"
            )),
            "401",
        ),
        (
            "parameter _method",
            get(&own).replacen("target ", "target?_method=DELETE ", 1),
            "400",
        ),
        (
            "method override headers",
            get(&format!(
                "{own}x-http-method-override: DELETE\r\nx-method-override: DELETE\r\nx-http-method: DELETE\r\n"
            )),
            "200",
        ),
        (
            "x-original-url",
            get(&format!(
                "{own}x-original-url: /metrics\r\nx-rewrite-url: /metrics\r\n"
            )),
            "200",
        ),
        ("TRACE", get(&own).replacen("GET", "TRACE", 1), "405"),
        (
            "lower case method",
            get(&own).replacen("GET", "delete", 1),
            "405",
        ),
        (
            "CONNECT",
            "CONNECT 127.0.0.1:5432 HTTP/1.1\r\nhost: 127.0.0.1:5432\r\nconnection: close\r\n\r\n"
                .to_owned(),
            "400 or 404 or 405",
        ),
        (
            "encoded traversal",
            get(&own).replacen("target ", "..%2f..%2fmetrics ", 1),
            "400 or 404",
        ),
        (
            "plain traversal",
            get(&own).replacen(
                "/subscription-plans/target ",
                "/subscription-plans/../metrics ",
                1,
            ),
            "404",
        ),
        (
            "admin path on the API port",
            get(&own).replacen("/subscription-plans/target ", "/metrics ", 1),
            "404",
        ),
        (
            "path parameter",
            get(&own).replacen("target ", "target;/../x ", 1),
            "404",
        ),
        (
            "HTTP/2 preface",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "400 or 505 or closed",
        ),
        (
            "TLS client hello",
            "\x16\x03\x01\x02\0\x01\0".to_owned(),
            "400 or closed",
        ),
        (
            "upgrade to h2c",
            get(&format!(
                "{own}upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
            )),
            "200",
        ),
    ] {
        let response = target.raw(request.as_bytes()).await;
        let expected: Vec<&str> = expected.split(" or ").collect();
        report.expect(attack, &expected, &raw_outcome(&response));
    }

    // What the client sends as host or id is not reflected.
    for (attack, request) in [
        (
            "absolute-form target",
            get(&own).replacen("/subscription", "http://evil.example/subscription", 1),
        ),
        (
            "forged host",
            get(&own).replacen("host: x", "host: evil.example", 1),
        ),
        (
            "host with user information",
            get(&own).replacen("host: x", "host: x@evil.example", 1),
        ),
        (
            "x-forwarded-host",
            get(&format!(
                "{own}x-forwarded-host: evil.example\r\nforwarded: host=evil.example\r\n"
            )),
        ),
        (
            "encoded line break in x-request-id",
            get(&format!("{own}x-request-id: a%0d%0aset-cookie:evil\r\n")),
        ),
        (
            "unknown record",
            get(&own).replacen("target ", "evil%0d%0a ", 1),
        ),
    ] {
        let response = target.raw(request.as_bytes()).await;
        // The instance of a problem is the requested path.
        let (head, _) = response.split_once("\r\n\r\n").unwrap_or_default();
        let is_reflected = head.contains("evil") || response.contains("evil.example");
        let got = if is_reflected {
            "reflected"
        } else {
            "not reflected"
        };
        report.expect(attack, &["not reflected"], got);
        assert!(response.starts_with("HTTP/1.1 "), "{attack}: {response}");
    }
    report.finish(71);
    target.assert_unchanged().await;
}
