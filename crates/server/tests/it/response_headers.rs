//! Caching and security headers of responses, and the compression of documents.

use serde_json::json;

use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        service::Service,
    },
    subscription_plans::minimal_plan,
};

const PLANS: &str = "/subscription-plans";

#[tokio::test]
async fn responses_are_not_stored_except_public_plans_and_documents() {
    let service = Service::start_in_process().await;
    let (server, browser) = (service.api(&[]), service.api(&["--kind", "publishable"]));
    server.create(PLANS, &minimal_plan("pro")).await;
    let plan = format!("{PLANS}/pro");

    let user = server
        .create("/users", &json!({"email": "ada@example.com"}))
        .await;
    let user = format!("/users/{}", user["id"].as_str().unwrap());
    let entitlements = user.replace("/users", "/entitlements");
    let cache_control = async |api: &ApiClient, path: &str| {
        let response = api.get(path).await;
        response.header("cache-control").to_owned()
    };
    for path in [
        PLANS,
        &plan,
        &user,
        &entitlements,
        "/subscriptions",
        "/nothing",
    ] {
        assert_eq!(cache_control(&server, path).await, "no-store", "{path}");
    }
    for (response, status) in [
        (server.put(&plan, "{\"tier\": 3}").await, 200),
        (server.post(PLANS, "{}").await, 422),
        (server.delete("/subscription-plans/none").await, 404),
        (service.anonymous().get(PLANS).await, 401),
        (browser.get("/subscription-plans/none").await, 404),
    ] {
        assert_eq!(response.status, status, "{}", response.text);
        assert_eq!(
            response.header("cache-control"),
            "no-store",
            "{}",
            response.text
        );
    }
    for path in [PLANS, &plan] {
        let response = browser.get(path).await;
        assert_eq!(response.header("cache-control"), "private, max-age=60");
        assert_eq!(response.header("vary"), "client-id, authorization");
    }
    for path in [
        "/docs/",
        "/docs/contents",
        "/openapi.json",
        "/docs/explorer.js",
        "/docs/site.css",
        "/docs/site.js",
        "/docs/search.json",
        "/",
    ] {
        assert_eq!(
            cache_control(&server, path).await,
            "public, no-cache",
            "{path}"
        );
    }
}

fn assert_protected(path: &str, page: &ApiResponse) {
    let policy = page.header("content-security-policy");
    for directive in [
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(directive), "{path}: {policy}");
    }
    let script = policy.split(';').find(|part| part.contains("script-src"));
    assert!(
        script.is_none_or(|part| part.trim() == "script-src 'self'"),
        "{policy}"
    );
    assert_eq!(page.header("referrer-policy"), "no-referrer", "{path}");
    assert_eq!(
        page.header("cross-origin-opener-policy"),
        "same-origin",
        "{path}"
    );
    assert_eq!(page.header("x-content-type-options"), "nosniff", "{path}");
}

#[tokio::test]
async fn every_html_page_has_security_headers() {
    let service = Service::start_in_process().await;
    let pages = perennial::docs_site::pages::PAGES.iter();
    let mut paths: Vec<String> = pages.map(|(path, _)| format!("/docs/{path}")).collect();
    paths.extend(["/docs/", "/docs/contents", "/docs/errors", "/docs/nope"].map(str::to_owned));
    for path in paths {
        let page = service.anonymous().get(&path).await;
        assert!(
            page.header("content-type").starts_with("text/html"),
            "{path}"
        );
        assert_protected(&path, &page);
    }
    for image in ["/docs/diagrams/subscription-states.svg", "/docs/icon.svg"] {
        assert_protected(image, &service.anonymous().get(image).await);
    }
    let browser = service.anonymous().with("accept", "text/html");
    assert_protected("/", &browser.get("/").await);
}

#[tokio::test]
async fn documents_are_compressed_and_revalidated() {
    let service = Service::start().await;
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .build()
        .unwrap();
    let get = async |path: &str, name: &str, value: &str| {
        let request = http.get(format!("{}{path}", service.server.url));
        request.header(name, value).send().await.unwrap()
    };
    for (path, ratio) in [
        ("/docs/explorer.js", 2),
        ("/docs/search.json", 2),
        ("/docs/contents", 2),
        ("/openapi.json", 4),
    ] {
        let plain = get(path, "accept-encoding", "identity").await;
        assert!(plain.headers().get("content-encoding").is_none());
        assert_eq!(plain.headers()["vary"], "accept-encoding");
        let tag = plain.headers()["etag"].to_str().unwrap().to_owned();
        let plain = plain.bytes().await.unwrap();
        let compressed = get(path, "accept-encoding", "br;q=1, gzip;q=0.8").await;
        assert_eq!(compressed.headers()["content-encoding"], "gzip");
        assert_eq!(compressed.headers()["etag"], tag);
        let compressed = compressed.bytes().await.unwrap();
        assert!(
            compressed.len() * ratio < plain.len(),
            "{path}: {}",
            compressed.len()
        );
        let mut restored = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&*compressed);
        std::io::Read::read_to_end(&mut decoder, &mut restored).unwrap();
        assert!(restored == plain, "{path}");

        let current = get(path, "if-none-match", &format!("\"other\", {tag}")).await;
        assert_eq!(current.status(), 304, "{path}");
        assert_eq!(current.headers()["etag"], tag);
        assert!(current.bytes().await.unwrap().is_empty());
        let stale = get(path, "if-none-match", "\"other\"").await;
        assert_eq!(stale.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn disabled_documentation_is_not_served() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_DOCS", "off".to_owned());
    })
    .await;
    let paths = [
        "/docs",
        "/docs/",
        "/docs/contents",
        "/docs/errors/internal",
        "/openapi.json",
    ];
    for path in paths
        .iter()
        .chain(&["/", "/docs/site.js", "/docs/search.json", "/docs/nope"])
    {
        let response = service.anonymous().get(path).await;
        response.assert_problem(404, "not_found");
        assert!(
            !response.json()["detail"]
                .as_str()
                .unwrap()
                .contains("/docs")
        );
    }
    assert_eq!(service.api(&[]).get(PLANS).await.status, 200);
}
