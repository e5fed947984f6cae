//! Sign-in with an OpenID provider.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::harness::{
    api::ApiResponse,
    identity_provider::{FakeIssuer, OpenIdProvider},
    process::{Variables, run, run_ok},
    service::InProcessService,
    wait_until,
};

const PUBLIC_URL: &str = "http://perennial.example";

struct Console {
    service: InProcessService,
    provider: OpenIdProvider,
}

fn set_provider(variables: &mut Variables, issuer: &str, client_id: &str) {
    variables.insert("PERENNIAL_PUBLIC_URL", PUBLIC_URL.to_owned());
    variables.insert("PERENNIAL_CONSOLE_ISSUER", issuer.to_owned());
    variables.insert("PERENNIAL_CONSOLE_CLIENT_ID", client_id.to_owned());
    variables.insert("PERENNIAL_CONSOLE_SCOPES", "openid,email,groups".to_owned());
    let groups = "billing-admins=admin,support=support".to_owned();
    variables.insert("PERENNIAL_CONSOLE_GROUPS", groups);
}

impl Console {
    async fn start() -> Self {
        Self::start_with(|variables| {
            let secret = "console-secret".to_owned();
            variables.insert("PERENNIAL_CONSOLE_CLIENT_SECRET", secret);
        })
        .await
    }

    async fn start_with(change: impl FnOnce(&mut Variables)) -> Self {
        let provider = OpenIdProvider::start().await;
        let service = Service::start_in_process_with(|variables| {
            set_provider(variables, &provider.issuer, "console");
            change(variables);
        })
        .await;
        Self { service, provider }
    }

    fn browser(&self) -> ApiClient {
        self.service.anonymous()
    }

    fn invite(&self, email: &str, role: &str) {
        let arguments = ["staff", "invite", email, "--role", role];
        run_ok(&self.service.variables, &arguments);
    }

    /// Starts a sign-in: returns the provider's URL and the cookie.
    async fn start_sign_in(&self) -> (String, String) {
        let response = self.browser().get("/console/sign-in/openid").await;
        assert_eq!(response.status, 303, "{}", response.text);
        let cookie = response.header("set-cookie");
        assert!(cookie.ends_with("; Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax"));
        let cookie = cookie.split(';').next().unwrap().to_owned();
        (response.header("location").to_owned(), cookie)
    }

    /// Opens a URL of the callback, as the redirect of the provider does.
    async fn call_back(&self, url: &str, cookie: &str) -> ApiResponse {
        let path = url.strip_prefix(PUBLIC_URL).unwrap();
        let browser = self.browser().with("sec-fetch-site", "cross-site");
        let response = browser.with("cookie", cookie).get(path).await;
        assert_eq!(response.status, 303, "{}", response.text);
        response
    }

    /// Signs a person in at the provider and returns the response of the callback.
    async fn sign_in_as(&self, person: Value) -> ApiResponse {
        self.provider.set_login(person).await;
        let (url, cookie) = self.start_sign_in().await;
        let url = self.provider.authorize(&url).await;
        self.call_back(&url, &cookie).await
    }
}

/// Returns the client of a person who has signed in.
fn signed_in(console: &Console, response: &ApiResponse) -> ApiClient {
    assert_eq!(response.header("location"), "/console/");
    let cookies: Vec<&str> = { response.headers.get_all("set-cookie").iter() }
        .map(|cookie| cookie.to_str().unwrap())
        .collect();
    let [removed, session] = cookies.as_slice() else {
        panic!("{cookies:?}");
    };
    assert!(removed.starts_with("__Host-perennial-sign-in=; Path=/; Max-Age=0;"));
    assert!(session.ends_with("; Path=/; Max-Age=43200; Secure; HttpOnly; SameSite=Strict"));
    let session = session.split(';').next().unwrap();
    page(&console.browser()).with("cookie", session)
}

fn assert_refused(response: &ApiResponse, code: &str) {
    assert_eq!(
        response.header("location"),
        format!("/console/#error={code}")
    );
    assert!(!response.header("set-cookie").contains(COOKIE));
}

