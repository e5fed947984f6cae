//! `DELETE /subscription-plans/{slug}`

use serde_json::json;

use super::minimal_plan;
use crate::{harness::service::Service, subscriptions::SubscriptionFixture};

#[tokio::test]
async fn deleted_plan_frees_its_slug_and_keeps_its_history() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let created = api
        .post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    let current = api.with("if-match", created.header("etag"));
    let deleted = current.delete("/subscription-plans/PRO").await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
    for response in [
        api.get("/subscription-plans/pro").await,
        api.put("/subscription-plans/pro", "{}").await,
        api.delete("/subscription-plans/pro").await,
    ] {
        assert_eq!(
            (response.status, response.problem().as_str()),
            (404, "plan_not_found")
        );
    }
    assert_eq!(
        api.get("/subscription-plans").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(
        api.post("/subscription-plans", &minimal_plan("pro").to_string())
            .await
            .status,
        201
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        2
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.deleted'")
            .await,
        1
    );
}

#[tokio::test]
async fn concurrent_deletes_succeed_once() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    api.post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    let racing: Vec<_> = (0..10)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.delete("/subscription-plans/pro").await.status })
        })
        .collect();
    let mut statuses = Vec::new();
    for task in racing {
        statuses.push(task.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 204);
    assert!(
        statuses[1..].iter().all(|status| *status == 404),
        "{statuses:?}"
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.deleted'")
            .await,
        1
    );
}

/// The problem counts live subscriptions up to 100. Expired ones do not prevent the deletion.
#[tokio::test]
async fn plan_with_live_subscriptions_cannot_be_deleted() {
    let fixture = SubscriptionFixture::start().await;
    let pro = "/subscription-plans/pro";
    fixture.subscribe(json!({"status": "expired"})).await;
    for live in 1..=101 {
        fixture.subscribe(json!({})).await;
        let expected = match live {
            1 | 99 => format!("live subscriptions ({live})"),
            100 | 101 => "live subscriptions (at least 100)".to_owned(),
            _ => continue,
        };
        let rejected = fixture.api.delete(pro).await;
        assert_eq!(rejected.problem(), "plan_in_use");
        let body = rejected.json();
        assert_eq!(body["live_subscriptions"], live.min(100));
        assert!(
            body["detail"].as_str().unwrap().contains(&expected),
            "{body}"
        );
    }
    let expire = "UPDATE subscriptions SET status = 'expired', ends_at = starts_at";
    let database = fixture.service.database.connect().await;
    database.execute(expire, &[]).await.unwrap();
    assert_eq!(fixture.api.delete(pro).await.status, 204);
}
