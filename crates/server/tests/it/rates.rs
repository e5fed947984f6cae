//! How many requests a client or an address may send in a second.

use std::time::Duration;

use crate::harness::{api::Api, service::Service};

const PATH: &str = "/subscription-plans";

async fn limited(client: u32, peer: u32) -> Service {
    Service::start_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_CLIENT", client.to_string());
        variables.insert("PERENNIAL_RATE_PER_PEER", peer.to_string());
    })
    .await
}

/// Sends until it is refused; answers how many were let in, once the refusal is what it should be.
async fn until_refused(caller: &Api, who: &str, quota: u32) -> u32 {
    for sent in 0..quota * 3 {
        let answer = caller.get(PATH).await;
        let policy = format!("\"{who}\";q={quota};w=1");
        let told = answer.headers.get_all("ratelimit-policy");
        assert!(
            told.iter().any(|line| *line == policy.as_str()),
            "{:?}",
            answer.headers
        );
        if answer.status == 429 {
            assert_eq!(answer.problem(), "rate_limited");
            assert_eq!(answer.header("retry-after"), "1");
            let standing = format!("\"{who}\";r=0;t=1");
            let told = answer.headers.get_all("ratelimit");
            assert!(
                told.iter().any(|line| *line == standing.as_str()),
                "{:?}",
                answer.headers
            );
            assert!(answer.text.contains(who), "{}", answer.text);
            return sent;
        }
    }
    panic!("never refused");
}

#[tokio::test]
async fn a_client_has_its_own_quota() {
    let service = limited(10, 0).await;
    let (greedy, modest) = (service.caller(&[]), service.caller(&[]));
    let first = greedy.get(PATH).await;
    assert_eq!(first.header("ratelimit"), "\"client\";r=9;t=1");
    let let_in = until_refused(&greedy, "client", 10).await;
    assert!((9..30).contains(&let_in), "{let_in}");
    assert_eq!(
        modest.get(PATH).await.status,
        200,
        "another client's is another quota"
    );
    assert_eq!(service.anonymous().get(PATH).await.status, 401);
    // It comes back by itself, one at a time.
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(greedy.get(PATH).await.status, 200);
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    assert!(
        metrics.contains(r#"perennial_shed_total{by="client"}"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn an_address_has_one_for_all_that_is_not_a_servers() {
    let service = limited(0, 10).await;
    let (server, browser) = (
        service.caller(&[]),
        service.caller(&["--kind", "publishable"]),
    );
    // A server's whole traffic comes from one address; it does not count there.
    for _ in 0..60 {
        let answer = server.get(PATH).await;
        assert_eq!((answer.status, answer.header("ratelimit")), (200, ""));
    }
    // Browsers, guesses and nobody at all share what their address has.
    until_refused(&browser, "peer", 10).await;
    let guess = service.anonymous().with("client-id", "prn_sk_guess");
    for caller in [&guess, &service.anonymous()] {
        until_refused(caller, "peer", 10).await;
    }
    // Nor does it suffer from them, even when it is not remembered any more.
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        until_refused(&guess, "peer", 10).await;
        assert_eq!(server.get(PATH).await.status, 200);
    }
}

/// One greedy browser does not use up what its client has for all.
#[tokio::test]
async fn what_an_address_may_not_send_does_not_count_against_the_client() {
    let service = limited(50, 10).await;
    let browser = service.caller(&["--kind", "publishable"]);
    let mut left = Vec::new();
    for _ in 0..200 {
        let answer = browser.get(PATH).await;
        let told = answer.headers.get_all("ratelimit").iter();
        let of_client =
            told.filter_map(|line| line.to_str().unwrap().strip_prefix("\"client\";r="));
        let left_now = of_client.map(|line| line.split(';').next().unwrap().parse().unwrap());
        left.extend(left_now.collect::<Vec<u32>>());
        assert!([200, 429].contains(&answer.status));
    }
    assert!(
        left.len() >= 10 && left.iter().all(|left| *left > 20),
        "{left:?}"
    );
}

/// Behind a proxy that is trusted, an address is the caller's; behind another it is the proxy's.
#[tokio::test]
async fn the_address_is_the_one_that_trusted_proxies_saw() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_PEER", "10".to_owned());
        variables.insert(
            "PERENNIAL_TRUSTED_PROXIES",
            "127.0.0.0/8, 10.0.0.0/8".to_owned(),
        );
    })
    .await;
    let from = |hops: &str| service.anonymous().with("x-forwarded-for", hops);
    until_refused(&from("203.0.113.1"), "peer", 10).await;
    // What the caller itself put in front does not help it.
    until_refused(&from("198.51.100.9, 203.0.113.1, 10.0.0.1"), "peer", 10).await;
    assert_eq!(from("203.0.113.2").get(PATH).await.status, 401);

    let office = service.caller(&["--id", "DEMO", "--allow-address", "198.51.100.0/24"]);
    for (hops, status) in [
        ("198.51.100.7", 200),
        ("198.51.100.7, 10.1.2.3", 200),
        ("198.51.100.7, 203.0.113.3", 403),
        ("203.0.113.4", 403),
        ("198.51.100.7, nonsense", 403),
    ] {
        let answer = office.with("x-forwarded-for", hops).get(PATH).await;
        assert_eq!(answer.status, status, "{hops}: {}", answer.text);
    }
    assert_eq!(office.get(PATH).await.status, 403, "the proxy itself");
}
