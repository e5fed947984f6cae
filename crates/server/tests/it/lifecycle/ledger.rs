//! `GET /subscriptions/{id}/ledger`

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    at,
    fixture::{Managed, ledger_line, minute, state},
    manage,
};
use crate::{
    harness::{
        merged,
        process::{run_err, run_ok},
        service::Service,
    },
    subscriptions::{SubscriptionFixture, create_user, record_path},
};

fn ledger_path(subscription: &Value) -> String {
    format!("{}/ledger", record_path(subscription))
}

/// The server's cache of tenants has a TTL of 1 s.
async fn wait_for_lifecycle() {
    tokio::time::sleep(Duration::from_millis(1_100)).await;
}

#[tokio::test]
async fn ledger_is_paginated_in_both_orders() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let other = managed.subscribe_and_pay("pro", 10.0).await;
    for amount in [10.0, 1.0, 2.0, 3.0, 4.0] {
        managed.pay(&record, amount).await;
    }
    managed.advance("2027-02-01T12:01:00Z").await;
    let all = managed.entries(&record).await;
    assert_eq!(all.len(), 7);
    for (sort, newest) in [("created_at", false), ("-created_at", true)] {
        let (path, query) = (ledger_path(&record), format!("sort={sort}"));
        let mut expected = all.clone();
        if newest {
            expected.reverse();
        }
        assert_eq!(managed.api.list_all(&path, &query, 2).await, expected);
        let first = format!("{path}?limit=2&{query}");
        let page = managed.api.get_json(&first).await;
        let cursor = page["next_cursor"].as_str().unwrap();
        let foreign = format!("{}?limit=2&{query}&cursor={cursor}", ledger_path(&other));
        assert_eq!(managed.api.get(&foreign).await.problem(), "invalid_cursor");
    }
    let unknown = "/subscriptions/sub_01920000000070008000000000000001/ledger";
    let response = managed.api.get(unknown).await;
    response.assert_problem(404, "subscription_not_found");
}

#[tokio::test]
async fn entry_has_all_fields() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({"quantity": 2})).await;
    let (client, key) = managed.service.create_client(&[]);
    let api = managed.service.anonymous().with("client-id", &key);
    let api = api.with("x-request-id", "order-17");
    let payment = json!({"subscription_id": record["id"], "amount": 40, "currency": "USD", "status": "completed"});
    let payment = api.create("/subscription-payments", &payment).await;
    managed.advance("2027-02-01T12:01:00Z").await;
    let entries = managed.entries(&record).await;
    let start = managed.read(&record).await["starts_at"].clone();
    let entry = &entries[1];
    let expected = json!({
        "id": entry["id"], "at": entry["at"], "type": "period", "cause": "start", "amount": -20.0, "credit_after": 20.0,
        "currency": "USD", "payment_id": null, "period_starts_at": start, "period_ends_at": entries[2]["period_starts_at"],
        "subscription_plan_id": record["subscription_plan_id"], "quantity": 2, "actor": client, "request_id": "order-17",
    });
    assert_eq!(*entry, expected);
    assert!(entry["id"].as_str().unwrap().starts_with("led_"));
    assert_eq!(entries[0]["payment_id"], payment["id"]);
    assert_eq!(entries[0]["request_id"], "order-17");
    // Time caused the renewal.
    assert_eq!(
        ledger_line(&entries[2]),
        "period/renewal -20.00 = 0.00 2027-02-01 2027-03-01"
    );
    assert_eq!(
        (&entries[2]["actor"], &entries[2]["request_id"]),
        (&Value::Null, &Value::Null)
    );
    // Entries of one change have an unambiguous order.
    let instants: Vec<_> = entries
        .iter()
        .map(|entry| at(entry["at"].as_str().unwrap()))
        .collect();
    assert!(
        instants.is_sorted_by(|one, next| one < next),
        "{instants:?}"
    );
}

