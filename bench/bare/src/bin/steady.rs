//! Sends requests at a steady rate, whether or not the ones before are answered, and says how long answers took.
//!
//!     steady PORT RATE SECONDS CONNECTIONS FILE
//!
//! The file holds requests as they go over the wire, each after a line with its length; after the last one comes the first
//! again. Each connection has its own instants. An answer's time counts from the instant at which its request was due, also
//! when the connection was still waiting for the one before; only what this program itself was late does not count.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a tool of the benchmark: to panic is to say what is wrong"
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
    let mut number = |what: &str| -> u32 {
        let given = arguments.next().and_then(|given| given.parse().ok());
        given.expect(what)
    };
    let port = u16::try_from(number("a port")).expect("a port");
    let (rate, seconds, connections) = (
        number("a rate"),
        number("a number of seconds"),
        number("a number of connections"),
    );
    let file = arguments.next().expect("a file of requests");
    let requests = Arc::new(read(&std::fs::read(file).expect("its bytes")));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let mut times = runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(("127.0.0.1", port)).await;
            let stream = stream.expect("a connection");
            stream.set_nodelay(true).expect("an option");
            streams.push(stream);
        }
        let begun = Instant::now() + Duration::from_millis(100);
        let mut lines = Vec::new();
        for (first, stream) in (0..connections).zip(streams) {
            let step = usize::try_from(connections).expect("few");
            let numbers = (first..rate * seconds).step_by(step);
            let line = line(stream, requests.clone(), begun, rate, numbers);
            lines.push(tokio::spawn(line));
        }
        let mut times = Vec::new();
        for line in lines {
            times.extend(line.await.expect("a connection that lasts"));
        }
        times
    });
    times.sort_unstable();
    let within =
        |share: usize| times[(times.len() * share / 1_000).min(times.len() - 1)].as_micros();
    println!(
        "{} {} {} {}",
        times.len(),
        within(500),
        within(990),
        within(999)
    );
}

/// The requests of a file.
fn read(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let length = std::str::from_utf8(&bytes[..end]).expect("a length");
        let (request, rest) = bytes[end + 1..].split_at(length.parse().expect("a length"));
        requests.push(request.to_vec());
        bytes = rest;
    }
    assert!(!requests.is_empty(), "there are requests");
    requests
}

/// One connection, which sends the requests with these numbers; how long each answer took.
async fn line(
    mut stream: TcpStream,
    requests: Arc<Vec<Vec<u8>>>,
    begun: Instant,
    rate: u32,
    numbers: impl Iterator<Item = u32>,
) -> Vec<Duration> {
    let mut buffer = vec![0; 1 << 20];
    let mut times = Vec::new();
    for number in numbers {
        let mut due = begun + Duration::from_secs(1) * number / rate;
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
            due = Instant::now();
        }
        let index = usize::try_from(number).expect("few");
        let request = &requests[index % requests.len()];
        stream.write_all(request).await.expect("a peer that reads");
        answered(&mut stream, &mut buffer).await;
        times.push(due.elapsed());
    }
    times
}

/// Reads an answer, which must be a good one.
async fn answered(stream: &mut TcpStream, buffer: &mut [u8]) {
    let mut read = 0;
    loop {
        let more = stream
            .read(&mut buffer[read..])
            .await
            .expect("a peer that answers");
        assert!(more > 0, "closed");
        read += more;
        let text = &buffer[..read];
        let Some(header) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let header = std::str::from_utf8(&text[..header]).expect("a header");
        assert!(
            header.starts_with("HTTP/1.1 20"),
            "{}",
            String::from_utf8_lossy(text)
        );
        let length = header
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length
            .and_then(|length| length.parse().ok())
            .expect("a length");
        if read >= header.len() + 4 + length {
            return;
        }
    }
}