#[tokio::test]
async fn invited_person_signs_in() {
    let console = Console::start().await;
    console.invite("Ada@example.com", "support");
    let options = console.browser().get_json("/console/sign-in").await;
    assert_eq!(
        options,
        json!({"identity_providers": [{"id": "openid", "name": "127.0.0.1"}]})
    );
    let person = json!({"sub": "1", "email": "ada@example.com", "email_verified": true});
    let response = console.sign_in_as(person).await;
    let staff = signed_in(&console, &response);
    let session = staff.get_json("/console/session").await;
    assert_eq!(session["staff_member"]["email"], "Ada@example.com");
    assert_eq!(session["staff_member"]["role"], "support");
}

#[tokio::test]
async fn public_client_signs_in_without_a_secret() {
    let console = Console::start_with(|variables| {
        variables.insert("PERENNIAL_CONSOLE_CLIENT_ID", "public-console".to_owned());
    })
    .await;
    console.invite("ada@example.com", "admin");
    let person = json!({"sub": "1", "email": "ada@example.com", "email_verified": true});
    let response = console.sign_in_as(person).await;
    signed_in(&console, &response);
}

#[tokio::test]
async fn others_are_refused() {
    let console = Console::start().await;
    console.invite("ada@example.com", "admin");
    console.invite("gone@example.com", "admin");
    run_ok(
        &console.service.variables,
        &["staff", "remove", "gone@example.com"],
    );
    for (person, code) in [
        (
            json!({"email": "eve@example.com", "email_verified": true}),
            "not_invited",
        ),
        (
            json!({"email": "gone@example.com", "email_verified": true}),
            "not_invited",
        ),
        (
            json!({"email": "ada@example.com", "email_verified": false}),
            "email_unverified",
        ),
        (json!({"email": "ada@example.com"}), "email_unverified"),
        (
            json!({"email": "not an address", "email_verified": true}),
            "email_unverified",
        ),
        (json!({}), "email_unverified"),
        (
            json!({"email": "eve@example.com", "email_verified": false, "groups": ["support"]}),
            "email_unverified",
        ),
        (
            json!({"email": "eve@example.com", "email_verified": true, "groups": ["other"]}),
            "not_invited",
        ),
    ] {
        let mut person = person;
        person["sub"] = json!(person.to_string());
        assert_refused(&console.sign_in_as(person).await, code);
    }
    // The provider refuses.
    assert_refused(&console.sign_in_as(json!({})).await, "sign_in_refused");
    assert_eq!(
        console
            .service
            .count("SELECT count(*) FROM staff_sessions")
            .await,
        0
    );
}

#[tokio::test]
async fn role_follows_the_groups() {
    let console = Console::start().await;
    let person = |groups: &[&str]| json!({"sub": "1", "email": "bob@example.com", "email_verified": true, "groups": groups});
    for (groups, role) in [
        (&["other", "support"][..], "support"),
        (&["support", "billing-admins"], "admin"),
        (&["support"], "support"),
    ] {
        let response = console.sign_in_as(person(groups)).await;
        let staff = signed_in(&console, &response);
        let limit = Duration::from_secs(5);
        wait_until("the role applies", limit, async || {
            let session = staff.get_json("/console/session").await;
            session["staff_member"]["role"] == role
        })
        .await;
    }
    let members = console
        .service
        .count("SELECT count(*) FROM staff_members")
        .await;
    assert_eq!(members, 1);
    // Without a group, the person needs an invitation.
    assert_refused(&console.sign_in_as(person(&[])).await, "not_invited");
    console.invite("bob@example.com", "viewer");
    signed_in(&console, &console.sign_in_as(person(&[])).await);
}

