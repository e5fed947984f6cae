//! Events without the service, and a reader of the log.

use std::{collections::BTreeMap, sync::Arc};

use perennial::{
    db::{CellDatabase, ConnectOptions, ConnectionLimits, Error},
    events::log::{self, Epoch, EventFilter, LogHead, LoggedEvent, sequencer},
};
use perennial_domain::{Id, TenantId};
use tokio_postgres::Client;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

/// Opens a database as the service does.
pub fn open(url: &str) -> Arc<CellDatabase> {
    let options = ConnectOptions::parse(&url.into()).unwrap();
    let limits = ConnectionLimits {
        pool: 4,
        pipelined: 0,
    };
    Arc::new(CellDatabase::start("home", &options, limits).unwrap())
}

/// Returns the URL of another database on the same server.
pub fn url_of(name: &str, url: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

/// Runs a sequencer in this process until the returned value is dropped.
pub fn start_sequencer(database: &Arc<CellDatabase>) -> DropGuard {
    let stop = CancellationToken::new();
    let database = database.clone();
    let run = async move { sequencer::run(&database).await };
    tokio::spawn(stop.clone().run_until_cancelled_owned(run));
    stop.drop_guard()
}

/// Returns the tenant of a number.
pub fn tenant(number: u32) -> TenantId {
    TenantId::new(Uuid::from_u128(u128::from(number) + 1))
}

/// An INSERT of `count` events of tenants 0 to `tenants - 1`, in turn.
pub fn insert_events(count: u32, tenants: u32) -> String {
    format!(
        "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
         SELECT lpad(to_hex(n % {tenants} + 1), 32, '0')::uuid, now(), gen_random_uuid(), 'plan.updated',
            md5(n::text)::uuid, jsonb_build_object('n', n)
         FROM generate_series(0, {count} - 1) AS n"
    )
}

/// Stores that all events have positions.
pub async fn set_numbered(client: &Client) {
    let sql = "UPDATE event_log_state SET snapshot = pg_current_snapshot()";
    client.batch_execute(sql).await.unwrap();
}

/// A reader of one tenant's log, which checks that positions are consecutive.
pub struct LogReader {
    pub tenant: TenantId,
    pub position: i64,
    pub epoch: Option<Epoch>,
    /// The positions by event.
    pub read: BTreeMap<Uuid, i64>,
}

impl LogReader {
    pub fn new(tenant: TenantId) -> Self {
        Self {
            tenant,
            position: 0,
            epoch: None,
            read: BTreeMap::new(),
        }
    }

    /// Reads up to the head and returns the new events.
    pub async fn read(&mut self, database: &CellDatabase) -> Result<Vec<LoggedEvent>, Error> {
        let mut connection = database.connection().await?;
        let mut events = Vec::new();
        loop {
            let filter = EventFilter::default();
            let page =
                log::read_after(&mut connection, self.tenant, self.position, &filter, 200).await?;
            assert_eq!(*self.epoch.get_or_insert(page.epoch), page.epoch);
            for event in page.events {
                assert_eq!(event.position, self.position + 1, "a position was skipped");
                self.position = event.position;
                let before = self.read.insert(event.id.uuid(), event.position);
                assert_eq!(before, None, "{} was read twice", event.id);
                events.push(event);
            }
            assert_eq!(page.read_to, self.position);
            if self.position >= page.last_position {
                return Ok(events);
            }
        }
    }
}

/// Returns the extent of a tenant's log.
pub async fn head(database: &CellDatabase, tenant: TenantId) -> LogHead {
    let connection = database.connection().await.unwrap();
    log::head(&connection, tenant).await.unwrap()
}

/// Asserts that each event has one entry, and that the positions of each tenant are consecutive. Returns the number of
/// events, which includes the creation of the default tenant.
pub async fn assert_log_is_complete(client: &Client) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM event_log),
        (SELECT count(*) FROM events JOIN event_log ON event_log.event_id = events.id AND event_log.at = events.at
            AND event_log.tenant_id = events.tenant_id),
        (SELECT count(DISTINCT event_id) FROM event_log),
        (SELECT coalesce(sum(last_position - removed_to), 0)::bigint FROM event_log_tenants),
        (SELECT count(*) FROM event_log JOIN event_log_tenants USING (tenant_id)
            WHERE position <= removed_to OR position > last_position)";
    let row = client.query_one(sql, &[]).await.unwrap();
    let numbers: Vec<i64> = (0..6).map(|column| row.get(column)).collect();
    let [events, entries, joined, different, positions, outside] = numbers[..] else {
        unreachable!()
    };
    assert_eq!(
        [entries, joined, different, positions, outside],
        [events, events, events, events, 0],
        "entries, entries with their event, different events, positions, positions outside the log"
    );
    events
}

/// Waits until no event waits for a position.
pub async fn wait_until_numbered(client: &Client, limit: std::time::Duration) {
    let sql = "SELECT (SELECT count(*) FROM events) = (SELECT count(*) FROM event_log)";
    crate::harness::wait_until("all events have positions", limit, async || {
        client.query_one(sql, &[]).await.unwrap().get(0)
    })
    .await;
}
