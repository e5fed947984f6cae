//! Sends requests at a fixed rate (open loop) and prints the number of responses, their p50, p99 and p99.9 latency and the
//! time until the last one in microseconds, and the number of requests that the service rejected with 503.
//!
//!     steady PORT RATE SECONDS CONNECTIONS FILE
//!
//! The file contains raw HTTP requests, each after a line with its length. They are repeated in order. Latency is measured
//! from the time at which a request was scheduled, even if its connection was still waiting for an earlier response. Only
//! this program's own delays are not counted.
//!
//! With a RATE of 0, each request of the file is sent once, as soon as a connection is free (closed loop). A server that does
//! not listen yet is waited for, SECONDS at most.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark tool: a panic message is enough"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |message: &str| -> u32 {
        let argument = arguments.next().and_then(|argument| argument.parse().ok());
        argument.expect(message)
    };
    let port = u16::try_from(number("PORT must be a number")).expect("PORT is too large");
    let (rate, seconds, connections) = (
        number("RATE must be a number"),
        number("SECONDS must be a number"),
        number("CONNECTIONS must be a number"),
    );
    let file = arguments.next().expect("FILE is missing");
    let requests = Arc::new(parse_requests(
        &std::fs::read(file).expect("FILE must be readable"),
    ));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_all()
        .build()
        .expect("cannot start the runtime");
    let patience = Duration::from_secs(if rate == 0 { seconds.into() } else { 0 });
    let total = match rate {
        0 => u32::try_from(requests.len()).expect("too many requests"),
        rate => rate * seconds,
    };
    let (mut times, took) = runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            streams.push(connect(port, patience).await);
        }
        let delay = Duration::from_millis(if rate == 0 { 0 } else { 100 });
        let started_at = Instant::now() + delay;
        let mut tasks = Vec::new();
        for (first, stream) in (0..connections).zip(streams) {
            let step = usize::try_from(connections).expect("fits");
            let numbers = (first..total).step_by(step);
            let task = send_requests(stream, requests.clone(), started_at, rate, numbers);
            tasks.push(tokio::spawn(task));
        }
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.expect("a connection failed"));
        }
        (times, started_at.elapsed())
    });
    assert!(!times.is_empty(), "all requests were rejected");
    times.sort_unstable();
    let percentile = |per_mille: usize| {
        times[(times.len() * per_mille / 1_000).min(times.len() - 1)].as_micros()
    };
    println!(
        "{} {} {} {} {} {}",
        times.len(),
        percentile(500),
        percentile(990),
        percentile(999),
        took.as_micros(),
        usize::try_from(total).expect("fits") - times.len()
    );
}

/// Connects to a server that may still be starting.
async fn connect(port: u16, patience: Duration) -> TcpStream {
    let started_at = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Ok(stream) => {
                stream.set_nodelay(true).expect("cannot set TCP_NODELAY");
                return stream;
            }
            Err(error) => assert!(started_at.elapsed() < patience, "cannot connect: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Splits the file into its requests.
fn parse_requests(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let length = std::str::from_utf8(&bytes[..end]).expect("invalid length");
        let (request, rest) = bytes[end + 1..].split_at(length.parse().expect("invalid length"));
        requests.push(request.to_vec());
        bytes = rest;
    }
    assert!(!requests.is_empty(), "FILE contains no request");
    requests
}

/// Sends the requests with these numbers over one connection and returns their latencies. A rate of 0 is as fast as possible.
async fn send_requests(
    mut stream: TcpStream,
    requests: Arc<Vec<Vec<u8>>>,
    started_at: Instant,
    rate: u32,
    numbers: impl Iterator<Item = u32>,
) -> Vec<Duration> {
    let mut buffer = vec![0; 1 << 20];
    let mut times = Vec::new();
    for number in numbers {
        let mut due = Instant::now();
        if rate > 0 {
            due = started_at + Duration::from_secs(1) * number / rate;
            if due > Instant::now() {
                tokio::time::sleep_until(due.into()).await;
                due = Instant::now();
            }
        }
        let index = usize::try_from(number).expect("fits");
        let request = &requests[index % requests.len()];
        stream.write_all(request).await.expect("cannot send");
        if read_response(&mut stream, &mut buffer).await {
            times.push(due.elapsed());
        }
    }
    times
}

/// Reads one response. Returns false if the service was overloaded (503); any other status than 20x is an error.
async fn read_response(stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
    let mut read = 0;
    loop {
        let more = stream
            .read(&mut buffer[read..])
            .await
            .expect("cannot receive");
        assert!(more > 0, "the connection was closed");
        read += more;
        let text = &buffer[..read];
        let Some(header) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let header = std::str::from_utf8(&text[..header]).expect("the header is not UTF-8");
        let is_rejected = header.starts_with("HTTP/1.1 503");
        assert!(
            is_rejected || header.starts_with("HTTP/1.1 20"),
            "{}",
            String::from_utf8_lossy(text)
        );
        let length = header
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length
            .and_then(|length| length.parse().ok())
            .expect("invalid length");
        if read >= header.len() + 4 + length {
            return !is_rejected;
        }
    }
}
