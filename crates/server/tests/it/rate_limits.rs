//! Rate limits of requests, per client and per address.

use std::time::Duration;

use crate::harness::{api::ApiClient, process::Variables, service::Service};

const PATH: &str = "/subscription-plans";

fn limit(client: u32, address: u32) -> impl FnOnce(&mut Variables) {
    move |variables| {
        variables.insert("PERENNIAL_RATE_PER_CLIENT", client.to_string());
        variables.insert("PERENNIAL_RATE_PER_PEER", address.to_string());
    }
}

/// Sends requests until one is rejected, and returns how many were accepted.
async fn send_until_limited(api: &ApiClient, scope: &str, quota: u32) -> u32 {
    for sent in 0..quota * 3 {
        let response = api.get(PATH).await;
        let policy = format!("\"{scope}\";q={quota};w=1");
        let policies = response.headers.get_all("ratelimit-policy");
        assert!(
            policies.iter().any(|line| *line == policy.as_str()),
            "{:?}",
            response.headers
        );
        if response.status == 429 {
            assert_eq!(response.problem(), "rate_limited");
            assert_eq!(response.header("retry-after"), "1");
            let remaining = format!("\"{scope}\";r=0;t=1");
            let limits = response.headers.get_all("ratelimit");
            assert!(
                limits.iter().any(|line| *line == remaining.as_str()),
                "{:?}",
                response.headers
            );
            let subject = if scope == "peer" { "IP address" } else { scope };
            assert!(response.text.contains(subject), "{}", response.text);
            return sent;
        }
    }
    panic!("never limited");
}

#[tokio::test]
async fn requests_are_limited_per_client() {
    let service = Service::start_with(limit(10, 0)).await;
    let (busy, other) = (service.api(&[]), service.api(&[]));
    let first = busy.get(PATH).await;
    assert_eq!(first.header("ratelimit"), "\"client\";r=9;t=1");
    let accepted = send_until_limited(&busy, "client", 10).await;
    assert!((9..30).contains(&accepted), "{accepted}");
    assert_eq!(
        other.get(PATH).await.status,
        200,
        "another client has its own quota"
    );
    assert_eq!(service.anonymous().get(PATH).await.status, 401);
    // The quota is refilled continuously.
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(busy.get(PATH).await.status, 200);
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    assert!(
        metrics.contains(r#"perennial_shed_total{by="client"}"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn unauthenticated_requests_are_limited_per_address() {
    let service = Service::start_in_process_with(limit(0, 10)).await;
    let (server, browser) = (service.api(&[]), service.api(&["--kind", "publishable"]));
    // Secret clients are exempt, because a server's traffic comes from one address.
    for _ in 0..60 {
        let response = server.get(PATH).await;
        assert_eq!((response.status, response.header("ratelimit")), (200, ""));
    }
    // Publishable, unknown and missing clients share the quota of their address.
    send_until_limited(&browser, "peer", 10).await;
    let guess = service.anonymous().with("client-id", "prn_sk_guess");
    for api in [&guess, &service.anonymous()] {
        send_until_limited(api, "peer", 10).await;
    }
    // They do not affect the server, even when it is not cached any more.
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        send_until_limited(&guess, "peer", 10).await;
        assert_eq!(server.get(PATH).await.status, 200);
    }
}

/// Behind this proxy, `x-forwarded-for` chooses the address of a request.
fn behind_proxy(client: u32, address: u32) -> impl FnOnce(&mut Variables) {
    move |variables| {
        limit(client, address)(variables);
        variables.insert("PERENNIAL_TRUSTED_PROXIES", "127.0.0.0/8".to_owned());
    }
}

/// A publishable client id is public, so strangers must not be able to use up its users' quota.
#[tokio::test]
async fn strangers_cannot_use_up_the_quota_of_a_publishable_client() {
    let service = Service::start_in_process_with(behind_proxy(20, 10)).await;
    let browser = service.api(&["--kind", "publishable"]);
    for stranger in 0..20 {
        let address = format!("203.0.113.{stranger}");
        send_until_limited(&browser.with("x-forwarded-for", &address), "peer", 10).await;
    }
    for user in 0..40 {
        let address = format!("198.51.100.{user}");
        let response = browser.with("x-forwarded-for", &address).get(PATH).await;
        assert_eq!(response.status, 200, "{address}: {}", response.text);
        assert_eq!(response.header("ratelimit"), "\"peer\";r=9;t=1");
    }
}

/// A customer with a /48 must not have 65,536 times the quota of a /64.
#[tokio::test]
async fn ipv6_networks_share_a_larger_quota() {
    // Per minute in effect: no quota is refilled during the test.
    let service = Service::start_in_process_with(|variables| {
        behind_proxy(0, 0)(variables);
        variables.insert("PERENNIAL_SIGN_INS_PER_PEER", "5".to_owned());
    })
    .await;
    let browser = service.api(&["--kind", "publishable"]);
    let sign_in = async |address: String| {
        let browser = browser.with("x-forwarded-for", &address);
        let body = r#"{"access_token": "x", "email": "ada@example.com"}"#;
        browser.post("/authentication/sign-in", body).await
    };
    // Two sign-ins from each of many /64 networks.
    let accepted = async |network: fn(u16) -> String| {
        let mut accepted = 0;
        for number in (0..100).flat_map(|number| [number, number]) {
            let response = sign_in(network(number)).await;
            if response.status == 429 {
                assert!(
                    response.text.contains("IPv6 network (/"),
                    "{}",
                    response.text
                );
            } else {
                accepted += 1;
            }
        }
        accepted
    };
    let one_56 = accepted(|number| format!("2001:db8:1:{number:x}::1")).await;
    assert_eq!(one_56, 4 * 5);
    let one_48 = accepted(|number| format!("2001:db8:1:{number:x}00::1")).await;
    assert_eq!(one_56 + one_48, 16 * 5);
    let other_networks = accepted(|number| format!("2001:db8:{number:x}ff::1")).await;
    assert_eq!(other_networks, 200, "networks of other customers");
}

/// Behind a trusted proxy, the address is the one that the proxy saw.
#[tokio::test]
async fn address_limit_follows_trusted_proxies() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_PEER", "10".to_owned());
        variables.insert(
            "PERENNIAL_TRUSTED_PROXIES",
            "127.0.0.0/8, 10.0.0.0/8".to_owned(),
        );
    })
    .await;
    let forwarded = |hops: &str| service.anonymous().with("x-forwarded-for", hops);
    send_until_limited(&forwarded("203.0.113.1"), "peer", 10).await;
    // Addresses that the client adds itself are ignored.
    send_until_limited(
        &forwarded("198.51.100.9, 203.0.113.1, 10.0.0.1"),
        "peer",
        10,
    )
    .await;
    assert_eq!(forwarded("203.0.113.2").get(PATH).await.status, 401);

    let office = service.api(&["--id", "DEMO", "--allow-address", "198.51.100.0/24"]);
    for (hops, status) in [
        ("198.51.100.7", 200),
        ("198.51.100.7, 10.1.2.3", 200),
        ("198.51.100.7, 203.0.113.3", 403),
        ("203.0.113.4", 403),
        ("198.51.100.7, nonsense", 403),
    ] {
        let response = office.with("x-forwarded-for", hops).get(PATH).await;
        assert_eq!(response.status, status, "{hops}: {}", response.text);
    }
    assert_eq!(
        office.get(PATH).await.status,
        403,
        "the proxy's own address"
    );
}
