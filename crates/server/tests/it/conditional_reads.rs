//! `If-None-Match`: 304 for a record or a page that the client already has.

use serde_json::json;

use crate::subscriptions::{SubscriptionFixture, record_path};

#[tokio::test]
async fn unchanged_record_or_page_is_not_sent_again() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let payment = fixture.pay(&subscription, json!({})).await;
    let paths = [
        record_path(&subscription),
        record_path(&payment),
        format!("/users/{}", fixture.user),
        format!("/entitlements/{}", fixture.user),
        "/subscription-plans/pro".to_owned(),
        "/subscription-plans".to_owned(),
        "/subscriptions".to_owned(),
        "/subscriptions/counts".to_owned(),
        "/payments".to_owned(),
        "/users".to_owned(),
        format!("{}/payments", record_path(&subscription)),
    ];
    for path in &paths {
        let first = fixture.api.get(path).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.len() > 2, "{path}");
        for sent in [
            tag.clone(),
            format!("W/{tag}"),
            format!("\"other\", {tag}"),
            "*".to_owned(),
        ] {
            let again = fixture.api.with("if-none-match", &sent).get(path).await;
            assert_eq!(
                (again.status, again.text.as_str()),
                (304, ""),
                "{path} {sent}"
            );
            assert_eq!(again.header("etag"), tag, "{path}");
            assert_eq!(again.header("content-type"), "", "{path}");
            assert_eq!(again.header("cache-control"), first.header("cache-control"));
        }
        let other = fixture
            .api
            .with("if-none-match", "\"other\"")
            .get(path)
            .await;
        assert_eq!((other.status, &other.text), (200, &first.text), "{path}");
    }
    let path = &paths[0];
    let tag = fixture.api.get(path).await.header("etag").to_owned();
    let body = r#"{"metadata": {"a": "1"}}"#;
    let changed = fixture
        .api
        .with("if-none-match", &tag)
        .put(path, body)
        .await;
    assert_eq!(changed.status, 200, "only reads are conditional");
    for path in [path.as_str(), "/subscriptions"] {
        let response = fixture.api.with("if-none-match", &tag).get(path).await;
        assert_eq!(response.status, 200, "{path}");
    }
    let any = fixture.api.with("if-none-match", "*");
    let missing = any.get("/subscription-plans/none").await;
    missing.assert_problem(404, "plan_not_found");
}
