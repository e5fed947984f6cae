//! Rate limits of sign-ins and of invalid tokens.

use crate::harness::{
    api::{ApiClient, ApiResponse},
    auth::{SessionTokens, sandbox_token},
    process::Variables,
    service::{InProcessService, Service},
};

const PUBLISHABLE: &[&str] = &["--kind", "publishable"];

fn limit(name: &'static str, limit: u32) -> impl FnOnce(&mut Variables) {
    move |variables| {
        variables.insert(name, limit.to_string());
        variables.insert("PERENNIAL_TRUSTED_PROXIES", "127.0.0.0/8".to_owned());
    }
}

async fn limited(name: &'static str, max: u32) -> InProcessService {
    Service::start_in_process_with(limit(name, max)).await
}

/// Returns a client that sends this `x-forwarded-for`.
fn forwarded(api: &ApiClient, address: &str) -> ApiClient {
    api.with("x-forwarded-for", address)
}

fn assert_limited(response: &ApiResponse, scope: &str, max: u32) {
    assert_eq!(response.problem(), "rate_limited", "{}", response.text);
    for part in [
        format!("more than {max} "),
        format!(" per minute from this {scope};"),
    ] {
        assert!(response.text.contains(&part), "{}", response.text);
    }
    let wait: u32 = response.header("retry-after").parse().unwrap();
    assert!((1..=60 / max + 1).contains(&wait), "{wait}");
}

async fn sign_in(api: &ApiClient, email: &str) -> ApiResponse {
    let token = sandbox_token(email);
    api.authenticate("sign-in", &token, email).await
}

#[tokio::test]
async fn sign_ins_are_limited_per_client() {
    let service = Service::start_with(limit("PERENNIAL_SIGN_INS_PER_CLIENT", 5)).await;
    let (busy, other) = (service.api(&[]), service.api(&[]));
    busy.sign_up("ada@example.com").await;
    for _ in 0..4 {
        busy.sign_in("ada@example.com").await;
    }
    for how in ["sign-in", "sign-up"] {
        let token = sandbox_token("bob@example.com");
        let response = busy.authenticate(how, &token, "bob@example.com").await;
        assert_limited(&response, "client", 5);
    }
    other.sign_in("ada@example.com").await;
    // Other requests are not limited.
    assert_eq!(busy.get("/subscription-plans").await.status, 200);
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    let series = r#"perennial_shed_total{by="sign-ins of a client"} 2"#;
    assert!(metrics.contains(series), "{metrics}");
}

#[tokio::test]
async fn sign_ins_are_limited_per_address() {
    let service = limited("PERENNIAL_SIGN_INS_PER_PEER", 5).await;
    let (server, browser) = (service.api(&[]), service.api(PUBLISHABLE));
    server.sign_up("ada@example.com").await;
    // A browser's address is that of the connection. A server names its user's in `x-forwarded-for`.
    let of_browser = forwarded(&browser, "203.0.113.1");
    let of_server = forwarded(&server, "203.0.113.1, 198.51.100.1");
    for api in [&of_browser, &of_server] {
        for _ in 0..5 {
            assert_eq!(sign_in(api, "ada@example.com").await.status, 200);
        }
        assert_limited(&sign_in(api, "ada@example.com").await, "IP address", 5);
    }
    let forged = forwarded(&browser, "192.0.2.9, 203.0.113.1");
    assert_limited(&sign_in(&forged, "ada@example.com").await, "IP address", 5);
    for api in [
        forwarded(&browser, "203.0.113.2"),
        forwarded(&server, "203.0.113.2, 198.51.100.1"),
        // Without a user's address, only the client's limit applies.
        server.clone(),
    ] {
        assert_eq!(sign_in(&api, "ada@example.com").await.status, 200);
    }
}

#[tokio::test]
async fn sign_ins_are_limited_per_identity() {
    let service = limited("PERENNIAL_SIGN_INS_PER_IDENTITY", 3).await;
    let server = service.api(&[]);
    server.sign_up("ada@example.com").await;
    server.sign_up("bob@example.com").await;
    // Failed sign-ins do not count against the claimed identity.
    for _ in 0..5 {
        let token = sandbox_token("bob@example.com") + "x";
        let response = server
            .authenticate("sign-in", &token, "ada@example.com")
            .await;
        assert_eq!(response.status, 401);
    }
    for _ in 0..2 {
        server.sign_in("ada@example.com").await;
    }
    assert_limited(&sign_in(&server, "ada@example.com").await, "identity", 3);
    server.sign_in("bob@example.com").await;
}

