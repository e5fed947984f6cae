//! Kinds of tokens: only access tokens for an audience are accepted, unless a flag accepts more.

use jiff::Timestamp;
use perennial::identity_providers::{
    AcceptedTokens, DiscoveryTiming, Identity, IdentityProvider, TokenError, TokenVerification,
};
use serde_json::{Value, json};

use super::{add_arguments, check, verifier};
use crate::harness::{
    database::Database,
    identity_provider::{FakeIssuer, IssuerBehavior},
    process::{run_err, run_ok, sandbox},
};

const ID_TOKENS: AcceptedTokens = AcceptedTokens {
    id_tokens: true,
    bound_tokens: false,
    azp: false,
};
const BOUND_TOKENS: AcceptedTokens = AcceptedTokens {
    id_tokens: false,
    bound_tokens: true,
    azp: false,
};
const AZP: AcceptedTokens = AcceptedTokens {
    id_tokens: false,
    bound_tokens: false,
    azp: true,
};
const EVERYTHING: AcceptedTokens = AcceptedTokens {
    id_tokens: true,
    bound_tokens: true,
    azp: true,
};

/// An issuer whose tokens a provider with certain flags verifies.
pub(super) struct Fixture {
    pub(super) issuer: FakeIssuer,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self {
            issuer: FakeIssuer::start().await,
        }
    }

    pub(super) async fn verify(
        &self,
        audiences: &[&str],
        accept: AcceptedTokens,
        token: &str,
    ) -> Result<Identity, TokenError> {
        let provider = IdentityProvider {
            accept,
            ..IdentityProvider::new(&self.issuer.issuer, audiences)
        };
        let verifier = verifier(DiscoveryTiming::default());
        verifier.verify(&[provider], token, Timestamp::now()).await
    }

    /// Asserts that the token is refused with `reason`, except with `allowing`.
    async fn assert_needs(&self, token: &str, allowing: AcceptedTokens, reason: &str) {
        let refused = self
            .verify(&["product"], AcceptedTokens::default(), token)
            .await;
        let Err(TokenError::Invalid(message)) = refused else {
            panic!("{refused:?}");
        };
        assert!(message.contains(reason), "{message}");
        let flag = allowing.flags();
        assert!(message.contains(&flag), "{message} does not name {flag}");
        let accepted = self.verify(&["product"], allowing, token).await;
        assert!(accepted.is_ok(), "{accepted:?}");
    }
}

/// Malformed input: 72, 74.
#[tokio::test]
async fn logout_tokens_and_security_events_are_refused_whatever_the_provider_accepts() {
    let fixture = Fixture::new().await;
    let logout = json!({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}});
    for (header_type, claims) in [
        (Some("logout+jwt"), json!({})),
        (Some("LOGOUT+JWT"), json!({})),
        (Some("application/logout+jwt"), json!({})),
        (Some("secevent+jwt"), json!({})),
        (Some("application/secevent+jwt"), json!({})),
        (Some("token-introspection+jwt"), json!({})),
        (Some("dpop+jwt"), json!({})),
        (Some("JWT"), logout.clone()),
        (Some("at+jwt"), logout.clone()),
        (None, logout),
        (Some("JWT"), json!({"typ": "Logout", "scope": "openid"})),
        (Some("JWT"), json!({"typ": "Refresh"})),
        (Some("JWT"), json!({"typ": "Offline"})),
        (Some("JWT"), json!({"token_use": "refresh_token"})),
    ] {
        let token = fixture.issuer.token_of_type(header_type, &claims);
        let refused = fixture.verify(&["product"], EVERYTHING, &token).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{header_type:?} {claims}: {refused:?}"
        );
    }
}

/// Malformed input: 74.
#[tokio::test]
async fn id_tokens_are_refused_unless_the_provider_accepts_them() {
    let fixture = Fixture::new().await;
    for claims in [
        json!({"typ": "ID"}),
        json!({"typ": "ID", "scope": "openid"}),
        json!({"token_use": "id"}),
        json!({"nonce": "n-0S6_WzA2Mj"}),
        json!({"at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q"}),
        json!({"c_hash": "HK6E_P6Dh8Y93mRNtsDB1Q"}),
        json!({"s_hash": "HK6E_P6Dh8Y93mRNtsDB1Q"}),
        // As Google's: issued to the application for itself.
        json!({"azp": "product"}),
        json!({"aud": ["product"], "azp": "product"}),
    ] {
        let token = fixture.issuer.token_of_type(Some("JWT"), &claims);
        fixture.assert_needs(&token, ID_TOKENS, "an ID token").await;
        let token = fixture.issuer.token_of_type(None, &claims);
        fixture.assert_needs(&token, ID_TOKENS, "an ID token").await;
    }
}