/// Time causes a renewal, also if a request stores it.
#[tokio::test]
async fn request_is_not_the_actor_of_what_was_due_before_it() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 20.0).await;
    managed.set_time("2027-02-01T13:00:00Z");
    managed.pay(&record, 5.0).await;
    let entries = managed.entries(&record).await;
    let causes: Vec<_> = entries[2..]
        .iter()
        .map(|entry| {
            (
                entry["cause"].as_str().unwrap(),
                entry["actor"].is_null(),
                minute(&entry["at"]),
            )
        })
        .collect();
    assert_eq!(
        causes,
        [
            ("renewal", true, "2027-02-01T12:00".to_owned()),
            ("payment", false, "2027-02-01T13:00".to_owned())
        ]
    );
}

#[tokio::test]
async fn ledger_is_append_only() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let mut before = managed.entries(&record).await;
    let first = managed.pay(&record, 25.0).await;
    let second = managed.pay(&record, 10.0).await;
    let big = managed.api.plan_id("big").await;
    for (target, body) in [
        (
            &first,
            json!({"status": "partially_refunded", "refunded_amount": 5}),
        ),
        (&first, json!({"refunded_amount": 7.5})),
        (&first, json!({"refunded_amount": 2})),
        (&record, json!({"quantity": 2})),
        (&second, json!({"status": "disputed"})),
        (&second, json!({"status": "completed"})),
        (&second, json!({"status": "disputed"})),
        (&second, json!({"status": "refunded"})),
        (&record, json!({"free_until": "2027-05-01T00:00:00Z"})),
        (&first, json!({"status": "refunded"})),
        (&record, json!({"status": "paused"})),
        (
            &record,
            json!({"subscription_plan_id": big, "status": "expired"}),
        ),
    ] {
        let response = managed.send(target, &body).await;
        assert!(
            [200, 402].contains(&response.status),
            "{body}: {}",
            response.text
        );
        let after = managed.entries(&record).await;
        assert_eq!(after[..before.len()], before, "{body}");
        before = after;
        managed.ledger(&record).await;
    }
    assert!(before.len() > 10, "{before:?}");
    // The entries of a refunded payment add up to 0.
    for payment in [&first, &second] {
        let own = before
            .iter()
            .filter(|entry| entry["payment_id"] == payment["id"]);
        let sum: i64 = own
            .map(|entry| super::fixture::cents(&entry["amount"]))
            .sum();
        assert_eq!(sum, 0);
    }
}

/// Back in recorded lifecycle, nothing is charged and the ledger is readable. It continues in managed lifecycle.
#[tokio::test]
async fn recorded_lifecycle_freezes_the_ledger() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 25.0).await;
    let frozen = managed.entries(&record).await;
    let variables = &managed.service.variables;
    run_ok(variables, &["tenant", "set", "--lifecycle", "recorded"]);
    wait_for_lifecycle().await;
    let read = managed.read(&record).await;
    assert_eq!(read["lifecycle"], "recorded");
    for field in [
        "credit",
        "amount_due",
        "paid_until",
        "current_period_starts_at",
    ] {
        assert_eq!(read[field], Value::Null, "{field}");
    }
    let payment = managed.pay(&record, 10.0).await;
    assert_eq!(payment["period_starts_at"], Value::Null);
    managed.advance("2027-02-10T12:00:00Z").await;
    managed
        .api
        .update(&record, json!({"renews_at": "2027-03-10T12:00:00Z"}))
        .await;
    assert_eq!(managed.entries(&record).await, frozen);

    manage(variables);
    let database = managed.service.database.connect().await;
    let since = "UPDATE tenants SET lifecycle_since = '2027-02-20T12:00:00Z'";
    database.execute(since, &[]).await.unwrap();
    wait_for_lifecycle().await;
    managed.advance("2027-02-20T12:00:00Z").await;
    // A payment before the switch, and its refund, have no entry.
    managed
        .api
        .update(&payment, json!({"status": "refunded"}))
        .await;
    assert_eq!(
        managed.state(&record).await,
        "active, access, renews 2027-03-10T12:00, paid until 2027-04-10T12:00, credit 15.00, due 0.00"
    );
    // The switch is stored with the next change and dated at its own instant.
    managed.advance("2027-02-21T12:00:00Z").await;
    managed.pay(&record, 5.0).await;
    assert_eq!(managed.entries(&record).await[..2], frozen);
    assert_eq!(
        managed.ledger(&record).await[2..],
        [
            "extension/managed +0.00 = 15.00 2027-02-20 2027-03-10",
            "payment/payment +5.00 = 20.00"
        ]
    );
}

