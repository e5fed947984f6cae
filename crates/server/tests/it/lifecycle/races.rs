//! Concurrent requests and workers on one subscription: the result is that of one order or the other.
//!
//! Two instances serve requests and run workers. Each round uses its own subscription, and the auditor
//! checks its ledger. `ROUNDS` sets the number of rounds; `just prove races` uses 50.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use perennial_auditor::{Status, Verb};
use perennial_domain::BillingCycle;
use serde_json::{Value, json};

use super::{
    audit::{Audit, id_number, instant, minor_units, read_ledger, status, terms},
    manage,
};
use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        env_number,
        process::Server,
        wait_until,
    },
    subscription_plans::minimal_plan,
    subscriptions::{SUBSCRIPTIONS, SubscriptionFixture, create_plan, record_path},
};

const PRICE: i64 = 1_999;

fn rounds() -> usize {
    env_number("ROUNDS").unwrap_or(15)
}

struct Race {
    fixture: SubscriptionFixture<Server>,
    clients: [ApiClient; 2],
    /// A monthly plan of twice the price.
    dearer: String,
    _other: Server,
}

/// One round: a subscription whose first period is paid, and the calls made so far.
struct Round {
    number: usize,
    subscription: Value,
    first_payment: Value,
    audit: Audit,
}

impl Race {
    async fn start() -> Self {
        let fixture = SubscriptionFixture::start_server().await;
        manage(&fixture.service.variables);
        let other = Server::start(&fixture.service.variables).await;
        let (_, client) = fixture.service.create_client(&[]);
        let urls = [&fixture.service.server.url, &other.url];
        let clients = urls.map(|url| ApiClient::new(url).with("client-id", &client));
        let mut plan = minimal_plan("dearer");
        plan["price"] = json!(39.98);
        let dearer = create_plan(&fixture.api, &plan).await;
        // The cache of tenants has a TTL of 1 s.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        Self {
            fixture,
            clients,
            dearer,
            _other: other,
        }
    }

    /// Creates a subscription whose paid time ends at `renews_at`.
    async fn paid_until(&self, number: usize, renews_at: Option<Timestamp>) -> Round {
        let mut fields = json!({"status": "active"});
        if let Some(renews_at) = renews_at {
            fields["renews_at"] = json!(renews_at.to_string());
        }
        let fields = self.fixture.fields(&fields);
        let created = self.fixture.api.create(SUBSCRIPTIONS, &fields).await;
        let mut audit = Audit::new();
        let verb = Verb::Create {
            status: Some(Status::Active),
            starts_at: None,
            renews_at: renews_at.map(Timestamp::as_microsecond),
            ends_at: None,
            trial_days: 0,
            terms: terms(&created),
        };
        audit.call(instant(&created["created_at"]).unwrap(), verb);
        let first_payment = self
            .fixture
            .api
            .create("/subscription-payments", &payment(&created))
            .await;
        let subscription = self.fixture.api.get_json(&record_path(&created)).await;
        assert_eq!(subscription["status"], "active", "{subscription}");
        let mut round = Round {
            number,
            subscription,
            first_payment: first_payment.clone(),
            audit,
        };
        round.record_payment(&first_payment);
        round
    }

    /// Creates a subscription and returns when it is about to be due.
    async fn due(&self, number: usize) -> Round {
        let delay = 300 + i64::try_from(number).unwrap() * 37 % 1_100;
        let due = Timestamp::now() + SignedDuration::from_millis(delay);
        let due = Timestamp::from_microsecond(due.as_microsecond()).unwrap();
        let round = self.paid_until(number, Some(due)).await;
        // Every other time 60 ms early, so that the request precedes the worker.
        let early = SignedDuration::from_millis(if number.is_multiple_of(2) { 60 } else { 0 });
        let left = due.duration_since(Timestamp::now()) - early;
        tokio::time::sleep(left.try_into().unwrap_or_default()).await;
        round
    }

    async fn post_payment(&self, instance: usize, subscription: &Value) -> Value {
        let body = payment(subscription);
        self.clients[instance]
            .create("/subscription-payments", &body)
            .await
    }

    async fn put(&self, instance: usize, record: &Value, body: Value) -> ApiResponse {
        let path = record_path(record);
        self.clients[instance].put(&path, &body.to_string()).await
    }

    /// Waits until the worker has applied all due transitions, lets the auditor check the subscription,
    /// and returns it.
    async fn settle(&self, round: &mut Round) -> Value {
        let due = "SELECT count(*) FROM subscriptions WHERE deleted_at IS NULL AND status IN ('active', 'on_trial')
            AND renews_at <= now()";
        tokio::time::sleep(Duration::from_millis(80)).await;
        wait_until("nothing is due", Duration::from_secs(10), async || {
            self.fixture.service.count(due).await == 0
        })
        .await;
        let after = self
            .fixture
            .api
            .get_json(&record_path(&round.subscription))
            .await;
        let audit = &mut round.audit;
        audit.probe(Timestamp::now(), &after);
        audit
            .read_ledger(&self.fixture.api, &round.subscription)
            .await;
        audit.history.calls.sort_by_key(|call| call.at);
        if let Err(violation) = audit.check() {
            panic!("round {}: {violation}\n{:#?}", round.number, audit.history);
        }
        after
    }

    /// Returns type and amount of the entries that follow the first period.
    async fn later_entries(&self, round: &Round) -> Vec<(String, i64)> {
        let entries = read_ledger(&self.fixture.api, &round.subscription).await;
        let entries = entries.iter().skip(2).map(|entry| {
            let entry_type = entry["type"].as_str().unwrap().to_owned();
            (entry_type, minor_units(&entry["amount"]))
        });
        entries.collect()
    }

    /// Returns the kinds of the events after the first payment.
    async fn later_events(&self, round: &Round) -> Vec<String> {
        let events = self.fixture.events(&round.subscription).await;
        events.into_iter().skip(2).collect()
    }
}

