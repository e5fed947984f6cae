//! Connection limits: slow peers must not keep others from being served.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::harness::{process::http_get, service::Service, wait_until};

const MAX_CONNECTIONS: usize = 200;
const MAX_PER_ADDRESS: usize = 20;
const OPEN: &str = "perennial_connections_open{listener=\"api\"}";

async fn start() -> (Service, SocketAddr) {
    let service = Service::start_with(|variables| {
        let number = |number: usize| number.to_string();
        variables.insert("PERENNIAL_CONNECTIONS", number(MAX_CONNECTIONS));
        variables.insert("PERENNIAL_CONNECTIONS_PER_PEER", number(MAX_PER_ADDRESS));
    })
    .await;
    let address = service.server.url.replace("http://", "").parse().unwrap();
    (service, address)
}

/// Connects from an address of this machine and sends the start of a request.
async fn connect(from: Ipv4Addr, to: SocketAddr, start: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    stream.write_all(start.as_bytes()).await.unwrap();
    stream
}

/// Opens as many connections as eleven addresses may have, which is more than the total limit.
async fn connect_from_eleven_addresses(to: SocketAddr, start: &str) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for address in 0..11 {
        for _ in 0..MAX_PER_ADDRESS {
            let from = Ipv4Addr::new(127, 0, 1, 1 + address);
            streams.push(connect(from, to, start).await);
        }
    }
    streams
}

/// Asserts that requests over new connections are served without waiting for a timeout.
async fn assert_served_promptly(service: &Service) {
    for _ in 0..20 {
        let started = Instant::now();
        let (status, _) = http_get(&service.server.url, "/docs/errors").await.unwrap();
        let time = started.elapsed();
        assert_eq!(status, 200);
        assert!(time < Duration::from_secs(1), "{time:?}");
    }
}

#[tokio::test]
async fn half_sent_headers_from_eleven_addresses_do_not_delay_others() {
    let (service, address) = start().await;
    let slow = connect_from_eleven_addresses(address, "GET / HTTP/1.1\r\nx: ").await;
    assert_served_promptly(&service).await;
    let open = service.server.metric(OPEN).await.unwrap();
    assert!(open > 150.0, "{open} connections are open");
    let evicted = "perennial_shed_total{by=\"connections\"}";
    assert!(service.server.metric(evicted).await.unwrap() > 0.0);
    drop(slow);
}

#[tokio::test]
async fn half_sent_bodies_from_eleven_addresses_do_not_delay_others() {
    let (service, address) = start().await;
    let (_, client) = service.create_client(&["--kind", "publishable"]);
    let start = format!(
        "POST /authentication/sign-in HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    let slow = connect_from_eleven_addresses(address, &start).await;
    assert_served_promptly(&service).await;
    drop(slow);
}

#[tokio::test]
async fn idle_connections_do_not_delay_others() {
    let (service, address) = start().await;
    let request = "GET /docs/errors/internal HTTP/1.1\r\nhost: x\r\n\r\n";
    let idle = connect_from_eleven_addresses(address, request).await;
    assert_served_promptly(&service).await;
    drop(idle);
}

#[tokio::test]
async fn connections_above_the_limit_of_an_address_are_closed() {
    let (service, address) = start().await;
    let from = Ipv4Addr::new(127, 0, 1, 1);
    let mut allowed = Vec::new();
    for _ in 0..MAX_PER_ADDRESS {
        allowed.push(connect(from, address, "GET").await);
    }
    let full = format!("{MAX_PER_ADDRESS}");
    wait_until("all are counted", Duration::from_secs(5), async || {
        let open = service.server.metric(OPEN).await.unwrap();
        open.to_string() == full
    })
    .await;
    let mut refused = connect(from, address, "").await;
    let closed = tokio::time::timeout(Duration::from_secs(2), refused.read(&mut [0])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    assert_served_promptly(&service).await;
    drop(allowed);
}