/// The limit applies to all kinds of tokens and to one address only.
#[tokio::test]
async fn invalid_tokens_are_limited_per_address() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_PEER", 6).await;
    let browser = service.api(PUBLISHABLE);
    let (guesser, other) = (
        forwarded(&browser, "203.0.113.1"),
        forwarded(&browser, "203.0.113.2"),
    );
    let ada = other.sign_up("ada@example.com").await;
    for _ in 0..2 {
        assert_eq!(guesser.check("guess").await.status, 401);
        assert_eq!(guesser.refresh("prn_rt_guess").await.status, 401);
        let response = guesser
            .authenticate("sign-in", "guess", "ada@example.com")
            .await;
        assert_eq!(response.status, 401);
    }
    let good = sandbox_token("ada@example.com");
    let responses = [
        guesser.check(ada.access()).await,
        guesser.refresh(ada.refresh()).await,
        guesser
            .authenticate("sign-in", &good, "ada@example.com")
            .await,
    ];
    for response in responses {
        assert_limited(&response, "IP address", 6);
    }
    // Cached sessions stay valid at the limited address.
    assert_eq!(other.check(ada.access()).await.status, 200);
    assert_eq!(guesser.check(ada.access()).await.status, 200);
    // Requests without a token are not limited.
    assert_eq!(guesser.get("/subscription-plans").await.status, 200);
    assert_eq!(other.check(ada.access()).await.status, 200);
    assert_eq!(other.refresh(ada.refresh()).await.status, 200);
}

#[tokio::test]
async fn invalid_tokens_are_limited_per_secret_client() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_CLIENT", 4).await;
    let (server, browser) = (service.api(&[]), service.api(PUBLISHABLE));
    let ada = server.sign_up("ada@example.com").await;
    for _ in 0..10 {
        assert_eq!(
            browser.check("guess").await.status,
            401,
            "counted per address"
        );
        let named = forwarded(&server, "203.0.113.1, 198.51.100.1");
        assert_eq!(
            named.check("guess").await.status,
            401,
            "counted per address"
        );
    }
    for _ in 0..4 {
        assert_eq!(server.check("guess").await.status, 401);
    }
    assert_limited(&server.check(ada.access()).await, "client", 4);
    assert_eq!(browser.check(ada.access()).await.status, 200);
}

/// Another client cannot lock out a session by sending its refresh token.
#[tokio::test]
async fn stolen_refresh_token_cannot_lock_out_a_session() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_SESSION", 4).await;
    let (server, thief) = (service.api(&[]), service.api(PUBLISHABLE));
    let ada = server.sign_up("ada@example.com").await;
    for _ in 0..10 {
        assert_eq!(thief.refresh(ada.refresh()).await.status, 401);
    }
    assert_eq!(server.check(ada.access()).await.status, 200);
    assert_eq!(server.refresh(ada.refresh()).await.status, 200);
}

/// A publishable client is shared by all users, so that one user must not exhaust a limit.
#[tokio::test]
async fn publishable_client_has_no_sign_in_limit() {
    let service = limited("PERENNIAL_SIGN_INS_PER_CLIENT", 3).await;
    let browser = service.api(PUBLISHABLE);
    for guess in 0..10 {
        let other_address = forwarded(&browser, &format!("203.0.113.{guess}"));
        let response = other_address
            .authenticate("sign-in", "guess", "ada@example.com")
            .await;
        assert_eq!(response.status, 401);
    }
    forwarded(&browser, "198.51.100.1")
        .sign_up("ada@example.com")
        .await;
}

/// A device that keeps using its revoked session.
#[tokio::test]
async fn invalid_tokens_are_limited_per_ended_session() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_SESSION", 4).await;
    let server = service.api(&[]);
    let ended = server.sign_up("ada@example.com").await;
    let active = SessionTokens::from_response(&sign_in(&server, "ada@example.com").await);
    let bearer = server.with_bearer(ended.access());
    assert_eq!(
        bearer
            .post("/authentication/tokens/logout", "")
            .await
            .status,
        200
    );
    for _ in 0..2 {
        assert_eq!(server.check(ended.access()).await.status, 401);
        assert_eq!(server.refresh(ended.refresh()).await.status, 401);
    }
    assert_limited(&server.check(ended.access()).await, "session", 4);
    assert_limited(&server.refresh(ended.refresh()).await, "session", 4);
    assert_eq!(server.check(active.access()).await.status, 200);
}
