//! The documentation that the binary serves: start page, explorer, error pages and search index.

use std::collections::BTreeSet;

use perennial::{docs_site::pages::PAGES, http::problem::Code};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::{
    commands::live,
    harness::{
        api::{ApiClient, ApiResponse},
        client::every_scope,
        process::{run_err, run_ok},
        service::{InProcessService, Service},
    },
    subscription_plans::minimal_plan,
};

const PLANS: &str = "/subscription-plans";
/// What a browser sends when it opens a page.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Starts a sandbox whose explorer shows this client id.
async fn start_with_explorer_client_id(client_id: &str) -> InProcessService {
    Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_EXPLORER_CLIENT_ID", client_id.to_owned());
    })
    .await
}

#[tokio::test]
async fn explorer_of_a_sandbox_shows_its_client_id() {
    let service = start_with_explorer_client_id("DEMO").await;
    service.create_client(&["--id", "DEMO"]);
    let page = service.anonymous().get("/docs/").await;
    assert!(page.text.contains("id=\"client-id\" value=\"DEMO\""));
    assert_eq!(page.header("cache-control"), "no-store");
    // The explorer's first request, as a browser sends it.
    let explorer = service
        .anonymous()
        .with("client-id", "DEMO")
        .with("sec-fetch-site", "same-origin")
        .with("referer", "http://perennial.example/docs/");
    assert_eq!(explorer.get(PLANS).await.status, 200);
    let writing = explorer.with("origin", "http://perennial.example");
    writing.create(PLANS, &minimal_plan("pro")).await;

    // DNS rebinding: the page of another host cannot read it.
    let rebound = service.anonymous().with("host", "evil.example");
    let page = rebound.get("/docs/").await;
    page.assert_problem(421, "misdirected_request");
    assert!(!page.text.contains("DEMO"));
    // Neither can a page that sends requests from another origin: the response has no CORS headers.
    let other = service.anonymous().with("origin", "https://evil.example");
    let page = other.get("/docs/").await;
    assert_eq!(page.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn explorer_without_a_client_id_has_an_empty_field() {
    let service = Service::start_in_process().await;
    let page = service.anonymous().get("/docs/").await;
    assert!(page.text.contains("id=\"client-id\" value=\"\""));
    assert!(page.text.contains(">sandbox</span>"), "{}", page.text);
}

#[tokio::test]
async fn explorer_client_id_is_escaped() {
    let service = start_with_explorer_client_id("\"><script>").await;
    let page = service.anonymous().get("/docs/").await;
    assert!(page.text.contains("value=\"&quot;&gt;&lt;script&gt;\""));
}

#[test]
fn live_mode_rejects_a_client_id_for_the_explorer() {
    let mut variables = live("postgres://127.0.0.1/x");
    variables.insert("PERENNIAL_EXPLORER_CLIENT_ID", "prn_sk_canary".to_owned());
    let output = run_err(&variables, &["config", "check"]);
    let expected = "PERENNIAL_EXPLORER_CLIENT_ID: cannot be set in live mode";
    assert!(output.contains(expected), "{output}");
    assert!(!output.contains("canary"), "{output}");
    variables.insert("PERENNIAL_MODE", "sandbox".to_owned());
    let output = run_ok(&variables, &["config", "show"]);
    assert!(output.contains("PERENNIAL_EXPLORER_CLIENT_ID"), "{output}");
    assert!(!output.contains("canary"), "{output}");
}

#[tokio::test]
async fn live_explorer_shows_no_client_id() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_MODE", "live".to_owned());
    })
    .await;
    let page = service.anonymous().get("/docs/").await;
    assert!(page.text.contains("id=\"client-id\" value=\"\""));
    assert!(page.text.contains("publishable"), "{}", page.text);
}

