//! Lookups of sessions that are not cached: they share queries, a revocation in the meantime
//! applies, and a full cache is still right.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::harness::{
    api::ApiClient,
    in_process::InProcessServer,
    process::Variables,
    service::Service,
    stored_sessions::{insert_sessions, issue_access_tokens},
    wait_until,
};

/// An instance without workers, and access tokens of sessions that it has not read yet.
struct ColdInstance {
    service: Service,
    api: ApiClient,
    database: Client,
    tokens: Vec<String>,
}

impl ColdInstance {
    async fn start(sessions: i64, change: impl FnOnce(&mut Variables)) -> Self {
        let service = Service::start_with(|variables| {
            let url = "http://perennial.example".to_owned();
            variables.insert("PERENNIAL_PUBLIC_URL", url);
            variables.insert("PERENNIAL_WORKERS", "0".to_owned());
            change(variables);
        })
        .await;
        let api = service.api(&[]);
        let database = service.database.connect().await;
        insert_sessions(&database, sessions.max(100), "a").await;
        let issuing = InProcessServer::start(&service.variables).await;
        let tokens = issue_access_tokens(&issuing.app, &database, "a", sessions).await;
        Self {
            service,
            api,
            database,
            tokens,
        }
    }

    /// Starts checks of all sessions.
    fn start_checks(&self) -> JoinSet<u16> {
        let mut checks = JoinSet::new();
        for token in self.tokens.clone() {
            let api = self.api.clone();
            checks.spawn(async move { api.check(&token).await.status });
        }
        checks
    }

    /// Checks all sessions, one after the other.
    async fn check_each(&self) -> Vec<u16> {
        let mut statuses = Vec::new();
        for token in &self.tokens {
            statuses.push(self.api.check(token).await.status);
        }
        statuses
    }

    async fn metric(&self, series: &str) -> i64 {
        self.service.server.metric(series).await.unwrap() as i64
    }
}

#[tokio::test]
async fn concurrent_lookups_share_queries() {
    const SESSIONS: i64 = 60;
    let mut cold = ColdInstance::start(SESSIONS, |_| {}).await;
    // Reads the client and the signing keys.
    cold.api.check("x").await;
    let before = cold.service.server.database_uses("lane").await;
    let mut database = cold.service.database.connect().await;
    // Holds back all lookups until all requests wait for one.
    let tx = database.transaction().await.unwrap();
    let lock = "LOCK TABLE users IN ACCESS EXCLUSIVE MODE";
    tx.batch_execute(lock).await.unwrap();
    let checks = cold.start_checks();
    let limit = Duration::from_millis(1_500);
    wait_until("all checks wait", limit, async || {
        cold.metric("perennial_http_requests_in_flight").await >= SESSIONS
    })
    .await;
    tx.commit().await.unwrap();
    let statuses = checks.join_all().await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    // Some of them read clients, signing keys and the master key's state.
    let queries = cold.service.server.database_uses("lane").await - before;
    assert!(queries <= 20, "{queries} queries");

    // All sessions are cached now. The cache is not used while a heartbeat is late.
    let series = "perennial_session_checks_total{by=\"database\"}";
    let reads = cold.metric(series).await;
    cold.tokens.truncate(20);
    assert_eq!(cold.check_each().await, [200; 20]);
    let more = cold.metric(series).await - reads;
    assert!(more < 10, "{more} of 20");
}

/// Makes each lookup wait for the advisory lock 42, after it has read the session.
const WAIT_IN_LOOKUP: &str = "
    CREATE FUNCTION wait_for_lock() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN true; END $$;
    ALTER TABLE users RENAME TO stored_users;
    CREATE VIEW users AS SELECT * FROM stored_users WHERE wait_for_lock()";

#[tokio::test]
async fn session_revoked_during_a_batched_lookup_is_not_cached() {
    let cold = ColdInstance::start(20, |_| {}).await;
    let sql = |text: &'static str| cold.database.batch_execute(text);
    sql(WAIT_IN_LOOKUP).await.unwrap();
    sql("SELECT pg_advisory_lock(42)").await.unwrap();
    let checks = cold.start_checks();
    let limit = Duration::from_millis(1_500);
    wait_until("a lookup has read its session", limit, async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'advisory'";
        cold.service.count(waiting).await > 0
    })
    .await;
    let revoke = "BEGIN; UPDATE sessions SET ended_at = now();
        SELECT pg_notify('perennial_sessions', id::text) FROM sessions; COMMIT";
    sql(revoke).await.unwrap();
    // The notifications arrive before the result of the lookup.
    tokio::time::sleep(Duration::from_millis(300)).await;
    sql("SELECT pg_advisory_unlock(42)").await.unwrap();
    let statuses = checks.join_all().await;
    assert!(statuses.contains(&200), "no lookup read its session before");
    assert_eq!(cold.check_each().await, [401; 20]);
    assert_eq!(cold.metric("perennial_session_cache_entries").await, 0);
}

#[tokio::test]
async fn sessions_beyond_the_size_of_the_cache_are_read_again() {
    let cold = ColdInstance::start(200, |variables| {
        variables.insert("PERENNIAL_SESSION_CACHE_ENTRIES", "100".to_owned());
    })
    .await;
    for _ in 0..2 {
        let statuses = cold.check_each().await;
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    }
    let cached = cold.metric("perennial_session_cache_entries").await;
    assert!((50..=100).contains(&cached), "{cached}");
    for token in &cold.tokens[..10] {
        let bearer = cold.api.with_bearer(token);
        let logout = bearer.post("/authentication/tokens/logout", "").await;
        assert_eq!(logout.status, 200, "{}", logout.text);
    }
    let statuses = cold.check_each().await;
    assert_eq!(statuses[..10], [401; 10]);
    assert_eq!(statuses[10..], [200; 190]);
}
