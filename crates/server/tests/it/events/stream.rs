//! `GET /events` as a stream of server-sent events.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use super::feed::create_plan;
use crate::harness::{
    api::ApiClient,
    event_source::{EventSource, request_stream},
    process::run_ok,
    service::Service,
    wait_until,
};

/// Until an event that was just committed must arrive.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

struct StreamFixture {
    service: Service,
    client: String,
    client_id: String,
    api: ApiClient,
}

impl StreamFixture {
    async fn start() -> Self {
        let service = Service::start().await;
        let (client, client_id) = service.create_client(&[]);
        let api = service.anonymous().with("client-id", &client_id);
        Self {
            service,
            client,
            client_id,
            api,
        }
    }

    async fn open(&self, query: &str, last: Option<&str>) -> EventSource {
        EventSource::open(&self.service.server.url, &self.client_id, query, last).await
    }

    async fn wait_for_readers(&self, count: f64) {
        wait_until(
            "the number of streams",
            Duration::from_secs(20),
            async || self.service.server.metric("perennial_event_readers").await == Some(count),
        )
        .await;
    }
}

#[tokio::test]
async fn stream_has_the_events_of_the_list() {
    let fixture = StreamFixture::start().await;
    let plan = create_plan(&fixture.api, "pro").await;
    let mut stream = fixture.open("", None).await;
    let first = stream.next_event(EVENT_TIMEOUT).await;
    assert_eq!(first.event.as_deref(), Some("plan.created"));
    let data = first.data.unwrap();
    assert_eq!(data["subject_id"], plan["id"]);
    assert_eq!(fixture.api.get_json("/events").await["data"], json!([data]));
    // A stream that starts now has a cursor before its first event.
    let mut new = fixture.open("?after=now&types=plan.*", None).await;
    let start = new.next_within(EVENT_TIMEOUT).await;
    assert!(start.has_comment && start.data.is_none());
    let user = json!({"email": "ada@example.com"});
    fixture.api.create("/users", &user).await;
    let team = create_plan(&fixture.api, "team").await;
    let event = new.next_event(EVENT_TIMEOUT).await;
    assert_eq!(event.data.unwrap()["subject_id"], team["id"]);
    // Every id is a cursor, of streams and of lists.
    let cursor = start.id.unwrap();
    let page = fixture
        .api
        .get_json(&format!("/events?after={cursor}"))
        .await;
    assert_eq!(page["data"][1]["subject_id"], team["id"]);
    // `Last-Event-ID` is newer than the URL that a browser repeats.
    let mut resumed = fixture.open("", Some(&cursor)).await;
    let event = resumed.next_event(EVENT_TIMEOUT).await;
    assert_eq!(event.event.as_deref(), Some("user.created"));

    let url = &fixture.service.server.url;
    let response = request_stream(url, &fixture.client_id, "", Some("abc"))
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
    let problem: serde_json::Value = response.json().await.unwrap();
    assert_eq!(problem["code"], "invalid_cursor");
}

