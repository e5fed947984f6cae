//! Two instances behind a load balancer: revocations reach both, and restarts fail no request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    env_number,
    load_balancer::LoadBalancer,
    process::{Server, Variables},
    service::Service,
    wait_until,
};

/// Two instances behind haproxy.
struct BalancedInstances {
    balancer: LoadBalancer,
    servers: [Server; 2],
    variables: Variables,
    client: String,
    // Dropped last.
    _service: Service,
}

impl BalancedInstances {
    async fn start() -> Self {
        let service = Service::start_with(|variables| {
            let url = "http://perennial.example".to_owned();
            variables.insert("PERENNIAL_PUBLIC_URL", url);
            variables.insert("PERENNIAL_DRAIN_SECONDS", "1".to_owned());
            variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
            variables.insert("PERENNIAL_TRUSTED_PROXIES", "127.0.0.0/8".to_owned());
        })
        .await;
        let (_, client) = service.create_client(&[]);
        let variables = service.variables.clone();
        let servers = [
            Server::start(&variables).await,
            Server::start(&variables).await,
        ];
        let fixture = Self {
            balancer: LoadBalancer::start(&servers),
            servers,
            variables,
            client,
            _service: service,
        };
        let ready = async || {
            let balanced = fixture.balanced();
            let response = balanced.try_send(reqwest::Method::GET, "/openapi.json", None);
            response.await.is_ok_and(|response| response.status == 200)
        };
        wait_until("haproxy responds", Duration::from_secs(10), ready).await;
        fixture
    }

    fn client_of(&self, url: &str) -> ApiClient {
        ApiClient::new(url).with("client-id", &self.client)
    }

    fn balanced(&self) -> ApiClient {
        self.client_of(&self.balancer.url)
    }
}

/// Restarts each instance three times under checks and refreshes. No request is retried.
#[tokio::test]
async fn rolling_restarts_fail_no_request() {
    let mut fixture = BalancedInstances::start().await;
    let done = Arc::new(AtomicBool::new(false));
    let (checks, refreshes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut load = Vec::new();
    for worker in 0..6 {
        let api = fixture.balanced();
        let (done, checks, refreshes) = (done.clone(), checks.clone(), refreshes.clone());
        load.push(tokio::spawn(async move {
            let mut tokens = api.sign_up(&format!("user{worker}@example.com")).await;
            while !done.load(Ordering::Relaxed) {
                if worker < 4 {
                    let response = api.check(tokens.access()).await;
                    assert_eq!(
                        response.status,
                        200,
                        "{} {}",
                        response.header("x-served-by"),
                        response.text
                    );
                    checks.fetch_add(1, Ordering::Relaxed);
                } else {
                    tokens = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
                    refreshes.fetch_add(1, Ordering::Relaxed);
                }
            }
            assert_eq!(api.check(tokens.access()).await.status, 200);
        }));
    }
    for round in 0..6 {
        let server = &mut fixture.servers[round % 2];
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(server.process.stop().await, "{}", server.process.log());
        server.restart(&fixture.variables).await;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    done.store(true, Ordering::Relaxed);
    for worker in load {
        worker.await.unwrap();
    }
    let (checks, refreshes) = (
        checks.load(Ordering::Relaxed),
        refreshes.load(Ordering::Relaxed),
    );
    println!("six restarts, {checks} checks and {refreshes} refreshes, none failed");
    assert!(checks > 500 && refreshes > 100, "{checks} {refreshes}");
}

/// Tests that measure time, and so run without other tests.
mod timing {
    use super::*;

    /// Eight users revoke all sessions through the load balancer, `ROUNDS` times each; `just prove revocation`
    /// uses 200. Measures how long the other instance accepts the token after the response.
    #[tokio::test]
    async fn revoke_all_reaches_every_instance_within_a_second() {
        let rounds = env_number("ROUNDS").unwrap_or(40);
        let fixture = Arc::new(BalancedInstances::start().await);
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                let fixture = fixture.clone();
                tokio::spawn(async move {
                    let balanced = fixture.balanced();
                    let direct =
                        [0, 1].map(|index: usize| fixture.client_of(&fixture.servers[index].url));
                    let email = format!("user{worker}@example.com");
                    balanced.sign_up(&email).await;
                    let mut times = Vec::new();
                    for _ in 0..rounds {
                        let tokens = balanced.sign_in(&email).await;
                        // Both instances cache the session.
                        for _ in 0..2 {
                            for instance in &direct {
                                assert_eq!(instance.check(tokens.access()).await.status, 200);
                            }
                        }
                        let bearer = balanced.with_bearer(tokens.access());
                        let response = bearer.post("/authentication/tokens/revoke-all", "").await;
                        let ended = Instant::now();
                        assert_eq!(response.status, 200, "{}", response.text);
                        let (same, other) = match response.header("x-served-by") {
                            "i0" => (&direct[0], &direct[1]),
                            "i1" => (&direct[1], &direct[0]),
                            name => panic!("{name}"),
                        };
                        let time = loop {
                            let elapsed = ended.elapsed();
                            match other.check(tokens.access()).await.status {
                                401 => break elapsed,
                                200 => {
                                    assert!(elapsed < Duration::from_secs(1), "after {elapsed:?}");
                                }
                                status => panic!("{status}"),
                            }
                        };
                        times.push(time);
                        let status = same.check(tokens.access()).await.status;
                        assert_eq!(status, 401, "immediately on the same instance");
                    }
                    times
                })
            })
            .collect();
        let mut times = Vec::new();
        for worker in workers {
            times.extend(worker.await.unwrap());
        }
        times.sort();
        let percentile = |percent: usize| times[(times.len() - 1) * percent / 100];
        let (middle, late, last) = (percentile(50), percentile(99), percentile(100));
        println!("revoke-all: p50 {middle:.1?}, p99 {late:.1?}, max {last:.1?}");
        assert!(late < Duration::from_secs(1));
    }
}
