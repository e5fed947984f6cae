//! CORS: preflight requests and responses to browsers.

use reqwest::{Method, header::HeaderName};

use crate::harness::{
    api::{ApiClient, ApiResponse},
    process::run_ok,
    service::Service,
};

const PATH: &str = "/subscription-plans";
const APP: &str = "https://app.example.com";
const OTHER: &str = "https://other.example.com";

async fn preflight(api: &ApiClient, path: &str, origin: &str) -> ApiResponse {
    let browser = api
        .with("origin", origin)
        .with("access-control-request-method", "GET")
        .with("access-control-request-headers", "client-id");
    browser.send(Method::OPTIONS, path, None).await
}

/// Returns the names of headers in a list.
fn names(list: &str) -> Vec<&str> {
    list.split(", ").collect()
}

#[tokio::test]
async fn preflight_and_requests_are_limited_to_allowed_origins() {
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "acme"]);
    let create_publishable = |tenant: &str, origin: &str| {
        service.create_client(&[
            "--tenant",
            tenant,
            "--kind",
            "publishable",
            "--allowed-origin",
            origin,
        ])
    };
    let (_, app) = create_publishable("default", APP);
    let (other_id, _) = create_publishable("acme", OTHER);
    let anonymous = service.anonymous();

    // A preflight has no client id, so that the origins of all clients are allowed, on every path.
    for origin in [APP, OTHER] {
        for path in [PATH, "/subscription-plans/x", "/nothing"] {
            let response = preflight(&anonymous, path, origin).await;
            assert_eq!(
                (response.status, response.text.as_str()),
                (204, ""),
                "{origin}"
            );
            assert_eq!(response.header("access-control-allow-origin"), origin);
            assert_eq!(
                response.header("access-control-allow-methods"),
                "GET, POST, PUT, DELETE"
            );
            assert_eq!(
                names(response.header("access-control-allow-headers")),
                [
                    "accept",
                    "authorization",
                    "client-id",
                    "content-type",
                    "idempotency-key",
                    "if-match",
                    "if-none-match",
                    "x-forwarded-for",
                    "x-request-id",
                ]
            );
            assert!(response.header("vary").contains("origin"));
            assert!(
                response
                    .header("access-control-allow-credentials")
                    .is_empty()
            );
        }
    }
    for origin in [
        "https://evil.example.com",
        "http://app.example.com",
        "null",
        "https://app.example.com.evil.example",
        &format!("https://{}.example.com", "a".repeat(300)),
    ] {
        let response = preflight(&anonymous, PATH, origin).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (403, "origin_not_allowed"),
            "{origin}"
        );
        assert!(response.header("access-control-allow-origin").is_empty());
    }

    // For the request itself, only the client's own origins are allowed, for errors as well.
    let browser = anonymous.with("client-id", &app);
    for (path, status) in [(PATH, 200), ("/subscription-plans/none", 404)] {
        let response = browser.with("origin", APP).get(path).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("access-control-allow-origin"), APP);
        assert_eq!(
            names(response.header("access-control-expose-headers")),
            [
                "api-version",
                "etag",
                "idempotency-replayed",
                "location",
                "ratelimit",
                "ratelimit-policy",
                "retry-after",
                "www-authenticate",
                "x-request-id",
            ]
        );
        let vary = response.headers.get_all("vary");
        assert!(vary.iter().any(|names| names == "origin"), "{vary:?}");
    }
    let elsewhere = browser.with("origin", OTHER).get(PATH).await;
    assert_eq!(
        (elsewhere.status, elsewhere.problem().as_str()),
        (403, "origin_not_allowed")
    );
    assert!(elsewhere.header("access-control-allow-origin").is_empty());
    assert!(
        browser
            .get(PATH)
            .await
            .header("access-control-allow-origin")
            .is_empty()
    );

    // The origins of a disabled client are rejected within a second.
    run_ok(
        &service.variables,
        &["client", "disable", "--tenant", "acme", &other_id],
    );
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_eq!(preflight(&anonymous, PATH, OTHER).await.status, 403);
    assert_eq!(preflight(&anonymous, PATH, APP).await.status, 204);
}

/// A refused origin is not cached, so that strangers cannot fill the cache.
#[tokio::test]
async fn origin_is_allowed_as_soon_as_its_client_exists() {
    let service = Service::start_in_process().await;
    let anonymous = service.anonymous();
    assert_eq!(preflight(&anonymous, PATH, APP).await.status, 403);
    service.create_client(&["--kind", "publishable", "--allowed-origin", APP]);
    assert_eq!(preflight(&anonymous, PATH, APP).await.status, 204);
}

/// A page reads every header that it needs: each that the service sets, other than those that browsers always
/// expose or that are not for scripts, is exposed.
#[tokio::test]
async fn headers_of_responses_are_exposed() {
    let service = Service::start_in_process().await;
    let api = service.api(&["--kind", "publishable", "--allowed-origin", APP]);
    let page = api.with("origin", APP);
    let user = page.sign_up("ada@example.com").await;
    let signed_in = page.with_bearer(user.access());
    for response in [
        page.get(PATH).await,
        page.get("/subscription-plans/none").await,
        signed_in.get("/subscriptions").await,
        page.with_bearer("nonsense").get("/subscriptions").await,
        page.post("/authentication/refresh-token", "{}").await,
        signed_in.put("/subscriptions/sub_1", "{}").await,
    ] {
        assert_eq!(response.header("access-control-allow-origin"), APP);
        let exposed = names(response.header("access-control-expose-headers"));
        for name in response.headers.keys().map(HeaderName::as_str) {
            // The first four are always exposed: https://fetch.spec.whatwg.org/#cors-safelisted-response-header-name
            let readable = [
                "cache-control",
                "content-length",
                "content-type",
                "expires",
                "date",
                "vary",
                "x-content-type-options",
            ];
            let is_cors = name.starts_with("access-control-");
            assert!(
                exposed.contains(&name) || readable.contains(&name) || is_cors,
                "{name} is not exposed: {}",
                response.text
            );
        }
    }
}