/// A payment that is in the ledger stays in step with it, also in recorded lifecycle.
#[tokio::test]
async fn refunds_and_disputes_of_posted_payments_are_posted_in_recorded_lifecycle() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let disputed = managed.pay(&record, 20.0).await;
    let refunded = managed.pay(&record, 5.0).await;
    let variables = &managed.service.variables;
    run_ok(variables, &["tenant", "set", "--lifecycle", "recorded"]);
    wait_for_lifecycle().await;
    managed
        .api
        .update(&disputed, json!({"status": "disputed"}))
        .await;
    let part = json!({"status": "partially_refunded", "refunded_amount": 1});
    managed.api.update(&refunded, part).await;
    manage(variables);
    let database = managed.service.database.connect().await;
    let since = "UPDATE tenants SET lifecycle_since = '2027-01-02T12:00:00Z'";
    database.execute(since, &[]).await.unwrap();
    wait_for_lifecycle().await;
    managed.advance("2027-01-03T12:00:00Z").await;
    managed
        .api
        .update(&disputed, json!({"status": "completed"}))
        .await;
    assert_eq!(managed.read(&record).await["credit"], 15.0);
    managed
        .api
        .update(&refunded, json!({"status": "refunded"}))
        .await;
    managed
        .api
        .update(&disputed, json!({"status": "disputed"}))
        .await;
    assert_eq!(
        managed.ledger(&record).await[3..],
        [
            "refund/dispute -20.00 = -5.00",
            "refund/refund -1.00 = -6.00",
            "waiver/waiver +1.00 = -5.00",
            "payment/dispute_won +20.00 = 15.00",
            "refund/refund -4.00 = 11.00",
            "refund/dispute -20.00 = -9.00",
        ]
    );
}

/// Events have the fields of the API's records.
#[tokio::test]
async fn events_have_the_fields_of_the_record() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let payment = managed.pay(&record, 30.0).await;
    let paid = managed.read(&record).await;
    managed.advance("2027-02-01T12:00:01Z").await;
    let database = managed.service.database.connect().await;
    let sql = "SELECT kind, data::text FROM events WHERE kind LIKE 'subscription.%' OR kind LIKE 'payment.%'
               ORDER BY at, id";
    let rows = database.query(sql, &[]).await.unwrap();
    let events: Vec<(String, Value)> = rows
        .iter()
        .map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap()))
        .collect();
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "subscription.created",
            "payment.created",
            "subscription.updated",
            "subscription.renewed"
        ]
    );
    assert_eq!(events[0].1, record);
    assert_eq!(events[1].1, payment);
    let mut updated = events[2].1.clone();
    let previous = updated.as_object_mut().unwrap().remove("previous").unwrap();
    assert_eq!(updated, paid);
    let previous_state = json!({"status": previous["status"], "credit": previous["credit"],
        "amount_due": previous["amount_due"], "paid_until": previous["paid_until"]});
    assert_eq!(
        previous_state,
        json!({"status": "pending", "credit": 0.0, "amount_due": 10.0, "paid_until": null})
    );
    let mut renewed = events[3].1.clone();
    let previous = renewed.as_object_mut().unwrap().remove("previous").unwrap();
    assert_eq!(renewed, managed.read(&record).await);
    assert_eq!(previous["credit"], 20.0);
    assert_eq!(
        state(&renewed),
        "active, access, renews 2027-03-01T12:00, paid until 2027-04-01T12:00, credit 10.00, due 0.00"
    );
}