#[tokio::test]
async fn access_tokens_with_claims_of_id_tokens_are_accepted() {
    let fixture = Fixture::new().await;
    for (header_type, claims) in [
        (None, json!({})),
        (Some("JWT"), json!({})),
        (Some("at+jwt"), json!({"nonce": "n", "azp": "product"})),
        (Some("application/at+jwt"), json!({"nonce": "n"})),
        // Keycloak before version 24 has the nonce in access tokens.
        (Some("JWT"), json!({"nonce": "n", "scope": "openid"})),
        (Some("JWT"), json!({"nonce": "n", "typ": "Bearer"})),
        (Some("JWT"), json!({"azp": "product", "scp": "access"})),
        (
            Some("JWT"),
            json!({"azp": "product", "token_use": "access"}),
        ),
        (Some("JWT"), json!({"azp": "application"})),
        (
            Some("JWT"),
            json!({"aud": ["product", "account"], "azp": "product"}),
        ),
    ] {
        let token = fixture.issuer.token_of_type(header_type, &claims);
        let accepted = fixture
            .verify(&["product"], AcceptedTokens::default(), &token)
            .await;
        assert!(accepted.is_ok(), "{header_type:?} {claims}: {accepted:?}");
    }
}

#[tokio::test]
async fn bound_tokens_are_refused_unless_the_provider_accepts_them() {
    let fixture = Fixture::new().await;
    for cnf in [
        json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
        json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}),
        json!({}),
        json!("x"),
    ] {
        let token = fixture
            .issuer
            .token_of_type(Some("at+jwt"), &json!({"cnf": cnf}));
        fixture
            .assert_needs(&token, BOUND_TOKENS, "bound to a key or certificate")
            .await;
    }
}

#[tokio::test]
async fn azp_counts_as_audience_only_if_the_provider_accepts_it() {
    let fixture = Fixture::new().await;
    for aud in [json!("other"), json!(["a", "b"]), Value::Null] {
        let token = fixture
            .issuer
            .token_of_type(Some("at+jwt"), &json!({"aud": aud, "azp": "product"}));
        fixture.assert_needs(&token, AZP, "wrong audience").await;
    }
    let token = fixture.issuer.token_of_type(
        Some("at+jwt"),
        &json!({"aud": "other", "azp": "application"}),
    );
    let refused = fixture.verify(&["product"], EVERYTHING, &token).await;
    assert_eq!(
        refused,
        Err(TokenError::Invalid("wrong audience".to_owned()))
    );
}

