//! Two instances behind a load balancer: a sign-out reaches both, and nobody notices that they are restarted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::harness::{
    api::Api,
    balancer::Balancer,
    people::Tokens,
    process::{Server, Variables},
    service::Service,
    wait_until,
};

/// Two instances, and haproxy before them.
struct Stage {
    balancer: Balancer,
    servers: [Server; 2],
    variables: Variables,
    client: String,
    // Dropped last.
    _service: Service,
}

impl Stage {
    async fn start() -> Self {
        let service = Service::start_with(|variables| {
            let url = "http://perennial.example".to_owned();
            variables.insert("PERENNIAL_PUBLIC_URL", url);
            variables.insert("PERENNIAL_DRAIN_SECONDS", "1".to_owned());
            variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
            variables.insert("PERENNIAL_TRUSTED_PROXIES", "127.0.0.0/8".to_owned());
        })
        .await;
        let (_, client) = service.make_client(&[]);
        let variables = service.variables.clone();
        let servers = [
            Server::start(&variables).await,
            Server::start(&variables).await,
        ];
        let stage = Self {
            balancer: Balancer::before(&servers),
            servers,
            variables,
            client,
            _service: service,
        };
        let ready = async || {
            let balanced = stage.balanced();
            let asked = balanced.try_send(reqwest::Method::GET, "/openapi.json", None);
            asked.await.is_ok_and(|answer| answer.status == 200)
        };
        wait_until("haproxy answers", Duration::from_secs(10), ready).await;
        stage
    }

    fn at(&self, url: &str) -> Api {
        Api::new(url).with("client-id", &self.client)
    }

    /// Whatever comes to the balancer.
    fn balanced(&self) -> Api {
        self.at(&self.balancer.url)
    }
}

/// A thousand users sign out everywhere, eight at a time; the balancer chooses where. How long the other instance goes
/// on accepting the token after that was answered.
#[tokio::test]
async fn a_thousand_revoke_alls_alone() {
    let stage = Arc::new(Stage::start().await);
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let stage = stage.clone();
            tokio::spawn(async move {
                let balanced = stage.balanced();
                let direct = [0, 1].map(|index: usize| stage.at(&stage.servers[index].url));
                let email = format!("user{worker}@example.com");
                balanced.sign_up(&email).await;
                let mut times = Vec::new();
                for _ in 0..125 {
                    let tokens = balanced.sign_in(&email).await;
                    // Both remember it.
                    for _ in 0..2 {
                        for instance in &direct {
                            assert_eq!(instance.check(tokens.access()).await.status, 200);
                        }
                    }
                    let bearer = balanced.on_behalf_of(tokens.access());
                    let answer = bearer.post("/authentication/tokens/revoke-all", "").await;
                    let ended = Instant::now();
                    assert_eq!(answer.status, 200, "{}", answer.text);
                    let (own, other) = match answer.header("x-served-by") {
                        "i0" => (&direct[0], &direct[1]),
                        "i1" => (&direct[1], &direct[0]),
                        whose => panic!("{whose}"),
                    };
                    let time = loop {
                        let asked = ended.elapsed();
                        match other.check(tokens.access()).await.status {
                            401 => break asked,
                            200 => assert!(asked < Duration::from_secs(1), "after {asked:?}"),
                            status => panic!("{status}"),
                        }
                    };
                    times.push(time);
                    let here = own.check(tokens.access()).await.status;
                    assert_eq!(here, 401, "where it was done, at once");
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
    let (middle, late, last) = (times[500], times[989], times[999]);
    println!(
        "revoke-all: half within {middle:.1?}, 99 of 100 within {late:.1?}, all within {last:.1?}"
    );
    assert!(late < Duration::from_secs(1));
}

/// Each instance is stopped and started again, three times, under checks and refreshes; each request is sent once.
#[tokio::test]
async fn rolling_restarts_alone() {
    let mut stage = Stage::start().await;
    let over = Arc::new(AtomicBool::new(false));
    let (checks, refreshes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut load = Vec::new();
    for worker in 0..6 {
        let caller = stage.balanced();
        let (over, checks, refreshes) = (over.clone(), checks.clone(), refreshes.clone());
        load.push(tokio::spawn(async move {
            let mut tokens = caller.sign_up(&format!("user{worker}@example.com")).await;
            while !over.load(Ordering::Relaxed) {
                if worker < 4 {
                    let answer = caller.check(tokens.access()).await;
                    assert_eq!(
                        answer.status,
                        200,
                        "{} {}",
                        answer.header("x-served-by"),
                        answer.text
                    );
                    checks.fetch_add(1, Ordering::Relaxed);
                } else {
                    tokens = Tokens::of(&caller.refresh(tokens.refresh()).await);
                    refreshes.fetch_add(1, Ordering::Relaxed);
                }
            }
            assert_eq!(caller.check(tokens.access()).await.status, 200);
        }));
    }
    for round in 0..6 {
        let server = &mut stage.servers[round % 2];
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(server.process.stop().await, "{}", server.process.log());
        server.start_again(&stage.variables).await;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    over.store(true, Ordering::Relaxed);
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
