//! HTTP over one TCP connection with little overhead, for tests that measure time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Mutex,
};

pub struct RawConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl RawConnection {
    pub async fn open(url: &str) -> Self {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: vec![0; 16_384],
        }
    }

    /// Sends a request and returns the response, headers and body.
    pub async fn send(&mut self, request: &[u8]) -> &str {
        self.stream.write_all(request).await.unwrap();
        let mut read = 0;
        loop {
            let more = self.stream.read(&mut self.buffer[read..]).await.unwrap();
            assert!(more > 0, "closed");
            read += more;
            let text = std::str::from_utf8(&self.buffer[..read]).unwrap();
            let length = text.find("content-length: ").map(|at| {
                let rest = &text[at + 16..];
                rest[..rest.find('\r').unwrap()].parse::<usize>().unwrap()
            });
            let body = text.find("\r\n\r\n").map(|at| at + 4);
            if let (Some(length), Some(body)) = (length, body)
                && read >= body + length
            {
                break;
            }
        }
        std::str::from_utf8(&self.buffer[..read]).unwrap()
    }
}

/// Sends requests at a fixed rate, whether or not earlier ones have finished. Returns the 50th and
/// 99th percentile of the response times, measured from when each request was due.
pub async fn send_at_rate(
    url: &str,
    requests: &Arc<Vec<Vec<u8>>>,
    rate: u32,
    time: Duration,
) -> (Duration, Duration) {
    let mut connections = Vec::new();
    for _ in 0..32 {
        connections.push(Arc::new(Mutex::new(RawConnection::open(url).await)));
    }
    let started = Instant::now();
    let mut sent = Vec::new();
    for number in 0_u32.. {
        let due = started + Duration::from_secs(1) / rate * number;
        if due > started + time {
            break;
        }
        tokio::time::sleep_until(due.into()).await;
        let index = usize::try_from(number).unwrap();
        let connection = connections[index % connections.len()].clone();
        let requests = requests.clone();
        sent.push(tokio::spawn(async move {
            let mut connection = connection.lock().await;
            let response = connection.send(&requests[index % requests.len()]).await;
            assert!(response.starts_with("HTTP/1.1 200"), "{response}");
            due.elapsed()
        }));
    }
    let mut times = Vec::new();
    for request in sent {
        times.push(request.await.unwrap());
    }
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}
