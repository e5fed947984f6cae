//! Several at once: one is first, and the others are told.
//!
//! Two instances, because what holds within one process proves little.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Stage, make_plan, path_of};
use crate::{
    harness::{
        api::{Answer, Api},
        process::Server,
    },
    subscription_plans::minimal,
};

const ROUNDS: usize = 50;

/// The stage, and callers at two instances.
async fn two(connections: &str) -> (Stage, [Api; 2], Server) {
    let stage = Stage::with_connections(connections).await;
    let other = Server::start(&stage.service.variables).await;
    let (_, client) = stage.service.make_client(&[]);
    let urls = [&stage.service.server.url, &other.url];
    let callers = urls.map(|url| Api::new(url).with("client-id", &client));
    (stage, callers, other)
}

/// Sends so many at once, in turn to either instance.
async fn at_once<F>(callers: &[Api; 2], count: usize, send: impl Fn(Api, usize) -> F) -> Vec<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let barrier = Arc::new(tokio::sync::Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let barrier = barrier.clone();
            let sending = send(callers[number % 2].clone(), number);
            tokio::spawn(async move {
                barrier.wait().await;
                sending.await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for one in tasks {
        answers.push(one.await.unwrap());
    }
    answers
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers
        .iter()
        .filter(|answer| answer.status == status)
        .count()
}

#[tokio::test]
async fn a_hundred_creations_with_one_external_id_alone() {
    // Enough for all: this is about who is first, not about standing in line.
    let (stage, callers, _other) = two("40").await;
    for _ in 0..5 {
        at_once(&callers, 80, |caller, _| async move {
            caller.get("/subscription-plans").await
        })
        .await;
    }
    for round in 0..ROUNDS {
        let body = stage
            .fields(&json!({"external_subscription_id": format!("ext_{round}")}))
            .to_string();
        let answers = at_once(&callers, 100, |caller, _| {
            let body = body.clone();
            async move { caller.post("/subscriptions", &body).await }
        })
        .await;
        let first = answers
            .iter()
            .find(|answer| answer.status == 201)
            .unwrap()
            .json();
        let told = (count(&answers, 201), count(&answers, 409));
        assert_eq!(told, (1, 99), "round {round}");
        for answer in answers.iter().filter(|answer| answer.status == 409) {
            assert_eq!(answer.problem(), "duplicate_external_id");
            assert_eq!(answer.json()["existing_id"], first["id"]);
        }
    }
    let rounds = i64::try_from(ROUNDS).unwrap();
    assert_eq!(
        stage
            .service
            .count("SELECT count(*) FROM subscriptions")
            .await,
        rounds
    );
    let made = "SELECT count(*) FROM events WHERE kind = 'subscription.created'";
    assert_eq!(stage.service.count(made).await, rounds);
}

#[tokio::test]
async fn two_changes_of_what_both_have_seen() {
    let (stage, callers, _other) = two("4").await;
    let record = stage.subscribe(json!({})).await;
    for round in 0..ROUNDS {
        let seen = stage.caller.get(&path_of(&record)).await;
        let (path, tag) = (path_of(&record), seen.header("etag").to_owned());
        let answers = at_once(&callers, 2, |caller, number| {
            let caller = caller.with("if-match", &tag);
            let (path, body) = (
                path.clone(),
                json!({"external_subscription_id": format!("ext_{round}_{number}")}),
            );
            async move { caller.put(&path, &body.to_string()).await }
        })
        .await;
        assert_eq!(
            (count(&answers, 200), count(&answers, 412)),
            (1, 1),
            "round {round}"
        );
        let won = answers.iter().find(|answer| answer.status == 200).unwrap();
        assert_eq!(stage.caller.get(&path).await.text, won.text);
    }
    let events = stage.events(&record).await;
    assert_eq!(
        events.len(),
        ROUNDS + 1,
        "one for each change that was made"
    );
}

#[tokio::test]
async fn a_payment_completed_twice() {
    let (stage, callers, _other) = two("4").await;
    for round in 0..ROUNDS {
        let record = stage.subscribe(json!({"status": "past_due"})).await;
        let payment = stage.pay(&record, json!({})).await;
        let path = path_of(&payment);
        let answers = at_once(&callers, 2, |caller, _| {
            let path = path.clone();
            async move { caller.put(&path, r#"{"status": "completed"}"#).await }
        })
        .await;
        assert_eq!(count(&answers, 200), 2, "round {round}");
        assert_eq!(
            stage.events(&payment).await,
            ["payment.created", "payment.updated"]
        );
        assert_eq!(
            stage.events(&record).await,
            ["subscription.created", "subscription.updated"]
        );
        assert_eq!(
            stage.caller.get(&path_of(&record)).await.json()["status"],
            "active"
        );
    }
}

#[tokio::test]
async fn a_plan_deleted_while_it_is_taken() {
    let (stage, callers, _other) = two("4").await;
    let mut outcomes = [0, 0];
    for round in 0..ROUNDS {
        let slug = format!("p{round}");
        let plan = make_plan(&stage.caller, &minimal(&slug)).await;
        let body = json!({"user_id": stage.user, "subscription_plan_id": plan}).to_string();
        let answers = at_once(&callers, 2, |caller, number| {
            let (slug, body) = (slug.clone(), body.clone());
            async move {
                match number {
                    0 => caller.delete(&format!("/subscription-plans/{slug}")).await,
                    _ => caller.post("/subscriptions", &body).await,
                }
            }
        })
        .await;
        let [deleted, taken] = [&answers[0], &answers[1]].map(|answer| answer.status);
        match (deleted, taken) {
            (204, 422) => outcomes[0] += 1,
            (409, 201) => outcomes[1] += 1,
            other => panic!("round {round}: {other:?}"),
        }
    }
    println!(
        "deleted first: {}, taken first: {}",
        outcomes[0], outcomes[1]
    );
    let orphans = "SELECT count(*) FROM subscriptions s JOIN subscription_plans p
        ON p.tenant_id = s.tenant_id AND p.id = s.plan_id WHERE p.deleted_at IS NOT NULL";
    assert_eq!(stage.service.count(orphans).await, 0);
}

/// Whoever is first, in the end the account is gone, nothing of it gives access, and what was paid is on record.
#[tokio::test]
async fn an_account_deleted_while_it_pays() {
    let (stage, callers, _other) = two("4").await;
    for round in 0..ROUNDS {
        let tokens = stage
            .caller
            .sign_up(&format!("user{round}@example.com"))
            .await;
        let record = stage
            .subscribe(json!({"user_id": tokens.user(), "status": "past_due"}))
            .await;
        let payment = json!({"subscription_id": record["id"], "amount": 19.99, "currency": "USD", "status": "completed"});
        let subscription = json!({"user_id": tokens.user(), "subscription_plan_id": stage.plan});
        let answers = at_once(&callers, 3, |caller, number| {
            let own = caller.on_behalf_of(tokens.access());
            let account = format!("/authentication/delete-my-account/{}", tokens.user());
            let (payment, subscription) = (payment.to_string(), subscription.to_string());
            async move {
                match number {
                    0 => own.delete(&account).await,
                    1 => caller.post("/subscription-payments", &payment).await,
                    _ => caller.post("/subscriptions", &subscription).await,
                }
            }
        })
        .await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(
            statuses == [204, 201, 201] || statuses == [204, 201, 422],
            "round {round}: {statuses:?}"
        );
        let after: Value = stage.caller.get(&path_of(&record)).await.json();
        assert_eq!(
            (&after["status"], &after["is_active"]),
            (&json!("expired"), &json!(false)),
            "round {round}"
        );
        let path = format!("/subscriptions?user_id={}&is_active=true", tokens.user());
        assert_eq!(
            stage.caller.get(&path).await.json()["data"],
            json!([]),
            "round {round}"
        );
        let told = stage.events(&record).await;
        let last = told.last().unwrap();
        assert_eq!(last, "subscription.ended", "round {round}: {told:?}");
        assert_eq!(
            stage.caller.get(&path_of(&answers[1].json())).await.json()["status"],
            "completed"
        );
    }
}
