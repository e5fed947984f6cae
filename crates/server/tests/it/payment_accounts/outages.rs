//! A database that is away.

use std::time::Duration;

use super::{TestAccount, subscription_event};
use crate::harness::{
    api::ApiClient,
    client::create_client,
    cluster::Cluster,
    process::{Server, sandbox},
    wait_until,
};

#[tokio::test]
async fn database_outage_returns_503_until_it_ends() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    let anonymous = ApiClient::new(&server.url);
    let (_, client) = create_client(&cluster.url(), &[]);
    let api = anonymous.with("client-id", &client);
    let account = TestAccount::stripe(&api, &anonymous).await;
    account.accept(&subscription_event("evt_1", "sub_1")).await;
    cluster.stop();
    for _ in 0..5 {
        let event = subscription_event("evt_2", "sub_1").to_string();
        let response = account.send(event.as_bytes()).await;
        response.assert_problem(503, "unavailable");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // Without an account, it cannot be said that the signature is invalid.
    let unsigned = account.send_with("t=1,v1=0", b"{}").await;
    unsigned.assert_problem(503, "unavailable");
    cluster.resume();
    wait_until(
        "200 after the outage",
        Duration::from_secs(10),
        async || {
            let event = subscription_event("evt_2", "sub_1").to_string();
            account.send(event.as_bytes()).await.status == 200
        },
    )
    .await;
}
