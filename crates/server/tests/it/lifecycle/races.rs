//! Several at once: the worker, and somebody who changes the same subscription. Whoever is first, the end is the same.
//!
//! Two instances answer, and a third process works; each round is one subscription that is due now.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::manage;
use crate::{
    harness::{
        api::{Answer, Api},
        process::Server,
        wait_until,
    },
    subscriptions::{Stage, path_of},
};

const ROUNDS: usize = 50;

struct Race {
    stage: Stage,
    callers: [Api; 2],
    _other: Server,
}

impl Race {
    async fn start() -> Self {
        let stage = Stage::start().await;
        manage(&stage.service);
        let other = Server::start(&stage.service.variables).await;
        let (_, client) = stage.service.make_client(&[]);
        let urls = [&stage.service.server.url, &other.url];
        let callers = urls.map(|url| Api::new(url).with("client-id", &client));
        // Everybody has heard that time is moved.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        Self {
            stage,
            callers,
            _other: other,
        }
    }

    /// A subscription that is due in a moment, when the workers may be looking.
    async fn due(&self, round: usize) -> Value {
        let moment = Duration::from_millis(200 + u64::try_from(round).unwrap() * 37 % 1_100);
        let due = jiff::Timestamp::now() + jiff::SignedDuration::try_from(moment).unwrap();
        let begun = due - jiff::SignedDuration::from_hours(24 * 20);
        let one = self
            .stage
            .subscribe(json!({"starts_at": begun.to_string(), "renews_at": due.to_string()}))
            .await;
        // Every other time a little too early: then whoever comes is before the worker for sure.
        let early = jiff::SignedDuration::from_millis(if round.is_multiple_of(2) { 60 } else { 0 });
        let left = due.duration_since(jiff::Timestamp::now()) - early;
        tokio::time::sleep(left.try_into().unwrap_or_default()).await;
        one
    }

    async fn at_once<F>(&self, count: usize, send: impl Fn(Api, usize) -> F) -> Vec<Answer>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let mut all = JoinSet::new();
        for number in 0..count {
            all.spawn(send(self.callers[number % 2].clone(), number));
        }
        all.join_all().await
    }

    /// When the worker has been by.
    async fn settled(&self, one: &Value) -> Value {
        let due = "SELECT count(*) FROM subscriptions WHERE deleted_at IS NULL AND status = 'active' AND renews_at <= now()";
        tokio::time::sleep(Duration::from_millis(80)).await;
        wait_until("nothing is due", Duration::from_secs(10), async || {
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.stage.service.count(due).await == 0
        })
        .await;
        self.stage.caller.get(&path_of(one)).await.json()
    }
}

fn payment(one: &Value) -> String {
    json!({"subscription_id": one["id"], "amount": 19.99, "currency": "USD", "status": "completed"})
        .to_string()
}

async fn post_payment(caller: Api, body: String) -> Answer {
    caller.post("/subscription-payments", &body).await
}

/// Paid in the very moment that the worker finds it unpaid: it is active until the next date.
#[tokio::test]
async fn a_payment_and_the_workers_past_due() {
    let race = Race::start().await;
    let mut orders = [0, 0];
    for round in 0..ROUNDS {
        let one = race.due(round).await;
        let body = payment(&one);
        let answers = race
            .at_once(1, |caller, _| post_payment(caller, body.clone()))
            .await;
        assert_eq!(answers[0].status, 201, "{}", answers[0].text);
        let after = race.settled(&one).await;
        let due = one["renews_at"].as_str().unwrap().parse().unwrap();
        let next = perennial_domain::BillingCycle::Monthly.after(due, 1);
        assert_eq!(
            (&after["status"], &after["renews_at"]),
            (&json!("active"), &json!(next.unwrap().to_string())),
            "round {round}"
        );
        let events = race.stage.events(&one).await;
        let told: Vec<&str> = events.iter().skip(1).map(String::as_str).collect();
        match told[..] {
            ["subscription.past_due", "subscription.updated"] => orders[0] += 1,
            ["subscription.renewed"] => orders[1] += 1,
            ref other => panic!("round {round}: {other:?}"),
        }
    }
    println!(
        "past due before it was paid: {}, paid before it was due: {}",
        orders[0], orders[1]
    );
    assert!(orders[0] > 0 && orders[1] > 0, "{orders:?}");
}

/// Two payments at once, when one period is open: that one is paid, and the next.
#[tokio::test]
async fn two_payments_for_one_period() {
    let race = Race::start().await;
    for round in 0..ROUNDS {
        let one = race.due(round).await;
        let body = payment(&one);
        let answers = race
            .at_once(2, |caller, _| post_payment(caller, body.clone()))
            .await;
        assert!(answers.iter().all(|answer| answer.status == 201));
        let after = race.settled(&one).await;
        assert_eq!(after["status"], "active", "round {round}");
        let id = one["id"].as_str().unwrap().rsplit('_').next().unwrap();
        let client = race.stage.service.database.connect().await;
        let rows = client
            .query(
                &format!(
                    "SELECT period::text FROM subscription_payments WHERE subscription_id = '{id}' ORDER BY created_at"
                ),
                &[],
            )
            .await
            .unwrap();
        let periods: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(periods.len(), 2);
        assert!(periods[0] < periods[1], "round {round}: {periods:?}");
        let ahead = format!("SELECT prepaid::bigint FROM subscriptions WHERE id = '{id}'");
        assert_eq!(race.stage.service.count(&ahead).await, 1, "round {round}");
    }
}

/// Somebody suspends it in the moment that the worker moves it: both happen.
#[tokio::test]
async fn a_change_and_the_worker() {
    let race = Race::start().await;
    for round in 0..ROUNDS {
        let one = race.due(round).await;
        let path = path_of(&one);
        let answers = race
            .at_once(1, |caller, _| {
                let path = path.clone();
                async move { caller.put(&path, r#"{"is_active": false}"#).await }
            })
            .await;
        assert_eq!(answers[0].status, 200, "{}", answers[0].text);
        let after = race.settled(&one).await;
        assert_eq!(
            (&after["status"], &after["is_active"]),
            (&json!("past_due"), &json!(false)),
            "round {round}"
        );
        let mut events = race.stage.events(&one).await;
        events.sort();
        assert_eq!(
            events,
            [
                "subscription.created",
                "subscription.past_due",
                "subscription.updated"
            ],
            "round {round}"
        );
    }
}

/// Somebody deletes it in the moment that the worker moves it: it is gone, and not moved afterwards.
#[tokio::test]
async fn a_deletion_and_the_worker() {
    let race = Race::start().await;
    for round in 0..ROUNDS {
        let one = race.due(round).await;
        let path = path_of(&one);
        let answers = race
            .at_once(1, |caller, _| {
                let path = path.clone();
                async move { caller.delete(&path).await }
            })
            .await;
        assert_eq!(answers[0].status, 204, "{}", answers[0].text);
        race.settled(&one).await;
        let events = race.stage.events(&one).await;
        let last = events.last().map(String::as_str);
        assert_eq!(
            last,
            Some("subscription.deleted"),
            "round {round}: {events:?}"
        );
        assert!(events.len() <= 3, "round {round}: {events:?}");
    }
}
