//! Memory use while strangers send requests that no limit rejects.

use std::{ops::Range, sync::Arc};

use crate::harness::{env_number, raw_connection::RawConnection, service::Service};

/// Returns the first lines of a request with this number.
type Head = Arc<dyn Fn(usize) -> String + Send + Sync>;

const CONNECTIONS: usize = 8;
/// How much the resident memory may grow, in KiB.
const MAX_GROWTH: u64 = 30 * 1024;

/// Returns the resident memory of a process, in KiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse().unwrap()
}

/// Sends requests with large heads over several connections. All must be rejected.
async fn send_all(url: &str, numbers: Range<usize>, head: &Head) {
    let numbers: Vec<usize> = numbers.collect();
    let senders = numbers
        .chunks(numbers.len().div_ceil(CONNECTIONS))
        .map(|chunk| {
            let (chunk, url, head) = (chunk.to_vec(), url.to_owned(), head.clone());
            tokio::spawn(async move {
                let mut connection = RawConnection::open(&url).await;
                // Fills most of the buffer that the service reads a head into.
                let padding = "x".repeat(28 * 1024);
                for number in chunk {
                    let head = head(number);
                    let request = format!("{head}host: 127.0.0.1\r\nx-padding: {padding}\r\n\r\n");
                    let response = connection.send(request.as_bytes()).await;
                    assert!(response.starts_with("HTTP/1.1 40"), "{head}: {response}");
                }
            })
        })
        .collect::<Vec<_>>();
    for sender in senders {
        sender.await.unwrap();
    }
}

/// `just prove memory` sends more of them.
#[tokio::test]
async fn hostile_requests_do_not_occupy_memory() {
    let count = env_number("PREFLIGHTS").unwrap_or(10_000);
    let service = Service::start().await;
    let (url, process) = (&service.server.url, service.server.process.id());
    let (_, client) = service.create_client(&["--kind", "publishable"]);
    let preflight = |number| {
        format!(
            "OPTIONS /subscription-plans HTTP/1.1\r\norigin: https://{number}.example.com\r\n\
             access-control-request-method: GET\r\n"
        )
    };
    let unknown_client =
        |number| format!("GET /subscription-plans HTTP/1.1\r\nclient-id: prn_sk_{number}\r\n");
    let unknown_token = move |number| {
        format!(
            "GET /authentication/tokens HTTP/1.1\r\nclient-id: {client}\r\n\
             authorization: Bearer {number}\r\n"
        )
    };
    let chosen_ids = |number| {
        format!(
            "POST /subscription-plans/{number} HTTP/1.1\r\nx-request-id: {number}\r\n\
             idempotency-key: {number}\r\nif-match: \"{number}\"\r\n"
        )
    };
    let kinds: [(&str, Head, usize); 4] = [
        ("preflights", Arc::new(preflight), count),
        ("unknown clients", Arc::new(unknown_client), count / 10),
        ("unknown tokens", Arc::new(unknown_token), count / 10),
        ("chosen ids", Arc::new(chosen_ids), count / 10),
    ];
    for (kind, head, count) in kinds {
        // The first requests open connections to the database and fill the allocator's free lists.
        send_all(url, 0..500, &head).await;
        let before = resident(process);
        send_all(url, 500..500 + count, &head).await;
        let after = resident(process);
        println!("{count} {kind}: resident memory from {before} to {after} KiB");
        assert!(
            after < before + MAX_GROWTH,
            "{count} {kind}: resident memory grew from {before} to {after} KiB"
        );
    }
}
