//! Time moves subscriptions: what happens by itself, who may do it, and that it happens once.

mod demo;
mod races;
mod simulation;
mod workers;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    harness::{held::Held, process::run_ok, service::Service, wait_until},
    subscription_plans::minimal,
    subscriptions::{Stage, make_plan, path_of},
};

/// A service without workers whose tenant has its time moved, and its interface at an instant.
async fn held(now: Timestamp) -> (Service, Held) {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    manage(&service);
    let (_, client) = service.make_client(&[]);
    let held = Held::start(&service.variables, &client, now).await;
    let client = service.database.connect().await;
    client
        .execute(
            "UPDATE tenants SET lifecycle_since = '2020-01-01T00:00:00Z'",
            &[],
        )
        .await
        .unwrap();
    (service, held)
}

fn manage(service: &Service) {
    run_ok(
        &service.variables,
        &["tenant", "set", "--lifecycle", "managed"],
    );
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn subscribe(held: &Held, email: &str, plan: &Value, further: Value) -> Value {
    let user = held.post("/users", &json!({"email": email})).await;
    let mut fields = json!({"user_id": user["id"], "subscription_plan_id": plan["id"]});
    for (name, value) in further.as_object().unwrap() {
        fields[name] = value.clone();
    }
    held.post("/subscriptions", &fields).await
}

async fn pay(held: &Held, subscription: &Value, amount: f64) -> Value {
    held.post(
        "/subscription-payments",
        &json!({"subscription_id": subscription["id"], "amount": amount, "currency": "USD", "status": "completed"}),
    )
    .await
}

/// Everything that is on record, without what is new each time, in the order of time.
async fn on_record(service: &Service) -> Vec<String> {
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

/// What a renewal, a missed payment, a payment and an end look like over HTTP, with the real worker and the command.
#[tokio::test]
async fn a_year_in_a_sandbox() {
    let stage = Stage::start().await;
    manage(&stage.service);
    // Running instances follow within a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let free = make_plan(&stage.caller, &{
        let mut plan = minimal("free");
        plan["price"] = json!(0);
        plan
    })
    .await;
    let unpaid = stage.subscribe(json!({})).await;
    let paid = stage.subscribe(json!({})).await;
    let gratis = stage.subscribe(json!({"subscription_plan_id": free})).await;
    let run_by_a_provider = stage
        .subscribe(json!({"external_subscription_id": "sub_42"}))
        .await;
    let ends = stage
        .subscribe(json!({"status": "cancelled", "ends_at": paid["renews_at"]}))
        .await;
    stage.pay(&paid, json!({"status": "completed"})).await;
    let status = async |record: &Value| {
        let read = stage.caller.get(&path_of(record)).await.json();
        (
            read["status"].as_str().unwrap().to_owned(),
            read["renews_at"].as_str().unwrap_or("-").to_owned(),
        )
    };
    let next = |record: &Value| {
        let start = at(record["starts_at"].as_str().unwrap());
        let cycle = perennial_domain::BillingCycle::Monthly;
        cycle.after(start, 2).unwrap().to_string()
    };
    let renews = |record: &Value| record["renews_at"].as_str().unwrap().to_owned();

    let advance = |by: &str| {
        stage
            .service
            .command(&["sandbox", "clock", "advance", by, "--json"])
    };
    let report = advance("1mo 1h");
    let count = |report: &Value| {
        ["renewed", "past_due", "unpaid", "expired"].map(|turn| report[turn].as_i64().unwrap())
    };
    assert_eq!(count(&report), [2, 1, 0, 1], "{report}");
    let named: Vec<&Value> = report["subscriptions"].as_array().unwrap().iter().collect();
    assert_eq!(named.len(), 2, "{report}");
    assert_eq!(
        status(&unpaid).await,
        ("past_due".to_owned(), renews(&unpaid))
    );
    assert_eq!(status(&paid).await, ("active".to_owned(), next(&paid)));
    assert_eq!(status(&gratis).await, ("active".to_owned(), next(&gratis)));
    assert_eq!(
        status(&run_by_a_provider).await,
        ("active".to_owned(), renews(&run_by_a_provider))
    );
    assert_eq!(status(&ends).await.0, "expired");

    // Too little pays for nothing; enough, and it goes on, until the next date that is counted from its beginning.
    stage
        .pay(&unpaid, json!({"status": "completed", "amount": 19.98}))
        .await;
    assert_eq!(status(&unpaid).await.0, "past_due");
    let payment = stage.pay(&unpaid, json!({})).await;
    let completed = stage
        .caller
        .put(&path_of(&payment), r#"{"status": "completed"}"#)
        .await;
    assert_eq!(completed.status, 200);
    assert_eq!(status(&unpaid).await, ("active".to_owned(), next(&unpaid)));
    assert_eq!(
        stage.events(&unpaid).await,
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
    let access = stage.caller.get(&path_of(&unpaid)).await.json();
    assert_eq!(
        (&access["status"], &access["is_active"]),
        (&json!("unpaid"), &json!(false))
    );
    let report = advance("10mo");
    assert_eq!(count(&report), [10, 0, 0, 2], "{report}");
    assert_eq!(
        stage.events(&paid).await,
        [
            "subscription.created",
            "subscription.renewed",
            "subscription.past_due",
            "subscription.unpaid",
            "subscription.expired"
        ]
    );
    assert_eq!(stage.events(&gratis).await.len(), 13);

    // A sign-in goes by the real clock.
    let tokens = stage.caller.sign_up("grace@example.com").await;
    assert_eq!(stage.caller.check(tokens.access()).await.status, 200);
    // So does a new plan; a new subscription begins in the year that it is for subscriptions.
    let new = stage.subscribe(json!({})).await;
    let shown = stage
        .service
        .command(&["sandbox", "clock", "show", "--json"]);
    let day = |value: &Value| value.as_str().unwrap()[..10].to_owned();
    assert_eq!(day(&new["starts_at"]), day(&shown["billing_time"]));
    assert_ne!(day(&shown["billing_time"]), day(&shown["real_time"]));
    run_ok(&stage.service.variables, &["sandbox", "clock", "reset"]);
}

/// What callers or a provider move is only ended.
#[tokio::test]
async fn recorded_is_left_alone() {
    let stage = Stage::start().await;
    let goes_on = stage.subscribe(json!({})).await;
    let ends = stage
        .subscribe(json!({"status": "cancelled", "ends_at": goes_on["renews_at"], "external_subscription_id": "x"}))
        .await;
    let report = stage
        .service
        .command(&["sandbox", "clock", "advance", "1y", "--json"]);
    assert_eq!(report["events"], 1, "{report}");
    assert_eq!(
        stage.events(&ends).await,
        ["subscription.created", "subscription.expired"]
    );
    assert_eq!(stage.events(&goes_on).await, ["subscription.created"]);
    // What was due while nobody moved it is due from when somebody does.
    manage(&stage.service);
    wait_until("it is past due", Duration::from_secs(5), async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stage.events(&goes_on).await.len() == 2
    })
    .await;
    let report = stage
        .service
        .command(&["sandbox", "clock", "advance", "6d", "--json"]);
    assert_eq!(report["unpaid"], 0);
    let read = stage.caller.get(&path_of(&goes_on)).await.json();
    assert_eq!(read["status"], "past_due");
}

/// A year at once, and twelve months one by one: the same, digit for digit.
#[tokio::test]
async fn a_year_at_once_is_twelve_months() {
    let begin = at("2027-01-31T09:30:00Z");
    let mut records = Vec::new();
    for months in [12, 1] {
        let (service, held) = held(begin).await;
        let mut plans = Vec::new();
        for (slug, price, cycle) in [
            ("free", 0, "monthly"),
            ("pro", 20, "monthly"),
            ("daily", 1, "daily"),
            ("weekly", 0, "weekly"),
        ] {
            plans.push(
                held.post(
                    "/subscription-plans",
                    &json!({"name": slug, "slug": slug, "price": price, "billing_cycle": cycle}),
                )
                .await,
            );
        }
        for (number, further) in [
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
                let one = subscribe(&held, &email, plan, further.clone()).await;
                for _ in 0..number * 2 {
                    pay(&held, &one, 20.0).await;
                }
            }
        }
        let mut passed = 0;
        while passed < 12 {
            passed += months;
            held.set(
                perennial_domain::BillingCycle::Monthly
                    .after(begin, passed)
                    .unwrap(),
            );
            held.catch_up().await;
        }
        let (status, _) = held
            .call(axum::http::Method::GET, "/subscriptions?limit=1", None)
            .await;
        assert_eq!(status, 200);
        records.push(on_record(&service).await);
    }
    assert!(records[0].len() > 500, "{}", records[0].len());
    assert_eq!(records[0], records[1]);
}

