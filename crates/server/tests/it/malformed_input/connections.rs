//! Announced bodies, slow peers, and peers that do not read. `attack::http` has invalid framing.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::target::{PLANS, Target, read_until_idle};
use crate::{harness::wait_until, subscription_plans::minimal_plan};

/// Returns the first lines of a request that creates a plan.
fn head(target: &Target) -> String {
    format!(
        "POST {PLANS} HTTP/1.1\r\nhost: x\r\nclient-id: {}\r\ncontent-type: application/json\r\n",
        target.client_id
    )
}

/// Malformed input: 61.
#[tokio::test]
async fn expect_continue_without_body_is_handled() {
    let target = Target::start().await;
    let length = minimal_plan("x").to_string().len();
    let announced = format!(
        "{}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n",
        head(&target)
    );
    let mut stream = target.connect().await;
    stream.write_all(announced.as_bytes()).await.unwrap();
    let response = read_until_idle(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 100 Continue"), "{response}");
    drop(stream);
    // An unauthorized client is rejected before it sends the body.
    let unauthorized = announced.replace(&target.client_id, "unknown");
    let response = target.raw(unauthorized.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    let unknown_expectation = format!(
        "{}expect: something-else\r\ncontent-length: 0\r\n\r\n",
        head(&target)
    );
    let other = target.raw(unknown_expectation.as_bytes()).await;
    assert!(other.starts_with("HTTP/1.1 4"), "{other}");
    target.assert_unchanged().await;
}

/// Peers that do not read or never send are disconnected. Responses to pipelined requests are in order.
///
/// Malformed input: 62.
#[tokio::test]
async fn idle_peers_are_disconnected_and_pipelining_works() {
    let target = Target::start().await;
    // Requests far more than fits into the socket buffers, and reads nothing.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = target
        .service
        .server
        .url
        .replace("http://", "")
        .parse()
        .unwrap();
    let mut not_reading = socket.connect(address).await.unwrap();
    let requested = Instant::now();
    // A large page, until the service stops reading requests as well.
    let page = "GET /docs/search.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50);
    not_reading.write_all(page.as_bytes()).await.unwrap();
    let series = "perennial_connections_open{listener=\"api\"}";
    // A connection that never sends anything.
    let half_open = target.connect().await;

    // Pipelined: two successful requests around a failing one.
    let get = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nclient-id: {}\r\n\r\n",
            target.client_id
        )
    };
    let pipelined =
        get("/subscription-plans/target") + &get("/nothing") + &get("/subscription-plans/target");
    let responses = target.raw(pipelined.as_bytes()).await;
    let statuses: Vec<&str> = responses
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|response| &response[..3])
        .collect();
    assert_eq!(statuses, ["200", "404", "200"], "{responses}");

    wait_until(
        "idle peers are disconnected",
        Duration::from_secs(25),
        async || target.service.server.metric(series).await.unwrap() <= 1.0,
    )
    .await;
    assert!(
        requested.elapsed() > Duration::from_secs(8),
        "disconnected too early"
    );
    drop((not_reading, half_open));
    target.assert_unchanged().await;
}

/// Returns the 99th percentile of 1,000 reads.
async fn p99(target: &Target) -> Duration {
    let mut times = Vec::new();
    for _ in 0..1_000 {
        let started = Instant::now();
        let response = target.api.get("/subscription-plans/target").await;
        times.push(started.elapsed());
        assert_eq!(response.status, 200);
    }
    times.sort();
    times[989]
}