impl Round {
    fn record_payment(&mut self, payment: &Value) {
        let verb = Verb::Pay {
            payment: id_number(&payment["id"]),
            amount: PRICE,
        };
        self.audit
            .call(instant(&payment["created_at"]).unwrap(), verb);
    }

    fn renews_at(&self) -> Timestamp {
        instant(&self.subscription["renews_at"]).unwrap()
    }

    /// Returns the renewal date this many months after `renews_at`.
    fn next_renewal(&self, months: i64) -> Value {
        let next = BillingCycle::Monthly.nth_renewal(self.renews_at(), months);
        json!(format!("{:.6}", next.unwrap()))
    }
}

fn payment(subscription: &Value) -> Value {
    json!({"subscription_id": subscription["id"], "amount": 19.99, "currency": "USD", "status": "completed"})
}

fn entries(listed: &[(&str, i64)]) -> Vec<(String, i64)> {
    listed
        .iter()
        .map(|(name, amount)| ((*name).to_owned(), *amount))
        .collect()
}

#[tokio::test]
async fn payment_racing_the_worker_renews_once() {
    let race = Race::start().await;
    let mut orders = [0, 0];
    for number in 0..rounds() {
        let mut round = race.due(number).await;
        let payment = race.post_payment(number % 2, &round.subscription).await;
        round.record_payment(&payment);
        let after = race.settle(&mut round).await;
        assert_eq!(
            (
                &after["status"],
                &after["renews_at"],
                minor_units(&after["credit"])
            ),
            (&json!("active"), &round.next_renewal(1), 0),
            "round {number}"
        );
        let charged = entries(&[("payment", PRICE), ("period", -PRICE)]);
        assert_eq!(race.later_entries(&round).await, charged, "round {number}");
        let events = race.later_events(&round).await;
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        match events[..] {
            ["subscription.past_due", "subscription.updated"] => orders[0] += 1,
            ["subscription.updated", "subscription.renewed"] => orders[1] += 1,
            ref other => panic!("round {number}: {other:?}"),
        }
    }
    println!(
        "past due before the payment: {}, paid before the due date: {}",
        orders[0], orders[1]
    );
    assert!(orders[0] > 0 && orders[1] > 0, "{orders:?}");
}

