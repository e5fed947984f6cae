//! `/livez`, `/readyz` and `/metrics`, as a supervisor sees them.

use std::collections::BTreeMap;

use crate::harness::process::Server;

#[tokio::test]
async fn livez_answers_over_a_real_socket() {
    let variables = BTreeMap::from([
        ("PERENNIAL_MODE", "sandbox".to_owned()),
        ("DATABASE_URL", "postgres://127.0.0.1:1/nothing".to_owned()),
    ]);
    let server = Server::start(&variables).await;
    let answer = reqwest::get(format!("{}/livez", server.admin_url))
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.text().await.unwrap(), "ok\n");
}