/// A reader that reconnects again and again while events are recorded misses none and gets none twice.
#[tokio::test]
async fn reconnecting_reader_gets_every_event_once() {
    let fixture = StreamFixture::start().await;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let api = fixture.api.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    create_plan(&api, &format!("plan-{writer}-{number}")).await;
                }
            })
        })
        .collect();
    let (mut last, mut positions) = (None, Vec::new());
    while positions.len() < 200 {
        let mut stream = fixture.open("", last.as_deref()).await;
        // Drops the connection after some events, most of the time in the middle of a part.
        for _ in 0..7 {
            if positions.len() == 200 {
                break;
            }
            let event = stream.next_event(EVENT_TIMEOUT).await;
            positions.push(event.data.unwrap()["position"].as_i64().unwrap());
            last = event.id;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    // Each position is later than the one before, and there are as many as events.
    assert!(positions.is_sorted_by(|a, b| a < b));
    assert_eq!(
        fixture
            .service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.created'")
            .await,
        200
    );
    fixture.wait_for_readers(0.0).await;
}

/// An idle stream gets a comment every 15 seconds, which also moves the cursor past events that its filter excludes. Idle
/// connections are otherwise closed after 10 seconds.
#[tokio::test]
async fn idle_stream_stays_open() {
    let fixture = StreamFixture::start().await;
    let mut stream = fixture.open("?types=user.*&after=now", None).await;
    let start = stream.next_within(EVENT_TIMEOUT).await.id.unwrap();
    create_plan(&fixture.api, "pro").await;
    let opened = Instant::now();
    let comment = stream.next_within(Duration::from_secs(20)).await;
    assert!(comment.has_comment && comment.data.is_none());
    let elapsed = opened.elapsed();
    assert!(elapsed > Duration::from_secs(13), "{elapsed:?}");
    let moved = comment.id.unwrap();
    assert_ne!(start, moved);
    let page = fixture
        .api
        .get_json(&format!("/events?after={moved}"))
        .await;
    assert_eq!(page["data"], json!([]));
    let user = json!({"email": "ada@example.com"});
    fixture.api.create("/users", &user).await;
    let event = stream.next_event(EVENT_TIMEOUT).await;
    assert_eq!(event.event.as_deref(), Some("user.created"));
}

#[tokio::test]
async fn stream_of_a_disabled_client_ends() {
    let fixture = StreamFixture::start().await;
    let mut idle = fixture.open("?after=now", None).await;
    let mut busy = fixture.open("?after=now", None).await;
    let (_, other) = fixture.service.create_client(&[]);
    let other = fixture.service.anonymous().with("client-id", &other);
    let writer = tokio::spawn(async move {
        for number in 0.. {
            create_plan(&other, &format!("plan-{number}")).await;
        }
    });
    busy.next_event(EVENT_TIMEOUT).await;
    run_ok(
        &fixture.service.variables,
        &["client", "disable", &fixture.client],
    );
    let disabled = Instant::now();
    for stream in [&mut idle, &mut busy] {
        // A clean end, not an interrupted response.
        let end = tokio::time::timeout(EVENT_TIMEOUT, async {
            while stream.next().await.unwrap().is_some() {}
        });
        end.await.expect("the stream does not end");
    }
    let elapsed = disabled.elapsed();
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    writer.abort();
    let url = &fixture.service.server.url;
    let response = request_stream(url, &fixture.client_id, "", None)
        .await
        .unwrap();
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn stream_ends_when_the_service_stops() {
    let mut fixture = StreamFixture::start().await;
    let mut stream = fixture.open("?after=now", None).await;
    let start = stream.next_within(EVENT_TIMEOUT).await.id.unwrap();
    let stopping = Instant::now();
    let end = tokio::spawn(async move { while stream.next().await.unwrap().is_some() {} });
    assert!(fixture.service.server.process.stop().await);
    end.await.unwrap();
    assert!(
        stopping.elapsed() < Duration::from_secs(8),
        "{:?}",
        stopping.elapsed()
    );
    // The cursor is valid on the next instance.
    let variables = fixture.service.variables.clone();
    fixture.service.server.restart(&variables).await;
    create_plan(&fixture.api, "pro").await;
    let mut resumed = fixture.open("", Some(&start)).await;
    let event = resumed.next_event(EVENT_TIMEOUT).await;
    assert_eq!(event.event.as_deref(), Some("plan.created"));
}

/// Ends when the log gets another history, so that the client learns it from the next response.
#[tokio::test]
async fn stream_ends_when_the_log_is_restored() {
    let fixture = StreamFixture::start().await;
    create_plan(&fixture.api, "pro").await;
    let mut stream = fixture.open("", None).await;
    let last = stream.next_event(EVENT_TIMEOUT).await.id.unwrap();
    let database = fixture.service.database.connect().await;
    let restored = "UPDATE event_log_state SET epoch = gen_random_uuid()";
    database.batch_execute(restored).await.unwrap();
    let end = tokio::time::timeout(EVENT_TIMEOUT, stream.next()).await;
    assert!(end.unwrap().unwrap().is_none());
    let url = &fixture.service.server.url;
    let response = request_stream(url, &fixture.client_id, "", Some(&last))
        .await
        .unwrap();
    assert_eq!(response.status(), 409);
}

/// Returns the resident memory of a process in KiB.
fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Opens a stream with a small receive buffer and does not read from it.
async fn open_without_reading(url: &str, client_id: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let address = url.trim_start_matches("http://");
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let request = format!(
        "GET /events HTTP/1.1\r\nhost: x\r\nclient-id: {client_id}\r\naccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The service reads events for a stream only as fast as its client does, and disconnects a client that does not read.
#[tokio::test]
async fn streams_that_are_not_read_do_not_use_memory() {
    let fixture = StreamFixture::start().await;
    // 40 MB of events.
    let database = fixture.service.database.connect().await;
    let insert = "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
        SELECT tenant_id, now(), gen_random_uuid(), 'plan.updated', gen_random_uuid(),
            jsonb_build_object('description', repeat('x', 10000))
        FROM tenants, generate_series(1, 4000)";
    database.batch_execute(insert).await.unwrap();
    let last = "SELECT coalesce(max(last_position), 0) FROM event_log_tenants";
    wait_until(
        "events have positions",
        Duration::from_secs(30),
        async || fixture.service.count(last).await >= 4_000,
    )
    .await;
    let process = fixture.service.server.process.id();
    fixture.api.get("/events?limit=200").await;
    let before = resident_kib(process);
    let url = &fixture.service.server.url;
    let mut streams = Vec::new();
    for _ in 0..40 {
        streams.push(open_without_reading(url, &fixture.client_id).await);
    }
    fixture.wait_for_readers(40.0).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let growth = resident_kib(process).saturating_sub(before) / 1024;
    // 40 streams of one page of 50 events, which has 0.5 MB, and its copies.
    assert!(growth < 150, "{growth} MiB");
    // The write timeout is 10 seconds.
    fixture.wait_for_readers(0.0).await;
    let mut stream = streams.pop().unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.starts_with(b"HTTP/1.1 200 OK"));
}