/// One payment pays the period that is due, the other stays credit.
#[tokio::test]
async fn concurrent_payments_pay_one_period_each() {
    let race = Race::start().await;
    for number in 0..rounds() {
        let mut round = race.due(number).await;
        let (first, second) = tokio::join!(
            race.post_payment(0, &round.subscription),
            race.post_payment(1, &round.subscription)
        );
        round.record_payment(&first);
        round.record_payment(&second);
        let after = race.settle(&mut round).await;
        assert_eq!(
            (
                &after["status"],
                &after["renews_at"],
                &after["paid_until"],
                minor_units(&after["credit"])
            ),
            (
                &json!("active"),
                &round.next_renewal(1),
                &round.next_renewal(2),
                PRICE
            ),
            "round {number}"
        );
        let mut posted = race.later_entries(&round).await;
        posted.sort();
        let expected = entries(&[("payment", PRICE), ("payment", PRICE), ("period", -PRICE)]);
        assert_eq!(posted, expected, "round {number}");
    }
}

/// A refund takes the credit of a payment that came before it. Otherwise it is waived, because the
/// period that it paid has started.
#[tokio::test]
async fn payment_racing_a_refund_has_one_of_two_orders() {
    let race = Race::start().await;
    let mut orders = [0, 0];
    for number in 0..rounds() {
        let mut round = race.paid_until(number, None).await;
        let first = round.first_payment.clone();
        let (payment, refund) = tokio::join!(
            race.post_payment(number % 2, &round.subscription),
            race.put((number + 1) % 2, &first, json!({"status": "refunded"}))
        );
        assert_eq!(refund.status, 200, "{}", refund.text);
        round.record_payment(&payment);
        let verb = Verb::Refund {
            payment: id_number(&first["id"]),
            refunded_total: PRICE,
        };
        let refunded_at = instant(&refund.json()["updated_at"]).unwrap();
        round.audit.call(refunded_at, verb);
        let after = race.settle(&mut round).await;
        assert_eq!(after["status"], "active", "round {number}");
        let posted = race.later_entries(&round).await;
        let credit = minor_units(&after["credit"]);
        if posted == entries(&[("payment", PRICE), ("refund", -PRICE)]) {
            assert_eq!(credit, 0, "round {number}");
            orders[0] += 1;
        } else {
            let expected = [("refund", -PRICE), ("waiver", PRICE), ("payment", PRICE)];
            assert_eq!(posted, entries(&expected), "round {number}");
            assert_eq!(credit, PRICE, "round {number}");
            orders[1] += 1;
        }
    }
    println!("payment first: {}, refund first: {}", orders[0], orders[1]);
}

/// The change of the plan is paid by the payment, or it came too early and changes nothing.
#[tokio::test]
async fn payment_racing_a_plan_change_has_one_of_two_orders() {
    let race = Race::start().await;
    let mut orders = [0, 0];
    for number in 0..rounds() {
        let mut round = race.paid_until(number, None).await;
        let subscription = round.subscription.clone();
        let (payment, change) = tokio::join!(
            race.post_payment(number % 2, &subscription),
            race.put(
                (number + 1) % 2,
                &subscription,
                json!({"subscription_plan_id": race.dearer})
            )
        );
        round.record_payment(&payment);
        if change.status == 200 {
            let view = change.json();
            let verb = Verb::ChangeTerms {
                terms: terms(&view),
                trial_days: 0,
            };
            round
                .audit
                .call(instant(&view["updated_at"]).unwrap(), verb);
        }
        let after = race.settle(&mut round).await;
        assert_eq!(
            (&after["status"], &after["renews_at"]),
            (&json!("active"), &subscription["renews_at"]),
            "round {number}"
        );
        let posted = race.later_entries(&round).await;
        if change.status == 200 {
            assert_eq!(
                posted,
                entries(&[("payment", PRICE), ("change", -PRICE)]),
                "round {number}"
            );
            assert_eq!(after["subscription_plan_id"], json!(race.dearer));
            orders[0] += 1;
        } else {
            change.assert_problem(402, "payment_required");
            assert_eq!(posted, entries(&[("payment", PRICE)]), "round {number}");
            assert_eq!(
                after["subscription_plan_id"],
                subscription["subscription_plan_id"]
            );
            orders[1] += 1;
        }
    }
    println!("payment first: {}, change first: {}", orders[0], orders[1]);
}