#[tokio::test]
async fn claim_that_shows_the_kind_cannot_be_duplicated() {
    let fixture = Fixture::new().await;
    let claims = format!(
        r#"{{"iss":{},"sub":"u1","aud":"product","exp":9999999999,"email":"a@example.com","email_verified":true"#,
        json!(fixture.issuer.issuer)
    );
    for duplicate in [
        r#""cnf":null,"cnf":{}"#,
        r#""typ":"Bearer","typ":"ID""#,
        r#""events":null,"events":{}"#,
    ] {
        let header = r#"{"alg":"EdDSA","kid":"own"}"#;
        let token = fixture
            .issuer
            .sign(header, &format!("{claims},{duplicate}}}"));
        let refused = fixture.verify(&["product"], EVERYTHING, &token).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn time_of_authentication_is_auth_time_or_else_the_time_of_issue() {
    let fixture = Fixture::new().await;
    let at = |seconds| Some(Timestamp::from_second(seconds).unwrap());
    for (claims, expected) in [
        (
            json!({"auth_time": 1_700_000_000, "iat": 1_700_000_100}),
            at(1_700_000_000),
        ),
        (json!({"auth_time": "1700000000"}), at(1_700_000_000)),
        (json!({"iat": 1_700_000_100}), at(1_700_000_100)),
        (
            json!({"auth_time": "yesterday", "iat": 1_700_000_100}),
            at(1_700_000_100),
        ),
        (
            json!({"auth_time": 1e300, "iat": 1_700_000_100}),
            at(1_700_000_100),
        ),
        (json!({}), None),
    ] {
        let token = fixture.issuer.token_of_type(Some("at+jwt"), &claims);
        let identity = fixture
            .verify(&["product"], AcceptedTokens::default(), &token)
            .await;
        assert_eq!(identity.unwrap().authenticated_at, expected, "{claims}");
    }
}

#[tokio::test]
async fn email_of_entra_is_verified_by_xms_edov() {
    let fixture = Fixture::new().await;
    for (edov, expected) in [
        (json!(true), true),
        (json!(1), true),
        (json!("1"), true),
        (json!(false), false),
        (json!(0), false),
        (json!("0"), false),
    ] {
        let claims = json!({"email_verified": null, "xms_edov": edov});
        let token = fixture.issuer.token_of_type(Some("JWT"), &claims);
        let identity = fixture
            .verify(&["product"], AcceptedTokens::default(), &token)
            .await;
        assert_eq!(identity.unwrap().email_verified, expected, "{edov}");
    }
    let claims = json!({"email_verified": false, "xms_edov": true});
    let token = fixture.issuer.token_of_type(Some("JWT"), &claims);
    let identity = fixture
        .verify(&["product"], AcceptedTokens::default(), &token)
        .await;
    assert!(!identity.unwrap().email_verified);
}

/// Also for JWTs, which such a provider verifies itself.
#[tokio::test]
async fn kinds_of_tokens_are_checked_in_introspection_responses() {
    let fixture = Fixture::new().await;
    let issuer = &fixture.issuer;
    let verify = async |accept: AcceptedTokens, token: &str, changes: Value| {
        let mut body = json!({
            "active": true, "sub": "u1", "aud": "product", "email": "a@example.com", "email_verified": true,
        });
        for (field, value) in changes.as_object().unwrap() {
            body[field] = value.clone();
        }
        issuer.set_behavior(IssuerBehavior::Userinfo(
            issuer.keys.clone(),
            200,
            body.to_string(),
        ));
        let provider = IdentityProvider {
            verify: TokenVerification::Tokeninfo {
                endpoint: format!("{}/me", issuer.issuer),
            },
            accept,
            ..IdentityProvider::new(&issuer.issuer, &["product"])
        };
        let verifier = verifier(DiscoveryTiming::default());
        verifier.verify(&[provider], token, Timestamp::now()).await
    };
    let default = AcceptedTokens::default();
    assert!(verify(default, "opaque", json!({})).await.is_ok());
    for (changes, allowing) in [
        (json!({"cnf": {"jkt": "x"}}), BOUND_TOKENS),
        (json!({"token_type": "DPoP"}), BOUND_TOKENS),
        (json!({"typ": "ID"}), ID_TOKENS),
        (json!({"aud": "other", "client_id": "product"}), AZP),
        (json!({"aud": null, "azp": "product"}), AZP),
    ] {
        let refused = verify(default, "opaque", changes.clone()).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{changes}: {refused:?}"
        );
        assert!(
            verify(allowing, "opaque", changes.clone()).await.is_ok(),
            "{changes}"
        );
    }
    for changes in [
        json!({"token_type": "refresh_token"}),
        json!({"token_use": "refresh_token"}),
        json!({"typ": "Refresh"}),
    ] {
        let refused = verify(EVERYTHING, "opaque", changes.clone()).await;
        assert!(
            matches!(refused, Err(TokenError::Invalid(_))),
            "{changes}: {refused:?}"
        );
    }
    let logout = fixture.issuer.token_of_type(Some("logout+jwt"), &json!({}));
    let refused = verify(EVERYTHING, &logout, json!({})).await;
    assert!(
        matches!(refused, Err(TokenError::Invalid(_))),
        "{refused:?}"
    );
    let id_token = fixture
        .issuer
        .token_of_type(Some("JWT"), &json!({"nonce": "n"}));
    let refused = verify(default, &id_token, json!({})).await;
    assert!(
        matches!(refused, Err(TokenError::Invalid(_))),
        "{refused:?}"
    );
}

// The commands block a thread, and the issuer needs another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flags_of_a_provider_are_stored_and_shown() {
    let fake_issuer = FakeIssuer::start().await;
    let database = Database::create().await;
    let variables = sandbox(&database.url);
    let issuer = fake_issuer.issuer.as_str();
    let add = add_arguments(issuer);
    let flags = [
        "--accept-id-tokens",
        "--accept-bound-tokens",
        "--accept-azp",
    ];
    let keys = ["accept_id_tokens", "accept_bound_tokens", "accept_azp"];
    let connection = database.connect().await;
    for (used, flag) in flags.into_iter().enumerate() {
        run_ok(&variables, &[&add[..], &[flag]].concat());
        let listed = run_ok(&variables, &["provider", "list", "--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let checked = run_ok(&variables, &["provider", "check", issuer, "--json"]);
        let checked: Value = serde_json::from_str(&checked).unwrap();
        let event = "SELECT data::text FROM events WHERE kind = 'provider.added' ORDER BY at DESC, id DESC LIMIT 1";
        let event: String = connection.query_one(event, &[]).await.unwrap().get(0);
        let event: Value = serde_json::from_str(&event).unwrap();
        for shown in [&listed, &checked, &event] {
            for (index, key) in keys.iter().enumerate() {
                assert_eq!(shown[key], index == used, "{shown}");
            }
        }
        for command in [&["provider", "list"][..], &["provider", "check", issuer]] {
            let output = run_ok(&variables, command);
            assert!(output.contains(flag), "{output}");
        }
        connection
            .execute("DELETE FROM identity_providers", &[])
            .await
            .unwrap();
    }
    let without_audience = [
        "provider",
        "add",
        "--issuer",
        issuer,
        "--verify",
        "userinfo",
        "--accept-any-audience",
        "--accept-azp",
    ];
    assert!(run_err(&variables, &without_audience).contains("--accept-azp"));
    run_ok(&variables, &add);
    let bound = fake_issuer.token(&json!({"cnf": {"jkt": "x"}}));
    let (accepted, output) = check(&variables, issuer, &bound);
    let reason = output["token"]["refused"].as_str().unwrap();
    assert!(
        !accepted && reason.contains("--accept-bound-tokens"),
        "{output}"
    );
}
