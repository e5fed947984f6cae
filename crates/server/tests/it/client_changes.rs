//! A changed client takes effect on every instance within a second, even if notifications do not
//! arrive. An unchanged one is not read again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::json;

use crate::{
    harness::{
        api::ApiClient,
        client::create_client,
        database::connect,
        in_process::InProcessServer,
        listener_faults::{FaultyInstances, ListenerFault, report, rounds, time_to_reject},
        process::{Server, run_ok, sandbox},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

const READS: &str = "perennial_client_reads_total";
const ORIGIN: &str = "https://app.example.com";
/// Longer than the heartbeat bound of half a second, and much shorter than a cached client is used.
const LIMIT: Duration = Duration::from_secs(1);

async fn status(api: &ApiClient) -> u16 {
    api.get("/subscription-plans/x").await.status
}

async fn count_reads(server: &Server) -> f64 {
    server.metric(READS).await.unwrap_or_default()
}

/// Sends requests until the instance serves the client from its cache.
async fn wait_until_cached(server: &Server, api: &ApiClient) {
    let limit = Duration::from_secs(10);
    wait_until("the client is cached", limit, async || {
        assert_eq!(status(api).await, 404);
        let before = count_reads(server).await;
        // Longer than an entry is used without notifications.
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(status(api).await, 404);
        count_reads(server).await <= before
    })
    .await;
}

/// Disables cached clients during a fault, and measures how long both instances accept them after the
/// command.
async fn disable_during(fault: ListenerFault) {
    let instances = FaultyInstances::start().await;
    let mut times = Vec::new();
    for _ in 0..rounds() {
        let (id, value) = create_client(&instances.cluster.url(), &[]);
        let servers = [&instances.first, &instances.second];
        let apis = servers.map(|server| ApiClient::new(&server.url).with("client-id", &value));
        tokio::join!(
            wait_until_cached(servers[0], &apis[0]),
            wait_until_cached(servers[1], &apis[1])
        );
        let injected = instances.inject(fault).await;
        run_ok(&instances.variables, &["client", "disable", &id]);
        for api in &apis {
            times.push(time_to_reject(async || status(api).await).await);
        }
        drop(injected);
    }
    report(fault, times);
}

#[tokio::test]
async fn disabled_client_is_rejected_everywhere() {
    disable_during(ListenerFault::None).await;
}

#[tokio::test]
async fn disabled_client_is_rejected_while_the_listener_is_terminated() {
    disable_during(ListenerFault::Terminated).await;
}

#[tokio::test]
async fn disabled_client_is_rejected_while_the_listener_is_frozen() {
    disable_during(ListenerFault::Frozen).await;
}

#[tokio::test]
async fn disabled_client_is_rejected_while_notifications_are_lost() {
    disable_during(ListenerFault::Lost).await;
}

/// The listener stays connected to the former primary, where nothing changes any more.
#[tokio::test]
async fn client_disabled_on_a_new_primary_is_rejected() {
    let instances = FaultyInstances::start().await;
    let (id, value) = create_client(&instances.cluster.url(), &[]);
    let api = ApiClient::new(&instances.second.url).with("client-id", &value);
    wait_until_cached(&instances.second, &api).await;
    let new_primary = instances.cluster.copy();
    new_primary.promote().await;
    instances.proxy.set_target(new_primary.port);
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name IN ('perennial pool', 'perennial lane')";
    let admin = connect(&instances.cluster.url()).await;
    admin.batch_execute(terminate).await.unwrap();
    run_ok(&sandbox(&new_primary.url()), &["client", "disable", &id]);
    time_to_reject(async || status(&api).await).await;

    // The listener moves to the new primary too, and the cache is used again.
    let (_, value) = create_client(&new_primary.url(), &[]);
    let api = ApiClient::new(&instances.second.url).with("client-id", &value);
    wait_until_cached(&instances.second, &api).await;
}

#[tokio::test]
async fn disabled_client_is_rejected_by_many_instances() {
    let service = Service::start_in_process().await;
    let (id, value) = service.create_client(&[]);
    let mut apis = Vec::new();
    for _ in 0..6 {
        let server = Arc::new(InProcessServer::start(&service.variables).await);
        apis.push(ApiClient::in_process(server).with("client-id", &value));
    }
    for _ in 0..3 {
        for api in &apis {
            assert_eq!(status(api).await, 404);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    run_ok(&service.variables, &["client", "disable", &id]);
    let disabled_at = Instant::now();
    for api in &apis {
        time_to_reject(async || status(api).await).await;
    }
    assert!(disabled_at.elapsed() < LIMIT, "{:?}", disabled_at.elapsed());
}

/// Changes of everything that a lookup returns: the client, its keys and its tenant.
#[tokio::test]
async fn each_change_of_a_cached_client_takes_effect() {
    let service = Service::start().await;
    let run = |arguments: &[&str]| run_ok(&service.variables, arguments);
    let (id, value) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &value);
    wait_until_cached(&service.server, &api).await;
    let create = async |slug: &str| {
        let plan = minimal_plan(slug).to_string();
        api.post("/subscription-plans", &plan).await
    };

    run(&["tenant", "set", "--default-currency", "JPY"]);
    let mut number = 0;
    let currency_changed = async || {
        number += 1;
        let plan = json!({"name": "P", "slug": format!("p{number}"), "price": 100, "billing_cycle": "monthly"});
        let response = api.post("/subscription-plans", &plan.to_string()).await;
        assert_eq!(response.status, 201, "{}", response.text);
        response.json()["currency"] == "JPY"
    };
    wait_until("the currency has changed", LIMIT, currency_changed).await;

    run(&["client", "update", &id, "--scope", "plans:read"]);
    let scope_removed = async || create("unscoped").await.status == 403;
    wait_until("the scope is removed", LIMIT, scope_removed).await;

    run(&["client", "update", &id, "--allow-address", "10.0.0.0/8"]);
    let address_rejected = async || status(&api).await == 403;
    wait_until("the address is rejected", LIMIT, address_rejected).await;
    run(&["client", "update", &id, "--allow-address", "127.0.0.1"]);
    let address_accepted = async || status(&api).await == 404;
    wait_until("the address is accepted", LIMIT, address_accepted).await;

    run(&["client", "rotate", &id, "--keep-old", "0s"]);
    let key_rejected = async || status(&api).await == 401;
    wait_until("the old key is rejected", LIMIT, key_rejected).await;
}

#[tokio::test]
async fn changed_origins_take_effect() {
    let service = Service::start().await;
    let origin = ["--kind", "publishable", "--allowed-origin", ORIGIN];
    let (id, value) = service.create_client(&origin);
    let page = service.anonymous().with("origin", ORIGIN);
    let api = page.with("client-id", &value);
    let preflight = page.with("access-control-request-method", "GET");
    let preflight = async || {
        let response = preflight.send(Method::OPTIONS, "/subscription-plans", None);
        response.await.status
    };
    wait_until_cached(&service.server, &api).await;
    assert_eq!(preflight().await, 204);
    let other = "https://other.example.com";
    run_ok(
        &service.variables,
        &["client", "update", &id, "--allowed-origin", other],
    );
    let is_rejected = async || status(&api).await == 403 && preflight().await == 403;
    wait_until("the origin is rejected", LIMIT, is_rejected).await;
}

/// The expiry of an old key is not a change, so no notification announces it.
#[tokio::test]
async fn cached_key_is_rejected_when_it_expires() {
    let service = Service::start().await;
    let (id, value) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &value);
    wait_until_cached(&service.server, &api).await;
    let rotated_at = Instant::now();
    run_ok(
        &service.variables,
        &["client", "rotate", &id, "--keep-old", "3s"],
    );
    let expired = async || status(&api).await == 401;
    let time = wait_until("the old key expires", Duration::from_secs(6), expired).await;
    assert!(rotated_at.elapsed() >= Duration::from_secs(3), "{time:?}");
}

#[tokio::test]
async fn unchanged_client_is_not_read_again() {
    let service = Service::start().await;
    let origin = ["--kind", "publishable", "--allowed-origin", ORIGIN];
    let (_, value) = service.create_client(&origin);
    let page = service.anonymous().with("origin", ORIGIN);
    let preflight = page.with("access-control-request-method", "GET");
    let api = page.with("client-id", &value);
    wait_until_cached(&service.server, &api).await;
    preflight
        .send(Method::OPTIONS, "/subscription-plans", None)
        .await;
    let before = count_reads(&service.server).await;
    let started = Instant::now();
    let mut requests = 0;
    while started.elapsed() < Duration::from_secs(5) {
        assert_eq!(status(&api).await, 404);
        let response = preflight.send(Method::OPTIONS, "/subscription-plans", None);
        assert_eq!(response.await.status, 204);
        requests += 2;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let reads = count_reads(&service.server).await - before;
    println!("{reads} reads during {requests} requests");
    // With a TTL of 1 s there would be at least eight. A few are possible while a heartbeat is late.
    assert!(requests >= 20 && reads <= 3.0, "{reads} of {requests}");
}

/// Makes each lookup wait for the advisory lock 42, after it has read the client.
const WAIT_IN_LOOKUP: &str = "
    CREATE FUNCTION wait_for_lock() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN true; END $$;
    ALTER TABLE client_values RENAME TO stored_client_values;
    CREATE VIEW client_values AS SELECT * FROM stored_client_values WHERE wait_for_lock()";

#[tokio::test]
async fn client_disabled_during_its_lookup_is_not_cached() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    let (_, other) = service.create_client(&[]);
    let other = service.anonymous().with("client-id", &other);
    wait_until_cached(&service.server, &other).await;
    let api = service.api(&[]);
    let database = service.database.connect().await;
    let sql = |text: &'static str| database.batch_execute(text);
    sql(WAIT_IN_LOOKUP).await.unwrap();
    sql("SELECT pg_advisory_lock(42)").await.unwrap();
    let lookup = tokio::spawn({
        let api = api.clone();
        async move { status(&api).await }
    });
    let limit = Duration::from_millis(1_500);
    wait_until("the lookup has read the client", limit, async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'advisory'";
        service.count(waiting).await > 0
    })
    .await;
    let disable = "BEGIN; UPDATE clients SET disabled_at = now();
        SELECT pg_notify('perennial_clients', tenant_id::text) FROM tenants; COMMIT";
    sql(disable).await.unwrap();
    // The notification arrives before the result of the lookup.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let later = tokio::spawn({
        let api = api.clone();
        async move { status(&api).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    sql("SELECT pg_advisory_unlock(42)").await.unwrap();
    assert_eq!(lookup.await.unwrap(), 404, "it had read the client before");
    assert_eq!(later.await.unwrap(), 401, "it joined the lookup afterwards");
    assert_eq!(status(&api).await, 401);
}
