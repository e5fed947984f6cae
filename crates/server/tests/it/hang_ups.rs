//! Callers that hang up at any moment leave no half-done work and no connection in a strange state.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    harness::{service::Service, wait_until},
    subscription_plans::minimal,
};

/// A small generator, so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_cut_requests_among_a_thousand_writes() {
    let service = Service::start().await;
    let (_, value) = service.make_client(&[]);
    let caller = service.anonymous().with("client-id", &value);
    let address = service.server.url.replace("http://", "");

    let cutters: Vec<_> = (0..8_u64)
        .map(|lane| {
            let (address, value) = (address.clone(), value.clone());
            tokio::spawn(async move {
                let mut random = Random(lane + 1);
                for number in 0..125 {
                    let body = minimal(&format!("cut-{lane}-{number}")).to_string();
                    let request = format!(
                        "POST /subscription-plans HTTP/1.1\r\nhost: x\r\nclient-id: {value}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    let mut stream = TcpStream::connect(&address).await.unwrap();
                    // Half of them in the middle of the request, half of them while it is worked on.
                    let sent = if random.below(2) == 0 { random.below(request.len() as u64) as usize } else { request.len() };
                    stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
                    tokio::time::sleep(Duration::from_micros(random.below(8_000))).await;
                    if random.below(2) == 0 {
                        // A reset instead of an orderly end.
                        stream.set_zero_linger().unwrap();
                    }
                    drop(stream);
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..4)
        .map(|lane| {
            let caller = caller.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0..250 {
                    let slug = format!("kept-{lane}-{number}");
                    let answer = caller
                        .post("/subscription-plans", &minimal(&slug).to_string())
                        .await;
                    assert!([201, 503].contains(&answer.status), "{}", answer.text);
                    if answer.status == 201 {
                        acknowledged.push(slug);
                    }
                }
                acknowledged
            })
        })
        .collect();
    for cutter in cutters {
        cutter.await.unwrap();
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    assert!(
        acknowledged.len() >= 990,
        "only {} of 1000 writes were acknowledged",
        acknowledged.len()
    );

    // Whatever was in hand comes to its end.
    let database = service.database.connect().await;
    let in_transaction = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL";
    let count = async |query: &str| -> i64 { database.query_one(query, &[]).await.unwrap().get(0) };
    wait_until(
        "no connection is left in a transaction",
        Duration::from_secs(3),
        async || count(in_transaction).await == 0,
    )
    .await;
    wait_until(
        "the pool is whole again",
        Duration::from_secs(3),
        async || {
            let (_, metrics) = service.server.admin("/metrics").await.unwrap();
            let gauge = |name: &str| {
                metrics
                    .lines()
                    .find(|line| line.starts_with(name))
                    .unwrap()
                    .rsplit(' ')
                    .next()
                    .unwrap()
                    .to_owned()
            };
            gauge("perennial_database_pool_open") == gauge("perennial_database_pool_idle")
        },
    )
    .await;

    let rows = database
        .query("SELECT slug FROM subscription_plans", &[])
        .await
        .unwrap();
    let stored: std::collections::HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
    for slug in &acknowledged {
        assert!(
            stored.contains(slug),
            "{slug} was acknowledged and is not there"
        );
    }
    // Plan and event, or neither.
    let orphans = "SELECT count(*) FROM subscription_plans AS plan FULL JOIN (SELECT * FROM events WHERE kind = 'plan.created') AS event
        ON event.tenant_id = plan.tenant_id AND event.subject_id = plan.id WHERE plan.id IS NULL OR event.id IS NULL";
    assert_eq!(count(orphans).await, 0);
    let cut = stored
        .iter()
        .filter(|slug| slug.starts_with("cut-"))
        .count();
    println!(
        "{} acknowledged, all there; of 1000 cut requests {cut} had come through",
        acknowledged.len()
    );

    // As many writes at once as the pool has connections, all served.
    let at_once: Vec<_> = (0..4)
        .map(|number| {
            let caller = caller.clone();
            tokio::spawn(async move {
                caller
                    .post(
                        "/subscription-plans",
                        &minimal(&format!("after-{number}")).to_string(),
                    )
                    .await
                    .status
            })
        })
        .collect();
    for write in at_once {
        assert_eq!(write.await.unwrap(), 201);
    }
}
