//! A session revoked on one instance is rejected on every other within a second, even if the
//! notification listener fails.
//!
//! `ROUNDS` sets how often each fault is injected; `just prove revocation` uses 200.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use perennial::randomness::Randomness;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    client::create_client,
    listener_faults::{FaultyInstances, ListenerFault, report, rounds, time_to_reject},
    wait_until,
};

struct RevocationFixture {
    first: ApiClient,
    second: ApiClient,
    instances: FaultyInstances,
}

impl RevocationFixture {
    async fn start() -> Self {
        let instances = FaultyInstances::start().await;
        let (_, client) = create_client(&instances.cluster.url(), &[]);
        let first = ApiClient::new(&instances.first.url).with("client-id", &client);
        first.sign_up("ada@example.com").await;
        Self {
            second: ApiClient::new(&instances.second.url).with("client-id", &client),
            first,
            instances,
        }
    }

    async fn session(&self) -> SessionTokens {
        self.first.sign_in("ada@example.com").await
    }

    /// Revokes all sessions of the user on the first instance.
    async fn revoke(&self, access: &str) {
        let bearer = self.first.with_bearer(access);
        loop {
            let response = bearer.post("/authentication/tokens/revoke-all", "").await;
            // On a busy machine, admission control may reject a request.
            if response.status != 503 || response.problem() != "overloaded" {
                assert_eq!(response.status, 200, "{}", response.text);
                return;
            }
        }
    }

    /// Returns how many checks the other instance has served from its cache.
    async fn cached_checks(&self) -> f64 {
        let series = "perennial_session_checks_total{by=\"memory\"}";
        let checks = self.instances.second.metric(series).await;
        checks.unwrap_or_default()
    }

    /// Checks the session until the other instance serves it from its cache.
    async fn wait_until_cached(&self, access: &str) {
        wait_until(
            "the session is cached",
            Duration::from_secs(10),
            async || {
                let before = self.cached_checks().await;
                assert_eq!(self.second.check(access).await.status, 200);
                self.cached_checks().await > before
            },
        )
        .await;
    }

    /// Revokes cached sessions during a fault, and measures how long the other instance accepts them after
    /// the response.
    async fn revoke_during(&self, fault: ListenerFault) {
        let mut times = Vec::new();
        for _ in 0..rounds() {
            let session = self.session().await;
            let access = session.access();
            self.wait_until_cached(access).await;
            let injected = self.instances.inject(fault).await;
            self.revoke(access).await;
            assert_eq!(
                self.first.check(access).await.status,
                401,
                "immediately on the same instance"
            );
            let check = async || self.second.check(access).await.status;
            times.push(time_to_reject(check).await);
            drop(injected);
        }
        report(fault, times);
    }
}

#[tokio::test]
async fn revoked_session_is_rejected_everywhere() {
    let fixture = RevocationFixture::start().await;
    fixture.revoke_during(ListenerFault::None).await;
}

#[tokio::test]
async fn revoked_session_is_rejected_while_the_listener_is_terminated() {
    let fixture = RevocationFixture::start().await;
    fixture.revoke_during(ListenerFault::Terminated).await;
}

#[tokio::test]
async fn revoked_session_is_rejected_while_the_listener_is_frozen() {
    let fixture = RevocationFixture::start().await;
    fixture.revoke_during(ListenerFault::Frozen).await;
}

#[tokio::test]
async fn revoked_session_is_rejected_while_notifications_are_lost() {
    let fixture = RevocationFixture::start().await;
    fixture.revoke_during(ListenerFault::Lost).await;
}

/// Checks that race a revocation, eight at a time.
#[tokio::test]
async fn check_racing_a_revocation_is_not_cached() {
    let fixture = Arc::new(RevocationFixture::start().await);
    let races = (rounds() * 8).min(125);
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let email = format!("user{worker}@example.com");
                fixture.first.sign_up(&email).await;
                for _ in 0..races {
                    let session = fixture.first.sign_in(&email).await;
                    let revoking = async {
                        // The other instance does not know the session, so that the checks fill its cache.
                        let [random] = Randomness.bytes();
                        tokio::time::sleep(Duration::from_micros(u64::from(random) * 20)).await;
                        fixture.revoke(session.access()).await;
                        Instant::now()
                    };
                    let checking = async {
                        let mut rejected = 0;
                        let mut last = Instant::now();
                        while rejected < 10 {
                            let response = fixture.second.check(session.access()).await;
                            match response.status {
                                200 => {
                                    assert_eq!(rejected, 0, "accepted after a rejection");
                                    last = Instant::now();
                                }
                                401 => rejected += 1,
                                // On a busy machine, admission control may reject a check.
                                503 if response.problem() == "overloaded" => {}
                                _ => panic!("{} {}", response.status, response.text),
                            }
                        }
                        last
                    };
                    let (ended, last) = tokio::join!(revoking, checking);
                    let late = last.saturating_duration_since(ended);
                    assert!(late < Duration::from_secs(1), "accepted {late:?} later");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(
        fixture.cached_checks().await > 0.0,
        "no check was served from the cache"
    );
}

#[tokio::test]
async fn session_check_without_database_returns_503() {
    let fixture = RevocationFixture::start().await;
    let session = fixture.session().await;
    fixture.wait_until_cached(session.access()).await;
    fixture.instances.cluster.stop();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    for api in [&fixture.first, &fixture.second] {
        let response = api.check(session.access()).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (503, "unavailable")
        );
    }
    fixture.instances.cluster.resume();
    for server in [&fixture.instances.first, &fixture.instances.second] {
        server.wait_for_ok("/readyz").await;
    }
    assert_eq!(fixture.first.check(session.access()).await.status, 200);
    fixture.wait_until_cached(session.access()).await;
}