#[tokio::test]
async fn callback_needs_the_state_and_cookie_of_its_sign_in() {
    let console = Console::start().await;
    console.invite("ada@example.com", "admin");
    let person = json!({"sub": "1", "email": "ada@example.com", "email_verified": true});
    console.provider.set_login(person).await;
    let (url, cookie) = console.start_sign_in().await;
    let (other_url, other_cookie) = console.start_sign_in().await;
    let callback = console.provider.authorize(&url).await;
    let other_callback = console.provider.authorize(&other_url).await;
    // Another browser, or none of the sign-ins of this one.
    for wrong in [
        "",
        &other_cookie,
        "__Host-perennial-sign-in=x",
        &cookie[..cookie.len() - 4],
    ] {
        assert_refused(
            &console.call_back(&callback, wrong).await,
            "sign_in_expired",
        );
    }
    let (base, _) = callback.split_once('?').unwrap();
    assert_refused(&console.call_back(base, &cookie).await, "sign_in_expired");
    // The code of another sign-in: PKCE and the nonce belong to this one.
    let parameter = |url: &str, name: &str| {
        let url = reqwest::Url::parse(url).unwrap();
        let found = url
            .query_pairs()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned());
        found.unwrap()
    };
    let stolen = parameter(&other_callback, "code");
    let mixed = format!(
        "{base}?code={stolen}&state={}",
        parameter(&callback, "state")
    );
    assert_refused(&console.call_back(&mixed, &cookie).await, "sign_in_refused");
    signed_in(&console, &console.call_back(&callback, &cookie).await);
    // A code works once.
    assert_refused(
        &console.call_back(&callback, &cookie).await,
        "sign_in_refused",
    );
    // The session of the cookie is no session of the console.
    let value = cookie.split_once('=').unwrap().1;
    let response = with_cookie(&console.browser(), value)
        .get("/console/session")
        .await;
    response.assert_problem(401, "invalid_staff_session");
}

#[tokio::test]
async fn request_has_a_challenge_state_and_nonce() {
    let console = Console::start().await;
    let (url, cookie) = console.start_sign_in().await;
    let url = reqwest::Url::parse(&url).unwrap();
    let parameters: std::collections::BTreeMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(parameters["response_type"], "code");
    assert_eq!(parameters["client_id"], "console");
    assert_eq!(
        parameters["redirect_uri"],
        format!("{PUBLIC_URL}/console/callback")
    );
    assert_eq!(parameters["scope"], "openid email groups");
    assert_eq!(parameters["code_challenge_method"], "S256");
    for name in ["state", "nonce", "code_challenge"] {
        assert_eq!(parameters[name].len(), 43, "{name}");
        // The cookie is encrypted.
        assert!(!cookie.contains(&parameters[name]), "{name}");
    }
}

#[tokio::test]
async fn unavailable_provider_is_reported() {
    let mut issuer = FakeIssuer::start().await;
    issuer.stop().await;
    let service = Service::start_in_process_with(|variables| {
        set_provider(variables, &issuer.issuer, "console");
    })
    .await;
    let response = service.anonymous().get("/console/sign-in/openid").await;
    assert_refused(&response, "provider_unavailable");
}

#[tokio::test]
async fn service_without_a_provider_offers_links_only() {
    let service = Service::start_in_process().await;
    let api = service.anonymous();
    let options = api.get_json("/console/sign-in").await;
    assert_eq!(options, json!({"identity_providers": []}));
    api.get("/console/sign-in/openid")
        .await
        .assert_problem(404, "not_found");
    assert_refused(
        &api.get("/console/callback?code=x&state=y").await,
        "sign_in_refused",
    );
}

#[tokio::test]
async fn console_can_be_turned_off() {
    let service = Service::start_in_process().await;
    let staff = sign_in(&service, &[]).await;
    let cookie = staff.get("/console/session").await;
    assert_eq!(cookie.status, 200);
    let mut variables = service.variables.clone();
    variables.insert("PERENNIAL_CONSOLE", "off".to_owned());
    let server = crate::harness::in_process::InProcessServer::start(&variables).await;
    let off = staff.to(std::sync::Arc::new(server));
    for path in ["/console/session", "/console/sign-in", "/console/callback"] {
        off.get(path).await.assert_problem(404, "not_found");
    }
    off.get("/subscriptions")
        .await
        .assert_problem(401, "invalid_staff_session");
}

#[test]
fn incomplete_settings_are_rejected() {
    for (name, value) in [
        ("PERENNIAL_CONSOLE_ISSUER", "https://login.example.com"),
        ("PERENNIAL_CONSOLE_CLIENT_ID", "console"),
        ("PERENNIAL_CONSOLE", "maybe"),
        ("PERENNIAL_CONSOLE_GROUPS", "admins"),
    ] {
        let mut variables = crate::harness::process::sandbox("postgres://127.0.0.1/none");
        variables.insert(name, value.to_owned());
        let output = run(&variables, &["config", "check"]);
        assert!(!output.status.success(), "{name}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert!(message.contains("PERENNIAL_CONSOLE"), "{message}");
    }
}
