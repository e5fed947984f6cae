//! Email addresses with look-alike characters: no account has one, and a sign-in does not adopt one.

use serde_json::json;

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    identity_provider::{FakeIssuer, add_provider},
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
    let search = api.get(&format!("/users?email={LOOK_ALIKE_ENCODED}")).await;
    search.assert_problem(400, "invalid_parameter");
    let count = fixture
        .service
        .count("SELECT count(*) FROM identities")
        .await;
    assert_eq!(count, 0);
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
    // Only the address that the provider reports is accepted, and the user has an account.
    let token = fixture.token("u1", LOOK_ALIKE);
    let other = api.authenticate("sign-in", &token, PLAIN).await;
    other.assert_problem(403, "email_mismatch");
    let again = api.authenticate("sign-up", &token, LOOK_ALIKE).await;
    again.assert_problem(409, "account_exists");
    // The address that it imitates is still free.
    let kevin = fixture.token("u2", PLAIN);
    let kevin = api.authenticate("sign-up", &kevin, PLAIN).await;
    assert_eq!(kevin.status, 201, "{}", kevin.text);
}
