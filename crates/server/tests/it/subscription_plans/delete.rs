//! `DELETE /subscription-plans/{slug}`

use serde_json::json;

use super::minimal;
use crate::{harness::service::Service, subscriptions::Stage};

#[tokio::test]
async fn gone_its_slug_free_its_history_kept() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    let deleted = caller.delete("/subscription-plans/PRO").await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
    for answer in [
        caller.get("/subscription-plans/pro").await,
        caller.put("/subscription-plans/pro", "{}").await,
        caller.delete("/subscription-plans/pro").await,
    ] {
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (404, "plan_not_found")
        );
    }
    assert_eq!(
        caller.get("/subscription-plans").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(
        caller
            .post("/subscription-plans", &minimal("pro").to_string())
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
async fn only_the_plan_that_was_seen() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let seen = caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    let tag = seen.header("etag").to_owned();
    caller
        .put("/subscription-plans/pro", r#"{"tier": 5}"#)
        .await;
    let refused = caller
        .with("if-match", &tag)
        .delete("/subscription-plans/pro")
        .await;
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (412, "precondition_failed")
    );
    let tag = caller
        .get("/subscription-plans/pro")
        .await
        .header("etag")
        .to_owned();
    assert_eq!(
        caller
            .with("if-match", &tag)
            .delete("/subscription-plans/pro")
            .await
            .status,
        204
    );
}

/// Ten at once: one deletes, the others find nothing; one event.
#[tokio::test]
async fn deleted_once() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    let racing: Vec<_> = (0..10)
        .map(|_| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.delete("/subscription-plans/pro").await.status })
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

#[tokio::test]
async fn only_for_servers() {
    let service = Service::start().await;
    let reader = service.caller(&["--scope", "plans:read"]);
    let browser = service.caller(&["--kind", "publishable"]);
    for caller in [reader, browser] {
        for answer in [
            caller.delete("/subscription-plans/pro").await,
            caller.put("/subscription-plans/pro", "{}").await,
        ] {
            assert_eq!(
                (answer.status, answer.problem().as_str()),
                (403, "insufficient_scope")
            );
        }
    }
}

/// Who has it is counted as far as it helps; those whose subscription is over are not in the way.
#[tokio::test]
async fn not_while_somebody_has_it() {
    let stage = Stage::start().await;
    let pro = "/subscription-plans/pro";
    stage.subscribe(json!({"status": "expired"})).await;
    for live in 1..=101 {
        stage.subscribe(json!({})).await;
        let told = match live {
            1 | 99 => format!("point at this plan, {live} of them"),
            100 | 101 => "point at this plan, at least 100 of them".to_owned(),
            _ => continue,
        };
        let refused = stage.caller.delete(pro).await;
        assert_eq!(refused.problem(), "plan_in_use");
        let body = refused.json();
        assert_eq!(body["live_subscriptions"], live.min(100));
        assert!(body["detail"].as_str().unwrap().contains(&told), "{body}");
    }
    let over = "UPDATE subscriptions SET status = 'expired', ends_at = starts_at";
    let database = stage.service.database.connect().await;
    database.execute(over, &[]).await.unwrap();
    assert_eq!(stage.caller.delete(pro).await.status, 204);
}