#[tokio::test]
async fn payments_of_a_deleted_subscription_can_be_refunded() {
    let managed = Managed::start().await;
    let record = managed.api.subscribe("pro", json!({})).await;
    let first = managed.pay(&record, 10.0).await;
    let second = managed.pay(&record, 10.0).await;
    assert_eq!(managed.api.delete(&record_path(&record)).await.status, 204);
    for payment in [&first, &second] {
        let refunded = managed
            .api
            .update(payment, json!({"status": "refunded"}))
            .await;
        assert_eq!(refunded["refunded_amount"], 10.0);
    }
    let response = managed.api.get(&ledger_path(&record)).await;
    response.assert_problem(404, "subscription_not_found");
    let database = managed.service.database.connect().await;
    let sql = "SELECT concat_ws(' ', type, amount_minor, credit_after_minor) FROM ledger_entries ORDER BY created_at";
    let rows = database.query(sql, &[]).await.unwrap();
    let entries: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        entries,
        [
            "payment 1000 1000",
            "period -1000 0",
            "payment 1000 1000",
            "refund -1000 0",
            "refund -1000 -1000",
            "waiver 1000 0"
        ]
    );
    let credit = "SELECT credit_minor FROM subscriptions";
    assert_eq!(managed.service.count(credit).await, 0);
    managed.advance("2027-06-01T12:00:00Z").await;
    let entries = "SELECT count(*) FROM ledger_entries";
    assert_eq!(managed.service.count(entries).await, 6);
}

