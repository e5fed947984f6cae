//! A webhook endpoint on a real socket. It keeps every request and responds as the test wants.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::reserve_port;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedWebhook {
    pub at: Instant,
    pub id: String,
    pub timestamp: String,
    pub signatures: Vec<String>,
    pub content_type: String,
    pub text: String,
}

impl ReceivedWebhook {
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub fn position(&self) -> i64 {
        self.body()["data"]["position"].as_i64().unwrap()
    }

    pub fn subject(&self) -> String {
        self.body()["data"]["subject_id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Returns whether one of the signatures is of this secret, computed without code of the service.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key = BASE64_STANDARD
            .decode(secret.strip_prefix("whsec_").unwrap())
            .unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{}.{}.{}", self.id, self.timestamp, self.text).as_bytes());
        let expected = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        self.signatures.contains(&expected)
    }
}

/// How the endpoint responds to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A status and further header lines, each with a line end.
    Status(u16, &'static str),
    /// The same after a pause.
    Late(Duration, u16),
    /// Headers, but never the end of the body.
    Stalled,
    /// A closed connection.
    Reset,
}

type Rule = Box<dyn Fn(&ReceivedWebhook) -> Reply + Send + Sync>;

struct ReceiverState {
    open: Mutex<JoinSet<()>>,
    connections: AtomicUsize,
    received: Mutex<Vec<ReceivedWebhook>>,
    rule: Mutex<Rule>,
    in_flight: Mutex<(usize, usize)>,
}

pub struct WebhookReceiver {
    pub url: String,
    state: Arc<ReceiverState>,
    accepting: JoinHandle<()>,
}

impl WebhookReceiver {
    /// Listens on 127.0.0.1, and responds 204 to everything.
    pub async fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST, reserve_port(), None).await
    }

    /// Listens with TLS.
    pub async fn start_tls(config: ServerConfig) -> Self {
        let tls = TlsAcceptor::from(Arc::new(config));
        Self::start_at(Ipv4Addr::LOCALHOST, reserve_port(), Some(tls)).await
    }

    /// Listens on another address.
    pub async fn start_on(address: Ipv4Addr, port: u16) -> Self {
        Self::start_at(address, port, None).await
    }

    async fn start_at(address: Ipv4Addr, port: u16, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((address, port)).await.unwrap();
        let state = Arc::new(ReceiverState {
            open: Mutex::default(),
            connections: AtomicUsize::new(0),
            received: Mutex::default(),
            rule: Mutex::new(Box::new(|_| Reply::Status(204, ""))),
            in_flight: Mutex::default(),
        });
        let scheme = if tls.is_some() { "https" } else { "http" };
        let own = state.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                own.connections.fetch_add(1, Ordering::Relaxed);
                let (state, tls) = (own.clone(), tls.clone());
                let serving = async move {
                    match tls {
                        None => serve(stream, state).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, state).await;
                            }
                        }
                    }
                };
                let mut open = own.open.lock().unwrap();
                while open.try_join_next().is_some() {}
                open.spawn(serving);
            }
        });
        Self {
            url: format!("{scheme}://{address}:{port}/hook"),
            state,
            accepting,
        }
    }

    /// Responds by this rule from now on.
    pub fn respond(&self, rule: impl Fn(&ReceivedWebhook) -> Reply + Send + Sync + 'static) {
        *self.state.rule.lock().unwrap() = Box::new(rule);
    }

    pub fn received(&self) -> Vec<ReceivedWebhook> {
        self.state.received.lock().unwrap().clone()
    }

    /// Returns the number of connections so far, also those without a request.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Closes all connections, so that the next request opens another one.
    pub fn close_connections(&self) {
        self.state.open.lock().unwrap().abort_all();
    }

    pub fn count(&self) -> usize {
        self.state.received.lock().unwrap().len()
    }

    /// Returns the highest number of requests at a time.
    pub fn max_in_flight(&self) -> usize {
        self.state.in_flight.lock().unwrap().1
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<ReceiverState>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let reply = (state.rule.lock().unwrap())(&request);
        state.received.lock().unwrap().push(request);
        {
            let mut in_flight = state.in_flight.lock().unwrap();
            in_flight.0 += 1;
            in_flight.1 = in_flight.1.max(in_flight.0);
        }
        let is_open = send_reply(&mut stream, reply).await;
        state.in_flight.lock().unwrap().0 -= 1;
        if !is_open {
            return;
        }
    }
}

async fn send_reply(stream: &mut (impl AsyncWrite + Unpin), reply: Reply) -> bool {
    let (status, headers) = match reply {
        Reply::Status(status, headers) => (status, headers),
        Reply::Late(pause, status) => {
            tokio::time::sleep(pause).await;
            (status, "")
        }
        Reply::Stalled => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab";
            let _ = stream.write_all(head).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
            return false;
        }
        Reply::Reset => return false,
    };
    let response = format!("HTTP/1.1 {status} X\r\n{headers}content-length: 0\r\n\r\n");
    stream.write_all(response.as_bytes()).await.is_ok()
}

async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Option<ReceivedWebhook> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|part| part == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let header = |name: &str| {
        let line = head.lines().find(|line| {
            line.split_once(':')
                .is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
        });
        line.map_or("", |line| line.split_once(':').unwrap().1.trim())
            .to_owned()
    };
    let length: usize = header("content-length").parse().unwrap_or(0);
    while buffer.len() < end + 4 + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8(buffer[end + 4..end + 4 + length].to_vec()).unwrap();
    buffer.drain(..end + 4 + length);
    Some(ReceivedWebhook {
        at: Instant::now(),
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signatures: header("webhook-signature")
            .split(' ')
            .map(str::to_owned)
            .collect(),
        content_type: header("content-type"),
        text,
    })
}
