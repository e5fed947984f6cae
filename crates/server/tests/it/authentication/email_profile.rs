//! Email addresses with look-alike characters: refused for new accounts, reachable for existing ones.

use serde_json::json;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    identity_provider::{FakeIssuer, add_provider},
    process::run_ok,
    service::{InProcessService, Service},
};

/// Starts with the Kelvin sign, whose lower case is `k`.
const LOOK_ALIKE: &str = "\u{212a}evin@example.com";
const LOOK_ALIKE_ENCODED: &str = "%E2%84%AAevin@example.com";
const PLAIN: &str = "kevin@example.com";

struct Fixture {
    service: InProcessService,
    issuer: FakeIssuer,
    api: ApiClient,
}

impl Fixture {
    async fn start() -> Self {
        let service = Service::start_in_process().await;
        let issuer = FakeIssuer::start().await;
        add_provider(&service.variables, &issuer.issuer);
        let api = service.api(&[]);
        Self {
            service,
            issuer,
            api,
        }
    }

    /// Returns a token in which the provider says that it has verified the address.
    fn token(&self, subject: &str, email: &str) -> String {
        self.issuer.token(&json!({"sub": subject, "email": email}))
    }

    /// Gives an account an address that was accepted before the profile.
    async fn set_legacy_address(&self, email: &str) {
        let client = self.service.database.connect().await;
        let update = "UPDATE users SET email = $1, email_key = $2 WHERE email = $3";
        let updated = client.execute(update, &[&LOOK_ALIKE, &PLAIN, &email]).await;
        assert_eq!(updated.unwrap(), 1);
    }
}

/// Malformed input: 39, 40.
#[tokio::test]
async fn look_alike_address_cannot_claim_another_users_account() {
    let fixture = Fixture::start().await;
    let api = &fixture.api;
    let created = api
        .post("/users", &json!({"email": PLAIN}).to_string())
        .await;
    assert_eq!(created.status, 201, "{}", created.text);
    let token = fixture.token("attacker", LOOK_ALIKE);
    let refused = api.authenticate("sign-up", &token, LOOK_ALIKE).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert_eq!(refused.field_errors(), ["/email invalid_format"]);
    let refused = api.authenticate("sign-up", &token, PLAIN).await;
    refused.assert_problem(403, "email_mismatch");
    for email in [
        LOOK_ALIKE,
        "\u{430}da@example.com",
        "\u{ff41}da@example.com",
    ] {
        let refused = api
            .post("/users", &json!({"email": email}).to_string())
            .await;
        assert_eq!(refused.field_errors(), ["/email invalid_format"], "{email}");
    }
    let found = api.get(&format!("/users?email={LOOK_ALIKE_ENCODED}")).await;
    assert_eq!(
        found.json()["data"],
        json!([]),
        "not the account of {PLAIN}"
    );
    let count = fixture
        .service
        .count("SELECT count(*) FROM identities")
        .await;
    assert_eq!(count, 0);
}

#[tokio::test]
async fn account_with_a_legacy_address_remains_reachable() {
    let fixture = Fixture::start().await;
    let api = &fixture.api;
    let old = fixture.token("u1", "old@example.com");
    let old =
        SessionTokens::from_response(&api.authenticate("sign-up", &old, "old@example.com").await);
    fixture.set_legacy_address("old@example.com").await;

    let token = fixture.token("u1", LOOK_ALIKE);
    let signed_in = api.authenticate("sign-in", &token, LOOK_ALIKE).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let signed_in = SessionTokens::from_response(&signed_in);
    assert_eq!(signed_in.user(), old.user());
    assert_eq!(signed_in.0["user"]["email"], LOOK_ALIKE);
    assert_eq!(api.check(signed_in.access()).await.status, 200);
    let refreshed = api.refresh(signed_in.refresh()).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    let by_id = api.get(&format!("/users/{}", old.user())).await;
    assert_eq!(by_id.json()["email"], LOOK_ALIKE);
    let found = api.get(&format!("/users?email={LOOK_ALIKE_ENCODED}")).await;
    assert_eq!(found.json()["data"][0]["id"], old.user());
    let shown = run_ok(&fixture.service.variables, &["user", "show", LOOK_ALIKE]);
    assert!(shown.contains(old.user()), "{shown}");

    // The address that it normalizes to is another one, and stays reserved.
    let found = api.get(&format!("/users?email={PLAIN}")).await;
    assert_eq!(found.json()["data"], json!([]));
    let other = fixture.token("u2", PLAIN);
    let other = api.authenticate("sign-up", &other, PLAIN).await;
    other.assert_problem(409, "email_in_use");
    let again = fixture.token("u1", LOOK_ALIKE);
    let again = api.authenticate("sign-up", &again, LOOK_ALIKE).await;
    again.assert_problem(409, "account_exists");

    // A regular address at the provider replaces it.
    let token = fixture.token("u1", PLAIN);
    let signed_in = api.authenticate("sign-in", &token, PLAIN).await;
    assert_eq!(
        SessionTokens::from_response(&signed_in).0["user"]["email"],
        PLAIN
    );
}

#[tokio::test]
async fn precreated_account_with_a_legacy_address_is_claimed_by_this_address_only() {
    let fixture = Fixture::start().await;
    let api = &fixture.api;
    let created = api.post("/users", r#"{"email": "old@example.com"}"#).await;
    fixture.set_legacy_address("old@example.com").await;
    let other = fixture.token("u2", PLAIN);
    let other = api.authenticate("sign-up", &other, PLAIN).await;
    other.assert_problem(409, "email_in_use");
    let token = fixture.token("u1", LOOK_ALIKE);
    let claimed = api.authenticate("sign-up", &token, LOOK_ALIKE).await;
    assert_eq!(claimed.status, 201, "{}", claimed.text);
    let claimed = SessionTokens::from_response(&claimed);
    assert_eq!(claimed.user(), created.json()["id"]);
}

#[tokio::test]
async fn sign_in_does_not_adopt_a_look_alike_address() {
    let fixture = Fixture::start().await;
    let api = &fixture.api;
    let token = fixture.token("u1", "ada@example.com");
    let ada = api.authenticate("sign-up", &token, "ada@example.com").await;
    assert_eq!(ada.status, 201, "{}", ada.text);
    let token = fixture.token("u1", LOOK_ALIKE);
    let signed_in = api.authenticate("sign-in", &token, LOOK_ALIKE).await;
    let signed_in = SessionTokens::from_response(&signed_in);
    assert_eq!(signed_in.0["user"]["email"], "ada@example.com");
    // The address that it imitates is still free.
    let kevin = fixture.token("u2", PLAIN);
    let kevin = api.authenticate("sign-up", &kevin, PLAIN).await;
    assert_eq!(kevin.status, 201, "{}", kevin.text);
}
