//! Refused credentials and authorizations: their metric, log lines and events.

use reqwest::Method;
use serde_json::Value;

use crate::harness::{api::ApiClient, service::Service};

/// Returns the log lines about refusals.
fn refusal_lines(service: &Service) -> Vec<Value> {
    let log = service.server.process.log();
    let lines = log.lines().filter(|line| line.contains("request refused"));
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    lines.map(parse).collect()
}

async fn start() -> Service {
    Service::start_with(|variables| {
        variables.insert("PERENNIAL_LOG_FORMAT", "json".to_owned());
    })
    .await
}

/// Returns the value of the counter, as text.
async fn count(service: &Service, code: &str) -> String {
    let series = format!("perennial_refusals_total{{code=\"{code}\"}}");
    service.server.metric(&series).await.unwrap().to_string()
}

#[tokio::test]
async fn refused_requests_are_counted_and_logged_without_credentials() {
    let service = start().await;
    let (id, key) = service.create_client(&["--scope", "auth"]);
    let api = service.anonymous().with("client-id", &key);
    let at_user = api.with("x-forwarded-for", "203.0.113.7");
    let browser = api.with("origin", "https://app.example.com");
    let unknown = service.anonymous().with("client-id", "prn_sk_canary");
    let checked = "/authentication/user-logged-in";
    let refreshed = "/authentication/refresh-token";
    let signed_in = "/authentication/sign-in";
    let plans = "/subscription-plans";
    // The code, the route, and whether the client is known.
    let expected = [
        ("invalid_client", plans, false),
        ("invalid_token", checked, true),
        ("invalid_grant", refreshed, true),
        ("invalid_token", signed_in, true),
        ("insufficient_scope", plans, true),
        ("secret_client_in_browser", plans, true),
    ];
    // Every series exists before the first refusal, so that an alert sees it as an increase.
    for (code, ..) in expected {
        assert_eq!(count(&service, code).await, "0", "{code}");
    }
    let responses = [
        unknown.get(plans).await,
        at_user.check("eyJ.canary").await,
        at_user.refresh("prn_rt_canary").await,
        at_user
            .authenticate("sign-in", "canary", "canary@example.com")
            .await,
        api.get(plans).await,
        browser.get(plans).await,
    ];
    let lines = refusal_lines(&service);
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for ((response, line), (code, route, is_known)) in responses.iter().zip(&lines).zip(expected) {
        assert_eq!(response.problem(), code);
        assert_eq!(line["code"], code);
        assert_eq!(line["request"]["route"], route);
        assert_eq!(line["request"]["id"], response.header("x-request-id"));
        assert_eq!(line["peer"], "127.0.0.1");
        let client = is_known.then_some(id.as_str());
        assert_eq!(line["client"].as_str(), client, "{line}");
    }
    assert_eq!(lines[1]["forwarded_for"], "203.0.113.7");
    assert_eq!(count(&service, "invalid_token").await, "2");
    assert_eq!(count(&service, "invalid_client").await, "1");
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    assert!(metrics.contains("# HELP perennial_refusals_total Refused credentials"));
    let log = service.server.process.log();
    for secret in [key.as_str(), "canary"] {
        assert!(!log.contains(secret) && !metrics.contains(secret));
    }
}

/// Successful requests and other errors are not refusals.
#[tokio::test]
async fn other_responses_are_not_counted_as_refusals() {
    let service = start().await;
    let api = service.api(&[]);
    for (path, status) in [
        ("/subscription-plans", 200),
        ("/subscription-plans/no", 404),
    ] {
        assert_eq!(api.get(path).await.status, status);
    }
    let response = api.post("/users", "{").await;
    assert_eq!(response.status, 400);
    assert_eq!(refusal_lines(&service), Vec::<Value>::new());
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    let series = metrics.lines();
    let mut series = series.filter(|line| line.starts_with("perennial_refusals_total"));
    assert!(series.all(|line| line.ends_with(" 0")), "{metrics}");
}

#[tokio::test]
async fn refusal_log_lines_are_capped_and_omitted_ones_are_counted() {
    let service = start().await;
    let refused: ApiClient = service.anonymous().with("client-id", "unknown");
    for _ in 0..200 {
        refused
            .get("/subscription-plans")
            .await
            .assert_problem(401, "invalid_client");
    }
    assert_eq!(count(&service, "invalid_client").await, "200");
    // Another code has its own quota, and its line has the number of omitted ones.
    service
        .api(&[])
        .check("x")
        .await
        .assert_problem(401, "invalid_token");
    let lines = refusal_lines(&service);
    assert!((10..100).contains(&lines.len()), "{} lines", lines.len());
    let omitted: u64 = { lines.iter() }
        .map(|line| line["omitted_lines"].as_u64().unwrap())
        .sum();
    assert_eq!(lines.len() as u64 + omitted, 201);
}

#[tokio::test]
async fn secret_client_in_browser_is_recorded_once_an_hour() {
    let service = Service::start_in_process().await;
    let database = service.database.connect().await;
    let (id, key) = service.create_client(&[]);
    let (other_id, other_key) = service.create_client(&[]);
    let browser = |key: &str, origin: &str| {
        let api = service.anonymous().with("client-id", key);
        api.with("origin", origin)
    };
    let path = "/subscription-plans";
    let first = browser(&key, "https://app.example.com:8443").with("x-request-id", "my-request.1");
    first
        .get(path)
        .await
        .assert_problem(403, "secret_client_in_browser");
    for _ in 0..20 {
        let again = browser(&key, "https://app.example.com");
        again
            .get(path)
            .await
            .assert_problem(403, "secret_client_in_browser");
    }
    // A header that is not an origin is not stored.
    let odd = browser(&other_key, "canary@example.com");
    odd.send(Method::GET, path, None)
        .await
        .assert_problem(403, "secret_client_in_browser");
    let sql = "SELECT 'cli_' || replace(subject_id::text, '-', ''), 'cli_' || replace(client_id::text, '-', ''),
                      request_id, data->>'id', data->>'origin'
               FROM events WHERE kind = 'client.used_in_browser' ORDER BY at, id";
    let rows = database.query(sql, &[]).await.unwrap();
    let text = |row: usize, column: usize| rows[row].get::<_, Option<String>>(column);
    assert_eq!(rows.len(), 2);
    for (row, id) in [&id, &other_id].into_iter().enumerate() {
        for column in [0, 1, 3] {
            assert_eq!(text(row, column).as_ref(), Some(id));
        }
    }
    assert_eq!(text(0, 2).unwrap(), "my-request.1");
    assert_eq!(text(0, 4).unwrap(), "https://app.example.com:8443");
    assert_eq!(text(1, 4), None);
}
