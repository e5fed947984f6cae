//! Managed lifecycle: renewals, dunning and expiry are applied once, at their instants.

mod audit;
mod demo;
pub mod fixture;
mod ledger;
mod preview;
mod races;
mod sales;
pub mod simulation;
mod worked_example;
mod workers;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    harness::{
        api::ApiClient,
        process::{Variables, run_ok},
        service::{InProcessService, Service},
        wait_until,
    },
    subscription_plans::minimal_plan,
    subscriptions::{SubscriptionFixture, create_plan, create_user, record_path},
};

/// Starts the API in process with a managed tenant and a fixed billing clock.
async fn start_managed(now: Timestamp) -> (InProcessService, ApiClient) {
    let service = Service::start_in_process_at(now).await;
    manage(&service.variables);
    let database = service.database.connect().await;
    let since = "UPDATE tenants SET lifecycle_since = '2020-01-01T00:00:00Z'";
    database.execute(since, &[]).await.unwrap();
    let api = service.api(&[]);
    (service, api)
}

/// Sets the tenant's lifecycle to managed.
fn manage(variables: &Variables) {
    run_ok(variables, &["tenant", "set", "--lifecycle", "managed"]);
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn pay(api: &ApiClient, subscription: &Value, amount: f64) -> Value {
    api.create(
        "/subscription-payments",
        &json!({"subscription_id": subscription["id"], "amount": amount, "currency": "USD", "status": "completed"}),
    )
    .await
}

/// Returns all subscriptions, payments, ledger entries and events as text, without generated ids.
async fn dump_records(service: &InProcessService) -> Vec<String> {
    let client = service.database.connect().await;
    let sql = "
        SELECT concat_ws(' ', 'subscription', email, subscriptions.status, starts_at, renews_at, ends_at, anchor, late_since,
            due_at, credit_minor, period_starts_at, period_ends_at, period_cost_minor, period_waived_minor, trial_ends_at,
            suspended, subscriptions.created_at, subscriptions.updated_at, subscriptions.deleted_at)
        FROM subscriptions JOIN users ON users.id = user_id
        UNION ALL
        SELECT concat_ws(' ', 'payment', email, amount_minor, subscription_payments.status, paid_at,
            subscription_payments.period_starts_at, subscription_payments.period_ends_at, ledger_amount,
            subscription_payments.created_at, subscription_payments.updated_at)
        FROM subscription_payments JOIN subscriptions ON subscriptions.id = subscription_id JOIN users ON users.id = user_id
        UNION ALL
        SELECT concat_ws(' ', 'ledger', email, ledger_entries.created_at, type, cause, amount_minor, credit_after_minor,
            ledger_entries.period_starts_at, ledger_entries.period_ends_at, ledger_entries.quantity)
        FROM ledger_entries JOIN subscriptions ON subscriptions.id = subscription_id
        JOIN users ON users.id = subscriptions.user_id
        UNION ALL
        SELECT concat_ws(' ', 'event', email, events.at, kind,
            (data #- '{previous,subscription_plan_id}') - 'id' - 'user_id' - 'subscription_plan_id' - 'subscription_id')
        FROM events
        LEFT JOIN subscription_payments ON subscription_payments.id = subject_id
        JOIN subscriptions ON subscriptions.id = coalesce(subscription_payments.subscription_id, subject_id)
        JOIN users ON users.id = subscriptions.user_id
        ORDER BY 1";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// With a server, its worker, and `sandbox clock advance`.
#[tokio::test]
async fn simulated_year_applies_all_transitions() {
    let fixture = SubscriptionFixture::start_server().await;
    manage(&fixture.service.variables);
    // The server's cache of tenants has a TTL of 1 s.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let free = create_plan(&fixture.api, &{
        let mut plan = minimal_plan("free");
        plan["price"] = json!(0);
        plan
    })
    .await;
    let subscribe_and_pay = async |amount: f64| {
        let record = fixture.subscribe(json!({})).await;
        let paid = json!({"status": "completed", "amount": amount});
        fixture.pay(&record, paid).await;
        fixture.api.get_json(&record_path(&record)).await
    };
    let one_month = subscribe_and_pay(19.99).await;
    let two_months = subscribe_and_pay(39.98).await;
    let ends = subscribe_and_pay(19.99).await;
    let free_of_charge = fixture
        .subscribe(json!({"subscription_plan_id": free}))
        .await;
    let external = fixture
        .subscribe(json!({"external_subscription_id": "sub_42"}))
        .await;
    let cancelled = r#"{"status": "cancelled"}"#;
    let cancelled = fixture.api.put(&record_path(&ends), cancelled).await;
    assert_eq!(cancelled.json()["ends_at"], ends["renews_at"]);
    let status = async |record: &Value| {
        let read = fixture.api.get(&record_path(record)).await.json();
        (
            read["status"].as_str().unwrap().to_owned(),
            read["renews_at"].as_str().unwrap_or("-").to_owned(),
        )
    };
    let next = |record: &Value| {
        let start = at(record["starts_at"].as_str().unwrap());
        let cycle = perennial_domain::BillingCycle::Monthly;
        format!("{:.6}", cycle.nth_renewal(start, 2).unwrap())
    };
    let renews = |record: &Value| record["renews_at"].as_str().unwrap().to_owned();

    let advance = |by: &str| {
        fixture
            .service
            .run_json(&["sandbox", "clock", "advance", by, "--json"])
    };
    let report = advance("1mo 1h");
    let count = |report: &Value| {
        ["renewed", "past_due", "unpaid", "expired"].map(|kind| report[kind].as_i64().unwrap())
    };
    assert_eq!(count(&report), [2, 1, 0, 1], "{report}");
    let named: Vec<&Value> = report["subscriptions"].as_array().unwrap().iter().collect();
    assert_eq!(named.len(), 2, "{report}");
    assert_eq!(
        status(&one_month).await,
        ("past_due".to_owned(), renews(&one_month))
    );
    assert_eq!(
        status(&two_months).await,
        ("active".to_owned(), next(&two_months))
    );
    assert_eq!(
        status(&free_of_charge).await,
        ("active".to_owned(), next(&free_of_charge))
    );
    assert_eq!(
        status(&external).await,
        ("active".to_owned(), renews(&external))
    );
    assert_eq!(status(&ends).await.0, "expired");

    // A payment below the price waits as credit. With enough credit, the open period is paid.
    fixture
        .pay(&one_month, json!({"status": "completed", "amount": 19.98}))
        .await;
    assert_eq!(status(&one_month).await.0, "past_due");
    let payment = fixture.pay(&one_month, json!({"amount": 0.01})).await;
    let completed = fixture
        .api
        .put(&record_path(&payment), r#"{"status": "completed"}"#)
        .await;
    assert_eq!(completed.status, 200);
    assert_eq!(
        status(&one_month).await,
        ("active".to_owned(), next(&one_month))
    );
    assert_eq!(
        fixture.events(&one_month).await,
        [
            "subscription.created",
            "subscription.updated",
            "subscription.past_due",
            "subscription.updated",
            "subscription.updated"
        ]
    );

    let report = advance("1mo");
    assert_eq!(count(&report), [1, 2, 0, 0], "{report}");
    let report = advance("7d");
    assert_eq!(count(&report), [0, 0, 2, 0], "{report}");
    let access = fixture.api.get(&record_path(&one_month)).await.json();
    assert_eq!(
        (&access["status"], &access["is_active"]),
        (&json!("unpaid"), &json!(false))
    );
    let report = advance("10mo");
    assert_eq!(count(&report), [10, 0, 0, 2], "{report}");
    assert_eq!(
        fixture.events(&two_months).await,
        [
            "subscription.created",
            "subscription.updated",
            "subscription.renewed",
            "subscription.past_due",
            "subscription.unpaid",
            "subscription.expired"
        ]
    );
    assert_eq!(fixture.events(&free_of_charge).await.len(), 13);

    // Sign-ins use the real clock.
    let tokens = fixture.api.sign_up("grace@example.com").await;
    assert_eq!(fixture.api.check(tokens.access()).await.status, 200);
    // New subscriptions use the billing clock.
    let new = fixture.subscribe(json!({})).await;
    let shown = fixture
        .service
        .run_json(&["sandbox", "clock", "show", "--json"]);
    let day = |value: &Value| value.as_str().unwrap()[..10].to_owned();
    assert_eq!(day(&new["starts_at"]), day(&shown["billing_time"]));
    assert_ne!(day(&shown["billing_time"]), day(&shown["real_time"]));
    run_ok(&fixture.service.variables, &["sandbox", "clock", "reset"]);
}

/// Without managed lifecycle, a subscription changes only at its end.
#[tokio::test]
async fn recorded_subscription_only_expires() {
    let fixture = SubscriptionFixture::start_server().await;
    let renewing = fixture.subscribe(json!({})).await;
    let ends = fixture
        .subscribe(json!({"status": "cancelled", "ends_at": renewing["renews_at"], "external_subscription_id": "x"}))
        .await;
    let report = fixture
        .service
        .run_json(&["sandbox", "clock", "advance", "1y", "--json"]);
    assert_eq!(report["events"], 1, "{report}");
    assert_eq!(
        fixture.events(&ends).await,
        ["subscription.created", "subscription.expired"]
    );
    assert_eq!(fixture.events(&renewing).await, ["subscription.created"]);
    // Overdue renewals become due when the lifecycle becomes managed.
    manage(&fixture.service.variables);
    wait_until(
        "the subscription is past due",
        Duration::from_secs(5),
        async || fixture.events(&renewing).await.len() == 3,
    )
    .await;
    assert_eq!(
        fixture.events(&renewing).await[1..],
        ["subscription.updated", "subscription.past_due"]
    );
    let report = fixture
        .service
        .run_json(&["sandbox", "clock", "advance", "6d", "--json"]);
    assert_eq!(report["unpaid"], 0);
    let read = fixture.api.get(&record_path(&renewing)).await.json();
    assert_eq!(read["status"], "past_due");
}

/// A payment applies the transitions that were due before it, whether or not a worker has.
#[tokio::test]
async fn late_worker_does_not_change_payment_outcome() {
    let start = at("2027-01-31T09:30:00Z");
    let mut records = Vec::new();
    for late in [false, true] {
        let (service, api) = start_managed(start).await;
        let plan = json!({"name": "Daily", "slug": "daily", "price": 1, "billing_cycle": "daily"});
        api.create("/subscription-plans", &plan).await;
        let user = create_user(&api, "ada@example.com").await;
        let subscription = api.subscribe_user(&user, "daily", json!({})).await;
        pay(&api, &subscription, 1.0).await;
        for day in 1..5 {
            service
                .server
                .set_time(at(&format!("2027-02-0{day}T10:00:00Z")));
            if !late {
                service.server.catch_up().await;
            }
        }
        // Pays the period that was open and is over, and the next one, which starts now.
        pay(&api, &subscription, 2.0).await;
        service.server.catch_up().await;
        let read = api.get_json(&record_path(&subscription)).await;
        assert_eq!(
            fixture::state(&read),
            "active, access, renews 2027-02-05T10:00, paid until 2027-02-05T10:00, credit 0.00, due 0.00"
        );
        records.push(dump_records(&service).await);
    }
    assert_eq!(records[0], records[1]);
}