/// Sends one byte per second, and reconnects when the connection is closed.
async fn send_slowly(address: SocketAddr, start: String, open: Arc<AtomicUsize>) {
    loop {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let Ok(mut stream) = socket.connect(address).await else {
            continue;
        };
        open.fetch_add(1, Ordering::Relaxed);
        let mut sent = stream.write_all(start.as_bytes()).await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            sent = stream.write_all(b"x").await;
        }
        open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection stays usable if the rest of the body is short and arrives, and is closed otherwise.
///
/// Malformed input: 62.
#[tokio::test]
async fn early_response_keeps_or_closes_the_connection() {
    let target = Target::start().await;
    let next = "GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let unauthorized = "POST /subscription-plans HTTP/1.1\r\nhost: x\r\n";
    for (length, sent, reusable) in [
        (10, 10, true),
        (60_000, 60_000, true),
        (60_000, 10, false),
        (100_000, 100_000, false),
    ] {
        let mut stream = target.connect().await;
        let head = format!("{unauthorized}content-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The body arrives after the header.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _ = stream.write_all(&vec![b'x'; sent]).await;
        let first = read_until_idle(&mut stream).await;
        assert!(first.starts_with("HTTP/1.1 401 "), "{first}");
        assert_eq!(
            first.contains("connection: close"),
            !reusable,
            "{length}: {first}"
        );
        if reusable {
            stream.write_all(next.as_bytes()).await.unwrap();
            let second = read_until_idle(&mut stream).await;
            assert!(second.starts_with("HTTP/1.1 404 "), "{length}: {second}");
        }
    }
    target.assert_unchanged().await;
}

/// Tests that measure time, and so run without other tests.
mod timing {
    use super::*;

    /// A header and a body that arrive at one byte per second.
    ///
    /// Malformed input: 62.
    #[tokio::test]
    async fn slow_requests_time_out_without_delaying_others() {
        let target = Target::start().await;
        let header = format!(
            "GET /nothing HTTP/1.1\r\nhost: x\r\nx-long: {}",
            "x".repeat(1_000)
        );
        let body = format!("{}content-length: 1000\r\n\r\n", head(&target));
        let send_slowly = async |start: &str, rest: &str| {
            let mut stream = target.connect().await;
            stream.write_all(start.as_bytes()).await.unwrap();
            let started = Instant::now();
            let mut read = Vec::new();
            let mut part = [0; 1024];
            for byte in rest.bytes().cycle() {
                if stream.write_all(&[byte]).await.is_err() {
                    break;
                }
                match tokio::time::timeout(Duration::from_secs(1), stream.read(&mut part)).await {
                    Err(_) => {}
                    Ok(Ok(length @ 1..)) => read.extend_from_slice(&part[..length]),
                    Ok(_) => break,
                }
                assert!(started.elapsed() < Duration::from_secs(13), "still open");
            }
            (
                started.elapsed(),
                String::from_utf8_lossy(&read).into_owned(),
            )
        };
        let others = async {
            for _ in 0..40 {
                let started = Instant::now();
                assert_eq!(
                    target.api.get("/subscription-plans/target").await.status,
                    200
                );
                assert!(started.elapsed() < Duration::from_secs(1));
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let ((header_time, _), (body_time, response), ()) =
            tokio::join!(send_slowly("", &header), send_slowly(&body, " "), others);
        assert!(
            header_time < Duration::from_secs(12),
            "header: {header_time:?}"
        );
        assert!(body_time < Duration::from_secs(12), "body: {body_time:?}");
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        target.assert_unchanged().await;
    }

    /// 1,000 connections that send one byte per second, half of them in the header and half in the body.
    ///
    /// Malformed input: 62.
    #[tokio::test]
    async fn slow_connections_do_not_delay_others() {
        let rounds = std::env::var("ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
        let target = Target::start().await;
        p99(&target).await;
        let (mut idle, mut loaded) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            idle.push(p99(&target).await);
            let slow = SlowConnections::open(&target).await;
            loaded.push(p99(&target).await);
            slow.close();
        }
        let [idle, loaded] = [idle, loaded].map(|mut times| {
            times.sort();
            times[rounds / 2]
        });
        println!("p99 of a read: {idle:?} idle, {loaded:?} with 1,000 slow connections");
        // One round depends on what else runs on the machine.
        if rounds >= 5 {
            assert!(loaded < idle * 2, "{idle:?} {loaded:?}");
        }
        target.assert_unchanged().await;
    }

    /// A thousand connections that send one byte per second, on their own thread, so that they do not
    /// delay the measured requests.
    struct SlowConnections {
        open: Arc<AtomicUsize>,
        stop: CancellationToken,
        thread: std::thread::JoinHandle<()>,
    }

    impl SlowConnections {
        const COUNT: usize = 1_000;

        async fn open(target: &Target) -> Self {
            let url = &target.service.server.url;
            let address = url.replace("http://", "").parse().unwrap();
            let starts = [
                "GET / HTTP/1.1\r\nx: ".to_owned(),
                format!("{}content-length: 1000\r\n\r\n", head(target)),
            ];
            let (open, stop) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
            let (count, stopped) = (open.clone(), stop.clone().cancelled_owned());
            let thread = std::thread::spawn(move || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().build().unwrap();
                for number in 0..Self::COUNT {
                    let start = starts[number % 2].clone();
                    let slow = send_slowly(address, start, count.clone());
                    runtime.spawn(async move {
                        // Spread over one second.
                        tokio::time::sleep(Duration::from_millis(number as u64)).await;
                        slow.await;
                    });
                }
                runtime.block_on(stopped);
            });
            let limit = Duration::from_secs(10);
            wait_until("all connections are open", limit, async || {
                open.load(Ordering::Relaxed) == Self::COUNT
            })
            .await;
            Self { open, stop, thread }
        }

        fn close(self) {
            assert!(self.open.load(Ordering::Relaxed) > 900);
            self.stop.cancel();
            self.thread.join().unwrap();
        }
    }
}