/// A pause before the due date stops the charge. A later one comes after the period became past due,
/// whether or not a worker had stored that.
#[tokio::test]
async fn pause_racing_the_worker_has_one_of_two_orders() {
    let race = Race::start().await;
    let mut orders = [0, 0];
    for number in 0..rounds() {
        let mut round = race.due(number).await;
        let response = race
            .put(number % 2, &round.subscription, json!({"status": "paused"}))
            .await;
        assert_eq!(response.status, 200, "{}", response.text);
        let view = response.json();
        let paused_at = instant(&view["updated_at"]).unwrap();
        let verb = Verb::SetStatus {
            status: status(&view["status"]),
            ends_at: None,
        };
        round.audit.call(paused_at, verb);
        let after = race.settle(&mut round).await;
        assert_eq!(
            (&after["status"], &after["renews_at"], &after["is_active"]),
            (
                &json!("paused"),
                &round.subscription["renews_at"],
                &json!(false)
            ),
            "round {number}"
        );
        assert_eq!(race.later_entries(&round).await, [], "round {number}");
        let events = race.later_events(&round).await;
        if paused_at < round.renews_at() {
            assert_eq!(events, ["subscription.updated"], "round {number}");
            orders[0] += 1;
        } else {
            let expected = ["subscription.past_due", "subscription.updated"];
            assert_eq!(events, expected, "round {number}");
            orders[1] += 1;
        }
    }
    println!(
        "paused before the due date: {}, after: {}",
        orders[0], orders[1]
    );
    assert!(orders[0] > 0 && orders[1] > 0, "{orders:?}");
}

#[tokio::test]
async fn suspension_racing_the_worker_keeps_both_changes() {
    let race = Race::start().await;
    for number in 0..rounds() {
        let mut round = race.due(number).await;
        let response = race
            .put(number % 2, &round.subscription, json!({"is_active": false}))
            .await;
        assert_eq!(response.status, 200, "{}", response.text);
        let suspended_at = instant(&response.json()["updated_at"]).unwrap();
        round.audit.call(suspended_at, Verb::Suspend);
        let after = race.settle(&mut round).await;
        assert_eq!(
            (&after["status"], &after["is_active"]),
            (&json!("past_due"), &json!(false)),
            "round {number}"
        );
        let mut events = race.later_events(&round).await;
        events.sort();
        let expected = ["subscription.past_due", "subscription.updated"];
        assert_eq!(events, expected, "round {number}");
    }
}

#[tokio::test]
async fn deletion_racing_the_worker_wins() {
    let race = Race::start().await;
    for number in 0..rounds() {
        let round = race.due(number).await;
        let path = record_path(&round.subscription);
        let response = race.clients[number % 2].delete(&path).await;
        assert_eq!(response.status, 204, "{}", response.text);
        tokio::time::sleep(Duration::from_millis(80)).await;
        let events = race.later_events(&round).await;
        let last = events.last().map(String::as_str);
        assert_eq!(
            last,
            Some("subscription.deleted"),
            "round {number}: {events:?}"
        );
        assert!(events.len() <= 2, "round {number}: {events:?}");
    }
}