#[tokio::test]
async fn start_page_is_html_for_browsers_and_json_for_other_clients() {
    let service = Service::start_in_process().await;
    let anonymous = service.anonymous();
    let page = anonymous.with("accept", BROWSER).get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    for part in [
        "Perennial",
        ">sandbox</span>",
        "href=\"/docs/contents\"",
        "href=\"/docs/\"",
        "href=\"/openapi.json\"",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let has_console = page.text.contains("href=\"/console/\"");
    assert_eq!(has_console, cfg!(feature = "console"));
    for client in [&anonymous, &anonymous.with("accept", "application/json")] {
        let links = client.get("/").await;
        assert_eq!(links.header("content-type"), "application/json");
        assert_eq!(links.header("vary"), "accept, accept-encoding");
        let links: Value = links.json();
        assert_eq!(links["name"], "Perennial");
        assert_eq!(links["mode"], "sandbox");
        for link in [
            "documentation",
            "explorer",
            "errors",
            "openapi",
            "openid_configuration",
        ] {
            let url = links[link].as_str().unwrap();
            let path = url.strip_prefix("http://perennial.example").unwrap();
            assert_eq!(client.get(path).await.status, 200, "{url}");
        }
    }
    let wrong = anonymous.post("/", "{}").await;
    wrong.assert_problem(405, "method_not_allowed");
}

/// Returns the paths of all HTML pages.
fn html_paths() -> Vec<String> {
    let pages = PAGES.iter().map(|(path, _)| format!("/docs/{path}"));
    let others = ["/docs/", "/docs/contents", "/docs/errors", "/docs/nope"];
    pages.chain(others.map(str::to_owned)).collect()
}

#[tokio::test]
async fn pages_have_a_frame_and_load_only_own_files() {
    let service = Service::start_in_process().await;
    let anonymous = service.anonymous().with("accept", BROWSER);
    let mut assets = BTreeSet::new();
    for path in html_paths().into_iter().chain(["/".to_owned()]) {
        let page = anonymous.get(&path).await;
        for part in [
            " · Perennial</title>",
            "class=\"brand\"",
            "id=\"search\"",
            "<main id=\"main\"",
        ] {
            assert!(page.text.contains(part), "{path}: {part}");
        }
        let policy = page.header("content-security-policy");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        for inline in ["<style", " style=\"", "<script>", " onclick="] {
            assert!(!page.text.contains(inline), "{path}: {inline}");
        }
        for tag in page.text.split('<').filter(|tag| {
            ["script", "link", "img", "iframe"]
                .iter()
                .any(|name| tag.starts_with(name))
        }) {
            let source = tag
                .split("src=\"")
                .nth(1)
                .or(tag.split("href=\"").nth(1))
                .unwrap();
            let source = source.split('"').next().unwrap();
            let page_url = Url::parse("http://127.0.0.1").unwrap().join(&path).unwrap();
            let source = page_url.join(source).unwrap();
            assert_eq!(source.host_str(), page_url.host_str(), "{path}: {source}");
            assert!(source.path().starts_with("/docs/"), "{path}: {source}");
            assets.insert(source.path().to_owned());
        }
    }
    for asset in assets {
        assert_eq!(anonymous.get(&asset).await.status, 200, "{asset}");
    }
    assert_eq!(anonymous.get("/docs").await.header("location"), "/docs/");
}

#[tokio::test]
async fn text_pages_have_sidebar_outline_and_neighbors() {
    let service = Service::start_in_process().await;
    let page = service
        .anonymous()
        .get("/docs/explanation/modes")
        .await
        .text;
    for part in [
        "<a href=\"/docs/explanation/modes\" aria-current=\"page\">Which mode am I in?</a>",
        "<a href=\"#switch\">Switch</a>",
        "rel=\"prev\"",
        "rel=\"next\" href=\"/docs/explanation/subscriptions\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn search_index_links_to_pages_operations_and_errors() {
    let service = Service::start_in_process().await;
    let anonymous = service.anonymous();
    let index = anonymous.get("/docs/search.json").await;
    assert_eq!(index.header("content-type"), "application/json");
    let index: Vec<[String; 4]> = serde_json::from_value(index.json()).unwrap();
    let document = anonymous.get_json("/openapi.json").await;
    let operation_ids: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .map(|operation| format!("/docs/#{}", operation["operationId"].as_str().unwrap()))
        .collect();
    let urls: BTreeSet<&str> = index.iter().map(|[url, ..]| url.as_str()).collect();
    for expected in operation_ids.iter().map(String::as_str).chain([
        "/docs/contents",
        "/docs/errors/slug_taken",
        "/docs/explanation/modes#switch",
    ]) {
        assert!(urls.contains(expected), "{expected}");
    }
    let mut page = (String::new(), String::new());
    for url in urls {
        let (path, anchor) = url.split_once('#').unwrap_or((url, ""));
        if page.0 != path {
            let response = anonymous.get(path).await;
            assert_eq!(response.status, 200, "{url}");
            page = (path.to_owned(), response.text);
        }
        let is_operation = operation_ids.contains(url);
        let target = format!(" id=\"{anchor}\"");
        assert!(
            anchor.is_empty() || is_operation || page.1.contains(&target),
            "{url}"
        );
    }
    let switch = index
        .iter()
        .find(|[url, ..]| url == "/docs/explanation/modes#switch");
    let [_, title, heading, text] = switch.unwrap();
    assert_eq!(
        (title.as_str(), heading.as_str()),
        ("Which mode am I in?", "Switch")
    );
    assert!(
        text.contains("perennial tenant set --lifecycle managed"),
        "{text}"
    );
}

/// Returns the code block of this language in a Markdown text.
fn code_block<'a>(text: &'a str, language: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("```{language}\n"))?;
    rest.split_once("```").map(|(block, _)| block)
}