/// One default trial per user and plan, also after the first subscription was deleted.
#[tokio::test]
async fn default_trial_is_given_once_per_user_and_plan() {
    let managed = Managed::start().await;
    for slug in ["one", "two"] {
        let plan = json!({"name": slug, "slug": slug, "price": 10, "billing_cycle": "monthly", "trial_days": 7});
        managed.api.create("/subscription-plans", &plan).await;
    }
    let user = create_user(&managed.api, "ada@example.com").await;
    let status = async |user: &str, slug: &str| {
        let record = managed.api.subscribe_user(user, slug, json!({})).await;
        let path = record_path(&record);
        assert_eq!(managed.api.delete(&path).await.status, 204);
        record["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status(&user, "one").await, "on_trial");
    assert_eq!(status(&user, "one").await, "pending");
    assert_eq!(status(&user, "two").await, "on_trial");
    let other = create_user(&managed.api, "bob@example.com").await;
    assert_eq!(status(&other, "one").await, "on_trial");
    // Of requests at the same time, one gets it.
    let requests = (0..12).map(|_| managed.api.subscribe_user(&other, "two", json!({})));
    let created = futures_util::future::join_all(requests).await;
    let trials = created.iter().filter(|one| one["status"] == "on_trial");
    assert_eq!(trials.count(), 1);
    // A server may give another trial.
    let asked = managed
        .api
        .subscribe_user(&user, "one", json!({"status": "on_trial"}))
        .await;
    assert_eq!(
        (&asked["status"], minute(&asked["renews_at"])),
        (&json!("on_trial"), "2027-01-08T12:00".to_owned())
    );
    assert_eq!(
        managed.ledger(&asked).await,
        ["extension/trial +0.00 = 0.00 2027-01-01 2027-01-08"]
    );
}

/// The switch covers a renewal date in the future. A passed one is due now.
#[tokio::test]
async fn switch_to_managed_covers_the_time_until_renewal() {
    let start = at("2027-01-01T12:00:00Z");
    let fixture = SubscriptionFixture::start_at(start).await;
    let covered = fixture
        .subscribe(json!({"renews_at": "2027-03-01T00:00:00Z"}))
        .await;
    let passed = fixture
        .subscribe(
            json!({"starts_at": "2026-01-01T00:00:00Z", "renews_at": "2026-12-01T00:00:00Z"}),
        )
        .await;
    let late = fixture.subscribe(json!({"status": "past_due"})).await;
    manage(&fixture.service.variables);
    let database = fixture.service.database.connect().await;
    let since = "UPDATE tenants SET lifecycle_since = '2027-01-02T12:00:00Z'";
    database.execute(since, &[]).await.unwrap();
    wait_for_lifecycle().await;
    fixture.service.server.set_time(at("2027-01-02T12:00:10Z"));
    fixture.service.server.catch_up().await;
    let read = async |record: &Value| state(&fixture.api.get_json(&record_path(record)).await);
    assert_eq!(
        read(&covered).await,
        "active, access, renews 2027-03-01T00:00, paid until 2027-03-01T00:00, credit 0.00, due 0.00"
    );
    assert_eq!(
        read(&passed).await,
        "past_due, access, renews 2027-01-02T12:00, paid until 2027-01-02T12:00, credit 0.00, due 19.99"
    );
    assert_eq!(
        read(&late).await,
        "past_due, access, renews 2027-01-01T12:00, paid until 2027-01-01T12:00, credit 0.00, due 19.99"
    );
    // The switch is stored with the next change and dated at its own instant.
    let renewed = at("2027-03-01T00:00:01Z");
    fixture.service.server.set_time(renewed);
    fixture.service.server.catch_up().await;
    assert_eq!(
        read(&covered).await,
        "past_due, access, renews 2027-03-01T00:00, paid until 2027-03-01T00:00, credit 0.00, due 19.99"
    );
    let ledger = fixture.api.get_json(&ledger_path(&covered)).await;
    let entries = ledger["data"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        ledger_line(&entries[0]),
        "extension/managed +0.00 = 0.00 2027-01-02 2027-03-01"
    );
    assert_eq!(minute(&entries[0]["at"]), "2027-01-02T12:00");
}

/// A subscription without a price or a renewal date cannot be charged.
#[tokio::test]
async fn switch_to_managed_is_refused_while_prices_are_missing() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = json!({"name": "Pro", "slug": "pro", "price": 10, "billing_cycle": "monthly"});
    let plan = api.create("/subscription-plans", &plan).await;
    let user = create_user(&api, "ada@example.com").await;
    let with = |extra: Value| {
        let fields = json!({"user_id": user, "subscription_plan_id": plan["id"]});
        merged(fields, &extra)
    };
    let mut blocking = Vec::new();
    for fields in [
        json!({"billing_cycle": "yearly"}),
        json!({"billing_cycle": "weekly"}),
    ] {
        blocking.push(api.create("/subscriptions", &with(fields)).await);
    }
    let dateless = api.create("/subscriptions", &with(json!({}))).await;
    let response = api
        .put(&record_path(&dateless), r#"{"renews_at": null}"#)
        .await;
    assert_eq!(response.status, 200, "{}", response.text);
    blocking.push(dateless);
    // These do not count: a provider's, an ended one, and one with its own price.
    for fields in [
        json!({"billing_cycle": "yearly", "external_subscription_id": "ext_1"}),
        json!({"billing_cycle": "yearly", "status": "expired"}),
        json!({"billing_cycle": "yearly", "price": 100}),
        json!({}),
    ] {
        api.create("/subscriptions", &with(fields)).await;
    }
    let switch = ["tenant", "set", "--lifecycle", "managed"];
    let refused = run_err(&service.variables, &switch);
    let reason = "2 subscriptions without a price and 1 subscription without renews_at";
    assert!(refused.contains(reason), "{refused}");
    let lifecycle = || service.run_json(&["tenant", "list", "--json"])["lifecycle"].clone();
    assert_eq!(lifecycle(), "recorded");
    for (record, body) in blocking.iter().zip([
        json!({"price": 100}),
        json!({"status": "expired"}),
        json!({"renews_at": "2099-01-01T00:00:00Z"}),
    ]) {
        let response = api.put(&record_path(record), &body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text);
    }
    run_ok(&service.variables, &switch);
    assert_eq!(lifecycle(), "managed");
}
