//! One connection, spoken to by hand: a caller that costs next to nothing, for tests that measure time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Mutex,
};

pub struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Line {
    /// To the instance with this URL.
    pub async fn to(url: &str) -> Self {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: vec![0; 16_384],
        }
    }

    /// Sends a request and reads its answer, header and body.
    pub async fn ask(&mut self, request: &[u8]) -> &str {
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

/// Sends requests at a fixed rate, whether or not the ones before are answered; answers the times within which half and
/// 99 of 100 of them were, counted from when each was due.
pub async fn at_rate(
    url: &str,
    requests: &Arc<Vec<Vec<u8>>>,
    rate: u32,
    time: Duration,
) -> (Duration, Duration) {
    let mut lines = Vec::new();
    for _ in 0..32 {
        lines.push(Arc::new(Mutex::new(Line::to(url).await)));
    }
    let begun = Instant::now();
    let mut sent = Vec::new();
    for number in 0_u32.. {
        let due = begun + Duration::from_secs(1) / rate * number;
        if due > begun + time {
            break;
        }
        tokio::time::sleep_until(due.into()).await;
        let index = usize::try_from(number).unwrap();
        let line = lines[index % lines.len()].clone();
        let requests = requests.clone();
        sent.push(tokio::spawn(async move {
            let mut line = line.lock().await;
            let answer = line.ask(&requests[index % requests.len()]).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            due.elapsed()
        }));
    }
    let mut times = Vec::new();
    for one in sent {
        times.push(one.await.unwrap());
    }
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}
