//! `tenant set --recent-sign-in`: counted from the authentication at the identity provider.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    auth::SessionTokens,
    identity_provider::{FakeIssuer, add_provider},
    process::run_ok,
    service::Service,
};

/// Signs up with a token that has these times, in seconds before now, deletes the account, and returns
/// the status. With `refreshed`, refreshes the session first.
async fn delete_account(auth_time: Option<i64>, iat: Option<i64>, refreshed: bool) -> u16 {
    let service = Service::start_in_process().await;
    let issuer = FakeIssuer::start().await;
    add_provider(&service.variables, &issuer.issuer);
    let set = ["tenant", "set", "--recent-sign-in", "300"];
    run_ok(&service.variables, &set);
    let api = service.api(&[]);
    let now = Timestamp::now().as_second();
    let mut claims = json!({"email": "ada@example.com"});
    for (claim, age) in [("auth_time", auth_time), ("iat", iat)] {
        if let Some(age) = age {
            claims[claim] = json!(now - age);
        }
    }
    let token = issuer.token(&claims);
    let signed_up = api.authenticate("sign-up", &token, "ada@example.com").await;
    let mut tokens = SessionTokens::from_response(&signed_up);
    if refreshed {
        tokens = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
    }
    let path = format!("/authentication/delete-my-account/{}", tokens.user());
    let bearer = api.with_bearer(tokens.access());
    let response = bearer.send(Method::DELETE, &path, None).await;
    if response.status != 204 {
        response.assert_problem(403, "reauthentication_required");
        let problem: Value = response.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("at most 300 seconds"), "{detail}");
    }
    response.status
}

/// A new session with an old single sign-on session at the provider is no recent sign-in.
#[tokio::test]
async fn recent_sign_in_is_counted_from_auth_time() {
    assert_eq!(delete_account(Some(600), Some(0), false).await, 403);
    assert_eq!(delete_account(Some(600), Some(0), true).await, 403);
    assert_eq!(delete_account(Some(10), Some(0), false).await, 204);
    // A provider whose clock is fast.
    assert_eq!(delete_account(Some(-30), Some(0), false).await, 204);
}

#[tokio::test]
async fn recent_sign_in_is_counted_from_the_token_if_it_has_no_auth_time() {
    assert_eq!(delete_account(None, Some(600), false).await, 403);
    assert_eq!(delete_account(None, Some(10), false).await, 204);
    assert_eq!(delete_account(None, None, false).await, 204);
}
