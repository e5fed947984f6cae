//! `perennial relay`: publishes each event once and in order, also after a crash of the relay or of NATS.
//!
//! `EVENTS` and `KILLS` set the size of the longest test; `just prove relay-kills` uses 100,000 and 50.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use bytes::Bytes;
use perennial::{
    randomness::Randomness,
    relay::{EventStream, NatsStream, OutgoingEvent, StreamError},
};
use perennial_domain::{EventId, EventKind, Id, TenantId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::harness::{
    env_number,
    nats::NatsServer,
    process::{Process, run_err, run_ok},
    service::Service,
    wait_until,
};

const STREAM: &str = "EVENTS";
const TENANTS: usize = 3;

/// A service with several tenants, and a NATS server.
struct RelayFixture {
    nats: NatsServer,
    database: Client,
    tenants: Vec<Uuid>,
    service: Service,
}

impl RelayFixture {
    async fn start() -> Self {
        let service = Service::start().await;
        for name in ["a", "b"] {
            run_ok(&service.variables, &["tenant", "create", "--name", name]);
        }
        let database = service.database.connect().await;
        let sql = "SELECT tenant_id FROM tenants";
        let rows = database.query(sql, &[]).await.unwrap();
        Self {
            nats: NatsServer::start().await,
            database,
            tenants: rows.iter().map(|row| row.get(0)).collect(),
            service,
        }
    }

    fn relay(&self) -> Process {
        let url = self.nats.url();
        let arguments = ["relay", "--to", &url, "--stream", STREAM];
        Process::spawn(&self.service.variables, &arguments)
    }

    /// Inserts this many events, spread over the tenants, in several transactions.
    async fn insert_events(&self, count: usize) {
        let sql = "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
             SELECT $1, now(), gen_random_uuid(), CASE number % 3 WHEN 0 THEN 'plan.updated' WHEN 1 THEN 'user.created'
                ELSE 'client.updated' END, gen_random_uuid(), jsonb_build_object('number', number)
             FROM generate_series(1, $2::bigint) AS number";
        for part in 0..10 {
            let tenant = self.tenants[part % TENANTS];
            let count = (count / 10) as i64;
            self.database
                .execute(sql, &[&tenant, &count])
                .await
                .unwrap();
        }
    }

    /// Waits until the log contains all events, and returns the ids of those that are relayed, by tenant and
    /// in order.
    async fn expected(&self) -> HashMap<String, Vec<String>> {
        let limit = Duration::from_mins(1);
        wait_until("all events have positions", limit, async || {
            let missing = "SELECT count(*) FROM events
                 WHERE NOT EXISTS (SELECT FROM event_log WHERE event_id = events.id)";
            self.service.count(missing).await == 0
        })
        .await;
        let sql = "SELECT tenant_id, event_id FROM event_log
             WHERE kind !~ '^(tenant|client|provider)\\.' ORDER BY tenant_id, position";
        let rows = self.database.query(sql, &[]).await.unwrap();
        let mut expected: HashMap<String, Vec<String>> = HashMap::new();
        for row in rows {
            let (tenant, event): (Uuid, Uuid) = (row.get(0), row.get(1));
            let (tenant, event) = (TenantId::new(tenant), EventId::new(event));
            let events = expected.entry(tenant.to_string()).or_default();
            events.push(event.to_string());
        }
        expected
    }

    /// Waits until the stream has this many messages, and checks that it contains exactly these events.
    async fn assert_published(&self, expected: &HashMap<String, Vec<String>>) {
        let count = expected.values().map(Vec::len).sum::<usize>() as u64;
        let limit = Duration::from_mins(1);
        wait_until("all events are published", limit, async || {
            self.nats.last_sequence(STREAM).await >= count
        })
        .await;
        // Longer than the relay waits for new events.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let mut published: HashMap<String, Vec<String>> = HashMap::new();
        for message in self.nats.messages(STREAM).await {
            let body: Value = serde_json::from_slice(&message.payload).unwrap();
            let id = body["id"].as_str().unwrap().to_owned();
            let header = |name: &str| message.headers.get(name).unwrap().as_str().to_owned();
            assert_eq!(header("Nats-Msg-Id"), id);
            assert_eq!(header("Perennial-Position"), body["position"].to_string());
            let parts: Vec<&str> = message.subject.splitn(3, '.').collect();
            let [prefix, tenant, kind] = parts[..] else {
                panic!("{}", message.subject);
            };
            assert_eq!(
                (prefix, kind),
                ("perennial", body["type"].as_str().unwrap())
            );
            published.entry(tenant.to_owned()).or_default().push(id);
        }
        for (tenant, events) in expected {
            let found = published.remove(tenant).unwrap_or_default();
            let unique: HashSet<&String> = found.iter().collect();
            let (found_count, expected_count) = (found.len(), events.len());
            assert_eq!(unique.len(), found_count, "events were published twice");
            assert_eq!(found_count, expected_count, "{tenant}");
            assert!(found == *events, "{tenant}: out of order");
        }
        assert!(published.is_empty(), "{published:?}");
    }
}

fn random(limit: u64) -> u64 {
    u64::from_le_bytes(Randomness.bytes()) % limit
}

#[tokio::test]
async fn killed_relay_publishes_each_event_once_and_in_order() {
    let events: usize = env_number("EVENTS").unwrap_or(2_000);
    let kills: usize = env_number("KILLS").unwrap_or(5);
    let mut fixture = RelayFixture::start().await;
    for round in 0..kills {
        fixture.insert_events(events / kills).await;
        let before = fixture.nats.last_sequence(STREAM).await;
        let mut relay = fixture.relay();
        let limit = Duration::from_secs(30);
        wait_until("the relay publishes", limit, async || {
            fixture.nats.last_sequence(STREAM).await > before
        })
        .await;
        tokio::time::sleep(Duration::from_millis(random(50))).await;
        if round == kills / 2 {
            fixture.nats.restart().await;
        }
        relay.kill();
    }
    let _relay = fixture.relay();
    let expected = fixture.expected().await;
    fixture.assert_published(&expected).await;
}

/// A relay that is suspended for longer than its lease continues where another one has taken over.
#[tokio::test]
async fn suspended_relay_publishes_no_event_twice() {
    let fixture = RelayFixture::start().await;
    let relays = [fixture.relay(), fixture.relay()];
    let signal = |relay: &Process, signal| {
        let id = Pid::from_raw(relay.id() as i32).unwrap();
        kill_process(id, signal).unwrap();
    };
    for round in 0..4 {
        fixture.insert_events(1_000).await;
        let (suspended, other) = (&relays[round % 2], &relays[(round + 1) % 2]);
        tokio::time::sleep(Duration::from_millis(random(100))).await;
        signal(suspended, Signal::STOP);
        let expected = fixture.expected().await;
        let count = expected.values().map(Vec::len).sum::<usize>() as u64;
        let limit = Duration::from_secs(30);
        wait_until("the other relay has published", limit, async || {
            fixture.nats.last_sequence(STREAM).await >= count
        })
        .await;
        fixture.insert_events(1_000).await;
        signal(suspended, Signal::CONT);
        assert!(!other.log().contains("panicked"));
    }
    let expected = fixture.expected().await;
    fixture.assert_published(&expected).await;
}

fn outgoing(tenant: u128, position: i64) -> OutgoingEvent {
    let random = u128::from_le_bytes(Randomness.bytes());
    OutgoingEvent {
        tenant: TenantId::new(Uuid::from_u128(tenant)),
        position,
        id: EventId::new(Uuid::from_u128(random)),
        kind: EventKind::PlanUpdated,
        body: Bytes::from_static(b"{}"),
    }
}

#[tokio::test]
async fn second_publisher_of_a_stream_is_fenced() {
    let nats = NatsServer::start().await;
    let open = async || {
        let (name, subject) = (STREAM.to_owned(), "perennial".to_owned());
        let mut stream = NatsStream::new(nats.url().into(), name, subject);
        let id = stream.open().await.unwrap();
        (stream, id)
    };
    let ((mut first, first_id), (mut second, second_id)) = (open().await, open().await);
    assert_eq!(first_id, second_id);
    let of_one: Vec<OutgoingEvent> = (1..=5).map(|position| outgoing(1, position)).collect();
    let of_two: Vec<OutgoingEvent> = (1..=3).map(|position| outgoing(2, position)).collect();
    first.publish(&of_two[..1]).await.unwrap();
    // The sequence number that the second event expects is right by now, but its predecessor was rejected.
    let fenced = second.publish(&of_one).await;
    assert!(matches!(fenced, Err(StreamError::Fenced)), "{fenced:?}");
    let tenant = of_one[0].tenant;
    assert_eq!(second.last_event(tenant).await.unwrap(), None);
    assert_eq!(nats.last_sequence(STREAM).await, 1);

    second.open().await.unwrap();
    second.publish(&of_one).await.unwrap();
    let last = second.last_event(tenant).await.unwrap().unwrap();
    assert_eq!((last.position, last.id), (5, of_one[4].id));
    let fenced = first.publish(&of_two[1..]).await;
    assert!(matches!(fenced, Err(StreamError::Fenced)), "{fenced:?}");
    first.open().await.unwrap();
    first.publish(&of_two[1..]).await.unwrap();
    assert_eq!(nats.last_sequence(STREAM).await, 8);
}

#[tokio::test]
async fn deleted_messages_are_not_published_again_but_a_new_stream_gets_all() {
    let fixture = RelayFixture::start().await;
    fixture.insert_events(100).await;
    let mut relay = fixture.relay();
    let expected = fixture.expected().await;
    fixture.assert_published(&expected).await;
    let before = fixture.nats.last_sequence(STREAM).await;
    assert!(relay.stop().await, "{}", relay.log());
    let stream = fixture.nats.stream(STREAM).await.unwrap();
    stream.purge().await.unwrap();

    // A relay that stops releases its lease, so the next one starts right away.
    fixture.insert_events(10).await;
    let relayed_before: usize = expected.values().map(Vec::len).sum();
    let expected = fixture.expected().await;
    let relayed: usize = expected.values().map(Vec::len).sum();
    let mut relay = fixture.relay();
    let last = before + (relayed - relayed_before) as u64;
    let limit = Duration::from_secs(10);
    wait_until("new events are published", limit, async || {
        fixture.nats.last_sequence(STREAM).await >= last
    })
    .await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(fixture.nats.last_sequence(STREAM).await, last);
    assert!(relay.stop().await, "{}", relay.log());

    let client = async_nats::connect(fixture.nats.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    jetstream.delete_stream(STREAM).await.unwrap();
    let _relay = fixture.relay();
    fixture.assert_published(&expected).await;
}

/// As after a restore of an older backup.
#[tokio::test]
async fn stream_with_another_history_is_not_continued() {
    let fixture = RelayFixture::start().await;
    fixture.insert_events(100).await;
    let mut relay = fixture.relay();
    let expected = fixture.expected().await;
    fixture.assert_published(&expected).await;
    assert!(relay.stop().await, "{}", relay.log());
    let replace = "UPDATE event_log SET event_id = gen_random_uuid() WHERE tenant_id = $1";
    let tenant = fixture.tenants[0];
    fixture.database.execute(replace, &[&tenant]).await.unwrap();
    let before = fixture.nats.last_sequence(STREAM).await;
    fixture.insert_events(30).await;
    let relay = fixture.relay();
    let limit = Duration::from_secs(10);
    wait_until("the relay reports it", limit, async || {
        relay
            .log()
            .contains("the stream contains an event that the log does not have")
    })
    .await;
    wait_until("other tenants are relayed", limit, async || {
        fixture.nats.last_sequence(STREAM).await > before
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let subject = format!("perennial.{}.", TenantId::new(tenant));
    let messages = fixture.nats.messages(STREAM).await;
    let mut later = messages.iter().filter(|message| message.sequence > before);
    assert!(later.all(|message| !message.subject.starts_with(&subject)));
}

#[tokio::test]
async fn relay_without_a_server_to_publish_to_is_an_error() {
    let service = Service::start().await;
    let output = run_err(&service.variables, &["relay"]);
    assert!(
        output.contains("set --to or PERENNIAL_RELAY_TO"),
        "{output}"
    );
}