#[test]
fn every_error_code_has_a_page_with_a_sample_and_the_fix() {
    let pages = PAGES.iter().filter(|(path, _)| path.starts_with("errors/"));
    assert_eq!(
        pages.count(),
        Code::ALL.len(),
        "docs/errors has a page without a code"
    );
    for code in Code::ALL {
        let path = format!("errors/{}", code.as_str());
        let page = PAGES.iter().find(|(other, _)| *other == path);
        let (_, text) = page.unwrap_or_else(|| panic!("docs/{path}.md does not exist"));
        let status = code.status();
        let start = format!(
            "# {}\n\n`{}` · {} {}\n\n",
            code.title(),
            code.as_str(),
            status.as_u16(),
            status.canonical_reason().unwrap()
        );
        assert!(
            text.starts_with(&start),
            "docs/{path}.md must start with {start}"
        );
        assert!(text.contains("\n## Fix\n\n"), "docs/{path}.md has no fix");
        let sample: Value = serde_json::from_str(code_block(text, "json").unwrap()).unwrap();
        let expected = [
            (
                "type",
                json!(format!("https://billing.example.com/docs/{path}")),
            ),
            ("title", json!(code.title())),
            ("status", json!(status.as_u16())),
            ("code", json!(code.as_str())),
        ];
        for (member, value) in expected {
            assert_eq!(sample[member], value, "docs/{path}.md: {member}");
        }
        for member in ["detail", "instance", "request_id"] {
            assert!(sample[member].is_string(), "docs/{path}.md: {member}");
        }
    }
}

/// Sends a request in the form of an `http` code block.
async fn send_sample(api: &ApiClient, client_id: &str, request: &str) -> ApiResponse {
    let (head, body) = request
        .split_once("\n\n")
        .unwrap_or((request.trim_end(), ""));
    let mut lines = head.lines();
    let (method, path) = lines.next().unwrap().split_once(' ').unwrap();
    let mut api = api.clone();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        api = api.with(name, value);
    }
    if !head.contains("\nclient-id: ") {
        api = api.with("client-id", client_id);
    }
    let method: Method = method.parse().unwrap();
    let body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
    api.send(method, path, body).await
}

/// Sends the sample requests of the error pages to a service that has the plan `pro`.
#[tokio::test]
async fn sample_responses_of_error_pages_are_those_of_the_service() {
    let service = Service::start_in_process().await;
    let (_, client_id) = service.create_client(&every_scope());
    let server = service.anonymous().with("client-id", &client_id);
    server.create(PLANS, &minimal_plan("pro")).await;
    let mut requests = 0;
    for (path, text) in PAGES.iter().filter(|(path, _)| path.starts_with("errors/")) {
        let Some(request) = code_block(text, "http") else {
            continue;
        };
        let mut expected: Value = serde_json::from_str(code_block(text, "json").unwrap()).unwrap();
        let mut response = send_sample(&service.anonymous(), &client_id, request)
            .await
            .json();
        // The public URL and the request's id are those of another service.
        for member in ["type", "request_id"] {
            for problem in [&mut expected, &mut response] {
                problem[member].take();
            }
        }
        assert_eq!(response, expected, "docs/{path}.md");
        requests += 1;
    }
    assert!(requests > 25, "only {requests} pages have a request");
}
