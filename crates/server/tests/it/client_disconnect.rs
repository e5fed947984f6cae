//! Clients that disconnect at any moment leave no partial work and no broken database connection.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    harness::{service::Service, wait_until},
    lifecycle::simulation::SplitMix64,
    subscription_plans::minimal_plan,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnected_clients_leave_no_partial_writes() {
    let service = Service::start().await;
    let (_, value) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &value);
    let address = service.server.url.replace("http://", "");

    let disconnecting: Vec<_> = (0..8_u64)
        .map(|seed| {
            let (address, value) = (address.clone(), value.clone());
            tokio::spawn(async move {
                let mut random = SplitMix64(seed);
                for number in 0..125 {
                    let body = minimal_plan(&format!("cut-{seed}-{number}")).to_string();
                    let request = format!(
                        "POST /subscription-plans HTTP/1.1\r\nhost: x\r\nclient-id: {value}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    let mut stream = TcpStream::connect(&address).await.unwrap();
                    // Half of them during the request, half of them while it is processed.
                    let sent = if random.below(2) == 0 { random.below(request.len() as u64) as usize } else { request.len() };
                    stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
                    tokio::time::sleep(Duration::from_micros(random.below(8_000))).await;
                    if random.below(2) == 0 {
                        // Resets the connection instead of closing it.
                        stream.set_zero_linger().unwrap();
                    }
                    drop(stream);
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let api = api.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0..250 {
                    let slug = format!("kept-{writer}-{number}");
                    let response = api
                        .post("/subscription-plans", &minimal_plan(&slug).to_string())
                        .await;
                    assert!([201, 503].contains(&response.status), "{}", response.text);
                    if response.status == 201 {
                        acknowledged.push(slug);
                    }
                }
                acknowledged
            })
        })
        .collect();
    for task in disconnecting {
        task.await.unwrap();
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

    // Running transactions finish.
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
        "all pooled connections are idle",
        Duration::from_secs(3),
        async || {
            let open = service.server.metric("perennial_database_pool_open").await;
            open.is_some() && open == service.server.metric("perennial_database_pool_idle").await
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
            "{slug} was acknowledged but is not stored"
        );
    }
    // A plan and its event are stored together or not at all.
    let orphans = "SELECT count(*) FROM subscription_plans AS plan FULL JOIN (SELECT * FROM events WHERE kind = 'plan.created') AS event
        ON event.tenant_id = plan.tenant_id AND event.subject_id = plan.id WHERE plan.id IS NULL OR event.id IS NULL";
    assert_eq!(count(orphans).await, 0);
    let cut = stored
        .iter()
        .filter(|slug| slug.starts_with("cut-"))
        .count();
    println!(
        "{} writes acknowledged and stored; {cut} of 1000 interrupted requests succeeded",
        acknowledged.len()
    );

    // As many concurrent writes as the pool has connections succeed.
    let concurrent: Vec<_> = (0..4)
        .map(|number| {
            let api = api.clone();
            tokio::spawn(async move {
                api.post(
                    "/subscription-plans",
                    &minimal_plan(&format!("after-{number}")).to_string(),
                )
                .await
                .status
            })
        })
        .collect();
    for write in concurrent {
        assert_eq!(write.await.unwrap(), 201);
    }
}
