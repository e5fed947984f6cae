//! What a browser is told before and after it calls from a page of another origin.

use reqwest::Method;

use crate::harness::{
    api::{Answer, Api},
    process::run_ok,
    service::Service,
};

const PATH: &str = "/subscription-plans";
const APP: &str = "https://app.example.com";
const OTHER: &str = "https://other.example.com";

async fn ask_first(anyone: &Api, path: &str, origin: &str) -> Answer {
    let browser = anyone
        .with("origin", origin)
        .with("access-control-request-method", "GET")
        .with("access-control-request-headers", "client-id");
    browser.try_send(Method::OPTIONS, path, None).await.unwrap()
}

#[tokio::test]
async fn a_page_asks_first_and_is_then_held_to_its_own_client() {
    let service = Service::start().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "acme"]);
    let page = |tenant: &str, origin: &str| {
        service.make_client(&[
            "--tenant",
            tenant,
            "--kind",
            "publishable",
            "--allowed-origin",
            origin,
        ])
    };
    let (_, app) = page("default", APP);
    let (other_id, _) = page("acme", OTHER);
    let anyone = service.anonymous();

    // The question comes without a client, so any client's page may ask, on any path.
    for origin in [APP, OTHER] {
        for path in [PATH, "/subscription-plans/x", "/nothing"] {
            let answer = ask_first(&anyone, path, origin).await;
            assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{origin}");
            assert_eq!(answer.header("access-control-allow-origin"), origin);
            assert_eq!(
                answer.header("access-control-allow-methods"),
                "GET, POST, PUT, DELETE"
            );
            let headers = answer.header("access-control-allow-headers");
            for header in [
                "client-id",
                "authorization",
                "content-type",
                "idempotency-key",
                "if-match",
            ] {
                assert!(headers.contains(header), "{headers}");
            }
            assert!(answer.header("vary").contains("origin"));
            assert!(answer.header("access-control-allow-credentials").is_empty());
        }
    }
    for origin in [
        "https://evil.example.com",
        "http://app.example.com",
        "null",
        "https://app.example.com.evil.example",
    ] {
        let answer = ask_first(&anyone, PATH, origin).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (403, "origin_not_allowed"),
            "{origin}"
        );
        assert!(answer.header("access-control-allow-origin").is_empty());
    }

    // The request itself: only its own client's pages may read the answer, be it good or bad.
    let browser = anyone.with("client-id", &app);
    for (path, status) in [(PATH, 200), ("/subscription-plans/none", 404)] {
        let answer = browser.with("origin", APP).get(path).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), APP);
        assert!(
            answer
                .header("access-control-expose-headers")
                .contains("x-request-id")
        );
        assert_eq!(answer.header("vary"), "origin");
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

    // A client that is switched off takes its pages with it, within a second.
    run_ok(
        &service.variables,
        &["client", "disable", "--tenant", "acme", &other_id],
    );
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_eq!(ask_first(&anyone, PATH, OTHER).await.status, 403);
    assert_eq!(ask_first(&anyone, PATH, APP).await.status, 204);
}
