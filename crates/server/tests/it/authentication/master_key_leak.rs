//! What an attacker with a leaked master key cannot do.

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    master_key::{DumpedSession, derived_keys, generate_key, start_with_new_key, with_keys},
    process::{MASTER_KEY, Server, run_ok},
    service::Service,
};

/// Returns the only session.
async fn dump_session<S>(service: &Service<S>) -> DumpedSession {
    let database = service.database.connect().await;
    let query = "SELECT tenant_id, id, salt FROM sessions";
    DumpedSession::from_row(&database.query_one(query, &[]).await.unwrap())
}

/// With the master key and a session's id, but without its salt.
#[tokio::test]
async fn leaked_master_key_alone_cannot_refresh_a_session() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let tokens = api.sign_up("ada@example.com").await;
    let next = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
    let guessed = DumpedSession {
        salt: [7; 16],
        ..dump_session(&service).await
    };
    for generation in 0..3 {
        let forged = guessed.refresh_token(&derived_keys(MASTER_KEY), generation);
        let response = api.refresh(&forged).await;
        assert_eq!(response.status, 401, "{generation}: {}", response.text);
    }
    // The forged tokens did not end the session either.
    assert_eq!(api.check(next.access()).await.status, 200);
}

/// With the previous key, the session's salt and its generation, while both keys are configured.
#[tokio::test]
async fn previous_master_key_cannot_refresh_a_session_of_the_new_one() {
    let service = Service::start().await;
    let (_, client) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client);
    let tokens = api.sign_up("ada@example.com").await;
    let server = start_with_new_key(&service).await;
    let api = ApiClient::new(&server.url).with("client-id", &client);
    let next = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);

    let session = dump_session(&service).await;
    let forged = session.refresh_token(&derived_keys(MASTER_KEY), 1);
    let response = api.refresh(&forged).await;
    assert_eq!(response.status, 401, "{}", response.text);
    assert_eq!(api.refresh(next.refresh()).await.status, 200);
}

/// The runbook's steps after a leak. The attacker has the old key and a dump from before, and so the same
/// refresh token as the device.
#[tokio::test]
async fn leak_procedure_invalidates_tokens_computed_from_an_earlier_dump() {
    let service = Service::start().await;
    let (_, client) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client);
    let tokens = api.sign_up("ada@example.com").await;
    let session = dump_session(&service).await;
    let computed = session.refresh_token(&derived_keys(MASTER_KEY), 0);
    assert_eq!(computed, tokens.refresh());

    let new = generate_key();
    run_ok(
        &with_keys(&service.variables, &new, Some(MASTER_KEY)),
        &["keys", "rewrap"],
    );
    let after = with_keys(&service.variables, &new, None);
    run_ok(&after, &["keys", "rotate", "--refuse-old"]);
    run_ok(&after, &["session", "revoke", "--all", "--yes"]);
    let server = Server::start(&after).await;
    let api = ApiClient::new(&server.url).with("client-id", &client);
    assert_eq!(api.refresh(&computed).await.status, 401);
    assert_eq!(api.check(tokens.access()).await.status, 401);
}
