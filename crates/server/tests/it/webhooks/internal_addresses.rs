//! Requests to internal addresses (server-side request forgery) are refused when an endpoint is saved, when it is tested
//! and when an event is delivered.
//!
//! 127.0.0.2 is allowed and stands for the internet. 127.0.0.1 is internal.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use serde_json::{Value, json};

use super::{create_plan, path, wait_for_count};
use crate::harness::{
    api::ApiClient,
    client::create_client,
    database::Database,
    dns_server::DnsServer,
    process::{Server, sandbox},
    reserve_port, wait_until,
    webhook_receiver::{Reply, WebhookReceiver},
};

const INTERNAL: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Hosts that are internal addresses, or names of them.
const INTERNAL_HOSTS: &[&str] = &[
    // The forms of 127.0.0.1 that a URL can have.
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0x7f000001",
    "0177.0.0.1",
    "017700000001",
    "2130706433",
    "%31%32%37.0.0.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    // Names.
    "localhost",
    "LOCALHOST",
    "localhost.",
    "internal.test",
    "internal.test.",
    "metadata.test",
    // IPv4 ranges.
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    // IPv6 ranges, among them those that contain an IPv4 address.
    "[::]",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::10.0.0.1]",
    "[100::1]",
    "[2001::1]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
];

struct GuardedService {
    // Dropped in this order.
    server: Server,
    database: Database,
    dns: DnsServer,
    api: ApiClient,
    outside: WebhookReceiver,
    internal: WebhookReceiver,
    port: u16,
}

async fn start() -> GuardedService {
    let dns = DnsServer::start().await;
    dns.set("outside.test", &[OUTSIDE]);
    dns.set("internal.test", &[INTERNAL]);
    dns.set("localhost", &[INTERNAL]);
    dns.set("metadata.test", &[Ipv4Addr::new(169, 254, 169, 254)]);
    let database = Database::create().await;
    let mut variables = sandbox(&database.url);
    variables.insert("PERENNIAL_WEBHOOK_NETWORKS", OUTSIDE.to_string());
    let server = Server::spawn_command(dns.perennial(), &variables);
    server.wait_for_ok("/readyz").await;
    let (_, client) = create_client(&database.url, &[]);
    let port = reserve_port();
    GuardedService {
        api: ApiClient::new(&server.url).with("client-id", &client),
        outside: WebhookReceiver::start_on(OUTSIDE, port).await,
        internal: WebhookReceiver::start_on(INTERNAL, port).await,
        server,
        database,
        dns,
        port,
    }
}

impl GuardedService {
    async fn create_endpoint(&self, host: &str, status: &str) -> Value {
        let url = format!("http://{host}:{}/", self.port);
        let fields = json!({"url": url, "event_types": ["plan.created"], "status": status});
        self.api.create("/webhook-endpoints", &fields).await
    }