/// A late worker changes nothing that a payment decides: it is counted after what was due before.
#[tokio::test]
async fn paid_before_the_worker_came() {
    let begin = at("2027-01-31T09:30:00Z");
    let mut records = Vec::new();
    for late in [false, true] {
        let (service, held) = held(begin).await;
        let plan = json!({"name": "Daily", "slug": "daily", "price": 1, "billing_cycle": "daily"});
        let plan = held.post("/subscription-plans", &plan).await;
        let one = subscribe(&held, "ada@example.com", &plan, json!({})).await;
        for day in 1..5 {
            held.set(at(&format!("2027-02-0{day}T10:00:00Z")));
            if !late {
                held.catch_up().await;
            }
        }
        pay(&held, &one, 1.0).await;
        held.catch_up().await;
        let read = held.get(&path_of(&one)).await;
        assert_eq!(
            (&read["status"], &read["renews_at"]),
            (&json!("active"), &json!("2027-02-05T09:30:00Z"))
        );
        records.push(on_record(&service).await);
    }
    assert_eq!(records[0], records[1]);
}

/// A payment pays once, also if it is disputed and won.
#[tokio::test]
async fn a_payment_pays_once() {
    let begin = at("2027-01-31T09:30:00Z");
    let (service, held) = held(begin).await;
    let plan = json!({"name": "Pro", "slug": "pro", "price": 20, "billing_cycle": "monthly"});
    let plan = held.post("/subscription-plans", &plan).await;
    let one = subscribe(&held, "ada@example.com", &plan, json!({})).await;
    let payment = pay(&held, &one, 20.0).await;
    for status in ["disputed", "completed", "disputed", "completed"] {
        let put = axum::http::Method::PUT;
        let body = json!({"status": status});
        let (answered, _) = held.call(put, &path_of(&payment), Some(&body)).await;
        assert_eq!(answered, 200);
    }
    held.set(at("2027-03-01T00:00:00Z"));
    held.catch_up().await;
    assert_eq!(held.get(&path_of(&one)).await["status"], "active");
    held.set(at("2027-04-01T00:00:00Z"));
    held.catch_up().await;
    assert_eq!(held.get(&path_of(&one)).await["status"], "past_due");
    let paid = "SELECT count(*) FROM subscription_payments WHERE period = '2027-02-28T09:30:00Z'";
    assert_eq!(service.count(paid).await, 1);
}
