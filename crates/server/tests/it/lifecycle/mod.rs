//! Managed lifecycle: renewals, dunning and expiry are applied once, at their instants.

mod demo;
mod races;
mod simulation;
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
    subscriptions::{SubscriptionFixture, create_plan, record_path},
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

async fn subscribe(api: &ApiClient, email: &str, plan: &Value, extra: Value) -> Value {
    let user = api.create("/users", &json!({"email": email})).await;
    let mut fields = json!({"user_id": user["id"], "subscription_plan_id": plan["id"]});
    for (name, value) in extra.as_object().unwrap() {
        fields[name] = value.clone();
    }
    api.create("/subscriptions", &fields).await
}

async fn pay(api: &ApiClient, subscription: &Value, amount: f64) -> Value {
    api.create(
        "/subscription-payments",
        &json!({"subscription_id": subscription["id"], "amount": amount, "currency": "USD", "status": "completed"}),
    )
    .await
}

/// Returns all subscriptions, payments and events as text, without generated ids.
async fn dump_records(service: &InProcessService) -> Vec<String> {
    let client = service.database.connect().await;
    let sql = "
        SELECT concat_ws(' ', 'subscription', email, subscriptions.status, renews_at, ends_at, anchor, prepaid, late_since,
            suspended, subscriptions.created_at, subscriptions.updated_at, subscriptions.deleted_at)
        FROM subscriptions JOIN users ON users.id = user_id
        UNION ALL
        SELECT concat_ws(' ', 'payment', email, amount_minor, subscription_payments.status, period,
            subscription_payments.created_at, subscription_payments.updated_at)
        FROM subscription_payments JOIN subscriptions ON subscriptions.id = subscription_id JOIN users ON users.id = user_id
        UNION ALL
        SELECT concat_ws(' ', 'event', email, events.at, kind,
            data - 'id' - 'user_id' - 'subscription_plan_id' - 'subscription_id')
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
    let unpaid = fixture.subscribe(json!({})).await;
    let paid = fixture.subscribe(json!({})).await;
    let free_of_charge = fixture
        .subscribe(json!({"subscription_plan_id": free}))
        .await;
    let external = fixture
        .subscribe(json!({"external_subscription_id": "sub_42"}))
        .await;
    let ends = fixture
        .subscribe(json!({"status": "cancelled", "ends_at": paid["renews_at"]}))
        .await;
    fixture.pay(&paid, json!({"status": "completed"})).await;
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
        cycle.nth_renewal(start, 2).unwrap().to_string()
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
        status(&unpaid).await,
        ("past_due".to_owned(), renews(&unpaid))
    );
    assert_eq!(status(&paid).await, ("active".to_owned(), next(&paid)));
    assert_eq!(
        status(&free_of_charge).await,
        ("active".to_owned(), next(&free_of_charge))
    );
    assert_eq!(
        status(&external).await,
        ("active".to_owned(), renews(&external))
    );
    assert_eq!(status(&ends).await.0, "expired");

    // A payment below the price has no effect. A full one renews until the next date after the start.
    fixture
        .pay(&unpaid, json!({"status": "completed", "amount": 19.98}))
        .await;
    assert_eq!(status(&unpaid).await.0, "past_due");
    let payment = fixture.pay(&unpaid, json!({})).await;
    let completed = fixture
        .api
        .put(&record_path(&payment), r#"{"status": "completed"}"#)
        .await;
    assert_eq!(completed.status, 200);
    assert_eq!(status(&unpaid).await, ("active".to_owned(), next(&unpaid)));
    assert_eq!(
        fixture.events(&unpaid).await,
        [
            "subscription.created",
            "subscription.past_due",
            "subscription.updated"
        ]
    );

    let report = advance("1mo");
    assert_eq!(count(&report), [1, 2, 0, 0], "{report}");
    let report = advance("7d");
    assert_eq!(count(&report), [0, 0, 2, 0], "{report}");
    let access = fixture.api.get(&record_path(&unpaid)).await.json();
    assert_eq!(
        (&access["status"], &access["is_active"]),
        (&json!("unpaid"), &json!(false))
    );
    let report = advance("10mo");
    assert_eq!(count(&report), [10, 0, 0, 2], "{report}");
    assert_eq!(
        fixture.events(&paid).await,
        [
            "subscription.created",
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
        async || fixture.events(&renewing).await.len() == 2,
    )
    .await;
    let report = fixture
        .service
        .run_json(&["sandbox", "clock", "advance", "6d", "--json"]);
    assert_eq!(report["unpaid"], 0);
    let read = fixture.api.get(&record_path(&renewing)).await.json();
    assert_eq!(read["status"], "past_due");
}

#[tokio::test]
async fn one_year_step_equals_twelve_months() {
    let start = at("2027-01-31T09:30:00Z");
    let mut records = Vec::new();
    for months in [12, 1] {
        let (service, api) = start_managed(start).await;
        let mut plans = Vec::new();
        for (slug, price, cycle) in [
            ("free", 0, "monthly"),
            ("pro", 20, "monthly"),
            ("daily", 1, "daily"),
            ("weekly", 0, "weekly"),
        ] {
            plans.push(
                api.create(
                    "/subscription-plans",
                    &json!({"name": slug, "slug": slug, "price": price, "billing_cycle": cycle}),
                )
                .await,
            );
        }
        for (number, fields) in [
            json!({}),
            json!({"status": "on_trial", "renews_at": "2027-02-14T00:00:00Z"}),
            json!({"status": "past_due"}),
            json!({"ends_at": "2027-06-15T00:00:00Z"}),
            json!({"status": "paused"}),
            json!({"status": "cancelled", "ends_at": "2027-03-31T09:30:00Z"}),
        ]
        .into_iter()
        .enumerate()
        {
            for (kind, plan) in plans.iter().enumerate() {
                let email = format!("{number}.{kind}@example.com");
                let subscription = subscribe(&api, &email, plan, fields.clone()).await;
                for _ in 0..number * 2 {
                    pay(&api, &subscription, 20.0).await;
                }
            }
        }
        let mut passed = 0;
        while passed < 12 {
            passed += months;
            service.server.set_time(
                perennial_domain::BillingCycle::Monthly
                    .nth_renewal(start, passed)
                    .unwrap(),
            );
            service.server.catch_up().await;
        }
        api.get_json("/subscriptions?limit=1").await;
        records.push(dump_records(&service).await);
    }
    assert!(records[0].len() > 500, "{}", records[0].len());
    assert_eq!(records[0], records[1]);
}

/// A payment applies the transitions that were due before it, whether or not a worker has.
#[tokio::test]
async fn late_worker_does_not_change_payment_outcome() {
    let start = at("2027-01-31T09:30:00Z");
    let mut records = Vec::new();
    for late in [false, true] {
        let (service, api) = start_managed(start).await;
        let plan = json!({"name": "Daily", "slug": "daily", "price": 1, "billing_cycle": "daily"});
        let plan = api.create("/subscription-plans", &plan).await;
        let subscription = subscribe(&api, "ada@example.com", &plan, json!({})).await;
        for day in 1..5 {
            service
                .server
                .set_time(at(&format!("2027-02-0{day}T10:00:00Z")));
            if !late {
                service.server.catch_up().await;
            }
        }
        pay(&api, &subscription, 1.0).await;
        service.server.catch_up().await;
        let read = api.get_json(&record_path(&subscription)).await;
        assert_eq!(
            (&read["status"], &read["renews_at"]),
            (&json!("active"), &json!("2027-02-05T09:30:00Z"))
        );
        records.push(dump_records(&service).await);
    }
    assert_eq!(records[0], records[1]);
}

#[tokio::test]
async fn disputed_payment_is_applied_once() {
    let start = at("2027-01-31T09:30:00Z");
    let (service, api) = start_managed(start).await;
    let plan = json!({"name": "Pro", "slug": "pro", "price": 20, "billing_cycle": "monthly"});
    let plan = api.create("/subscription-plans", &plan).await;
    let subscription = subscribe(&api, "ada@example.com", &plan, json!({})).await;
    let payment = pay(&api, &subscription, 20.0).await;
    for status in ["disputed", "completed", "disputed", "completed"] {
        let body = json!({"status": status}).to_string();
        let response = api.put(&record_path(&payment), &body).await;
        assert_eq!(response.status, 200);
    }
    service.server.set_time(at("2027-03-01T00:00:00Z"));
    service.server.catch_up().await;
    assert_eq!(
        api.get_json(&record_path(&subscription)).await["status"],
        "active"
    );
    service.server.set_time(at("2027-04-01T00:00:00Z"));
    service.server.catch_up().await;
    assert_eq!(
        api.get_json(&record_path(&subscription)).await["status"],
        "past_due"
    );
    let paid = "SELECT count(*) FROM subscription_payments WHERE period = '2027-02-28T09:30:00Z'";
    assert_eq!(service.count(paid).await, 1);
}