    /// Closes the connections of the service, so that the next request looks up the name again.
    async fn close_connections(&self) {
        self.outside.close_connections();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    async fn attempts(&self, endpoint: &Value) -> Vec<Value> {
        let attempts = format!("{}/attempts", path(endpoint));
        let attempts = self.api.get_json(&attempts).await["data"].clone();
        attempts.as_array().unwrap().clone()
    }

    /// Returns the error of the first delivery, once there is one.
    async fn wait_for_delivery(&self, endpoint: &Value) -> Value {
        let is_delivery = |attempt: &Value| attempt["event_type"] == "plan.created";
        wait_until("a delivery", Duration::from_secs(20), async || {
            self.attempts(endpoint).await.iter().any(is_delivery)
        })
        .await;
        let attempts = self.attempts(endpoint).await;
        let delivery = attempts.iter().rfind(|attempt| is_delivery(attempt));
        delivery.unwrap().clone()
    }
}

fn assert_refused(host: &str, attempt: &Value) {
    assert_eq!(attempt["is_success"], false, "{host}: {attempt}");
    let error = attempt["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("is not a public address"),
        "{host}: {attempt}"
    );
}

#[tokio::test]
async fn internal_address_is_refused_at_save_test_and_delivery() {
    let service = start().await;
    let api = &service.api;
    let database = service.database.connect().await;
    let mut endpoints = BTreeMap::new();
    for host in INTERNAL_HOSTS {
        let endpoint = service.create_endpoint("outside.test", "disabled").await;
        let url = format!("http://{host}:{}/", service.port);
        let body = json!({"url": url}).to_string();
        let created = api.post("/webhook-endpoints", &body).await;
        assert_eq!(created.status, 422, "{host}: {}", created.text);
        created.assert_problem(422, "url_not_allowed");
        let updated = api.put(&path(&endpoint), &body).await;
        updated.assert_problem(422, "url_not_allowed");
        // As a version without this rule would have saved it.
        let change = format!(
            "UPDATE webhook_endpoints SET url = '{url}' WHERE id = '{}'",
            endpoint["id"].as_str().unwrap().trim_start_matches("whe_")
        );
        database.batch_execute(&change).await.unwrap();
        let tested = api.post(&(path(&endpoint) + "/test"), "{}").await;
        assert_eq!(tested.status, 200, "{host}: {}", tested.text);
        assert_refused(host, &tested.json());
        endpoints.insert(host, endpoint);
    }
    let enable = "UPDATE webhook_endpoints SET status = 'enabled', disabled_reason = NULL, disabled_at = NULL";
    database.batch_execute(enable).await.unwrap();
    create_plan(api, "pro").await;
    for (host, endpoint) in &endpoints {
        assert_refused(host, &service.wait_for_delivery(endpoint).await);
    }
    assert_eq!(service.internal.connections(), 0);
    assert_eq!(service.outside.connections(), 0);
}

#[tokio::test]
async fn user_names_and_other_schemes_are_refused() {
    let service = start().await;
    let port = service.port;
    for url in [
        format!("http://outside.test@127.0.0.1:{port}/"),
        format!("http://user:password@outside.test:{port}/"),
        format!("http://outside.test:{port}\\@127.0.0.1:{port}/"),
        format!("ftp://outside.test:{port}/"),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
    ] {
        let body = json!({"url": url}).to_string();
        let created = service.api.post("/webhook-endpoints", &body).await;
        assert_eq!(created.status, 422, "{url}: {}", created.text);
    }
}

#[tokio::test]
async fn name_that_is_rebound_to_an_internal_address_is_refused() {
    let service = start().await;
    let (api, dns) = (&service.api, &service.dns);
    dns.set("rebound.test", &[OUTSIDE]);
    let endpoint = service.create_endpoint("rebound.test", "enabled").await;
    let test = path(&endpoint) + "/test";
    assert_eq!(api.post(&test, "{}").await.json()["is_success"], true);
    assert_eq!(service.outside.count(), 1);

    dns.set("rebound.test", &[INTERNAL]);
    service.close_connections().await;
    assert_refused("rebound.test", &api.post(&test, "{}").await.json());
    create_plan(api, "pro").await;
    let delivery = service.wait_for_delivery(&endpoint).await;
    assert_refused("rebound.test", &delivery);
    let body = json!({"url": format!("http://rebound.test:{}/other", service.port)}).to_string();
    let updated = api.put(&path(&endpoint), &body).await;
    updated.assert_problem(422, "url_not_allowed");

    // Of several addresses, only the allowed ones are used.
    dns.set("rebound.test", &[INTERNAL, OUTSIDE]);
    for _ in 0..10 {
        assert_eq!(api.post(&test, "{}").await.json()["is_success"], true);
        service.close_connections().await;
    }
    // Two lookups of one request, with different answers, would be enough for an attack.
    for round in 0..50 {
        let address = if round % 2 == 0 { INTERNAL } else { OUTSIDE };
        dns.set("rebound.test", &[address]);
        let attempt = api.post(&test, "{}");
        let change = async {
            tokio::time::sleep(Duration::from_micros(round * 200)).await;
            let address = if round % 2 == 0 { OUTSIDE } else { INTERNAL };
            dns.set("rebound.test", &[address]);
        };
        let (attempt, ()) = tokio::join!(attempt, change);
        assert_eq!(attempt.status, 200);
        service.close_connections().await;
    }
    assert_eq!(service.internal.connections(), 0);
    assert!(service.server.admin("/readyz").await.is_ok());
}

#[tokio::test]
async fn redirect_to_an_internal_address_is_not_followed() {
    let service = start().await;
    let location = format!("location: http://127.0.0.1:{}/\r\n", service.port);
    let location: &'static str = location.leak();
    for status in [301, 302, 303, 307, 308] {
        service
            .outside
            .respond(move |_| Reply::Status(status, location));
        let endpoint = service.create_endpoint("outside.test", "enabled").await;
        let tested = service.api.post(&(path(&endpoint) + "/test"), "{}").await;
        create_plan(&service.api, &format!("p{status}")).await;
        let delivery = service.wait_for_delivery(&endpoint).await;
        for attempt in [tested.json(), delivery] {
            assert_eq!(attempt["is_success"], false);
            assert_eq!(attempt["status_code"], status, "{attempt}");
        }
        service.api.delete(&path(&endpoint)).await;
    }
    wait_for_count(&service.outside, 10).await;
    assert_eq!(service.internal.connections(), 0);
}
