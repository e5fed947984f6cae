//! Receives webhooks for a benchmark, and prints a line for each: the number of the endpoint, the position of the event, when it
//! occurred, when it was recorded, and when it arrived in microseconds since the Unix epoch.
//!
//!     receiver PORT ENDPOINTS
//!
//! Endpoint N has its own address, 127.0.N/250.N%250+1. The path is the behavior and the number: `/ok/7` responds 204, `/silent/7`
//! never responds, `/slow/7` sends one byte of its response per second, and `/reset/7` resets the connection. Only `/ok` prints.

#![allow(
    clippy::allow_attributes,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark tool: a panic message is enough"
)]

use std::{
    io::Write,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const PRINT_INTERVAL: Duration = Duration::from_millis(20);

type Lines = Arc<Mutex<Vec<u8>>>;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |message: &str| -> u16 {
        let argument = arguments.next().and_then(|argument| argument.parse().ok());
        argument.expect(message)
    };
    let port = number("PORT must be a number");
    let endpoints = number("ENDPOINTS must be a number");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_all()
        .build()
        .expect("cannot start the runtime");
    runtime.block_on(async {
        let lines = Lines::default();
        for endpoint in 0..endpoints {
            let [high, low] = [endpoint / 250, endpoint % 250 + 1]
                .map(|part| u8::try_from(part).expect("too many endpoints"));
            let listener = TcpListener::bind((Ipv4Addr::new(127, 0, high, low), port)).await;
            tokio::spawn(accept(listener.expect("cannot listen"), lines.clone()));
        }
        loop {
            tokio::time::sleep(PRINT_INTERVAL).await;
            let text = std::mem::take(&mut *lines.lock().expect("never poisoned"));
            let mut out = std::io::stdout().lock();
            out.write_all(&text).expect("cannot print");
            out.flush().expect("cannot print");
        }
    });
}

async fn accept(listener: TcpListener, lines: Lines) {
    loop {
        // Fails if the client has closed the connection already.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(stream, lines.clone()));
        }
    }
}

/// Responds to the requests of one connection until it ends.
async fn receive(mut stream: TcpStream, lines: Lines) {
    stream.set_nodelay(true).expect("cannot set TCP_NODELAY");
    let mut buffer = Vec::with_capacity(8 * 1024);
    while let Some(length) = read_request(&mut stream, &mut buffer).await {
        let text = std::str::from_utf8(&buffer[..length]).expect("the request is not UTF-8");
        let path = between(text, "POST /", " ");
        let (behavior, endpoint) = path.split_once('/').expect("the path has no number");
        match behavior {
            "ok" => {
                let fields = [
                    endpoint,
                    between(text, "\"position\":", ","),
                    between(text, "\"occurred_at\":\"", "\""),
                    between(text, "\"recorded_at\":\"", "\""),
                ];
                let line = format!("{} {}\n", fields.join(" "), now_micros());
                { lines.lock().expect("never poisoned") }.extend_from_slice(line.as_bytes());
                let response = b"HTTP/1.1 204 No Content\r\n\r\n";
                if stream.write_all(response).await.is_err() {
                    return;
                }
            }
            "silent" => std::future::pending().await,
            "slow" => return send_slowly(&mut stream).await,
            _ => {
                let _ = stream.set_zero_linger();
                return;
            }
        }
        buffer.drain(..length);
    }
}

/// Reads until the buffer starts with a whole request, and returns its length. `None` at the end of the connection.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let header = std::str::from_utf8(&buffer[..end]).expect("the header is not UTF-8");
            let length = between(header, "content-length: ", "\r");
            let length: usize = length.parse().expect("invalid length");
            if buffer.len() >= end + 4 + length {
                return Some(end + 4 + length);
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

async fn send_slowly(stream: &mut TcpStream) {
    let response = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    for byte in response.iter().chain(&[b'x'; 1000]) {
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Returns the part of the text after `start` and up to `end`, or up to the end of the text.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).expect("a part is missing");
    rest.split_once(end).map_or(rest, |(part, _)| part)
}

fn now_micros() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("the clock is before 1970").as_micros()
}
