//! `PUT` and `DELETE /subscriptions/{id}`

use jiff::{SignedDuration, Timestamp};
use perennial_domain::SubscriptionStatus;
use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, SubscriptionFixture, create_plan, record_path};
use crate::harness::process::run_ok;

/// Creates a subscription in this status.
async fn subscribe_as(fixture: &SubscriptionFixture, status: SubscriptionStatus) -> Value {
    let end = (status == SubscriptionStatus::Cancelled).then_some("2099-01-01T00:00:00Z");
    fixture
        .subscribe(json!({"status": status.as_str(), "ends_at": end}))
        .await
}

/// Malformed input: 52.
#[tokio::test]
async fn only_allowed_transitions_are_accepted() {
    let fixture = SubscriptionFixture::start().await;
    for from in SubscriptionStatus::ALL {
        let allowed: Vec<&str> = from
            .allowed_transitions()
            .iter()
            .map(|to| to.as_str())
            .collect();
        for to in SubscriptionStatus::ALL.into_iter().filter(|to| *to != from) {
            let record = subscribe_as(&fixture, from).await;
            let response = fixture.put(&record, json!({"status": to.as_str()})).await;
            if from.allowed_transitions().contains(&to) && from != SubscriptionStatus::Expired {
                assert_eq!(response.status, 200, "{from} to {to}: {}", response.text);
                // Canceling a subscription that is late or has no access expires it.
                let is_late = from == SubscriptionStatus::PastDue;
                let has_time = from.gives_access() && !is_late;
                let expires = to == SubscriptionStatus::Cancelled && !has_time;
                let shown = if expires {
                    SubscriptionStatus::Expired
                } else {
                    to
                };
                assert_eq!(response.json()["status"], shown.as_str(), "{from} to {to}");
                assert_eq!(
                    fixture.events(&record).await,
                    ["subscription.created", "subscription.updated"]
                );
            } else {
                response.assert_problem(409, "invalid_transition");
                assert_eq!(response.json()["allowed"], json!(allowed));
                assert_eq!(fixture.api.get(&record_path(&record)).await.json(), record);
            }
        }
    }
    let expired = subscribe_as(&fixture, SubscriptionStatus::Expired).await;
    let reopened = fixture
        .put(
            &expired,
            json!({"status": "active", "renews_at": "2099-01-01T00:00:00Z"}),
        )
        .await;
    assert_eq!(reopened.json()["is_active"], true);
    assert_eq!(reopened.json()["ends_at"], Value::Null);
}

/// GET, change one field, PUT: only that field and those derived from it change.
#[tokio::test]
async fn updating_one_field_in_every_status_changes_only_it() {
    let fixture = SubscriptionFixture::start().await;
    let yearly = json!({"name": "Y", "slug": "y", "price": 99, "billing_cycle": "yearly"});
    let yearly = create_plan(&fixture.api, &yearly).await;
    let later = "2098-01-01T00:00:00.000000Z";
    for status in SubscriptionStatus::ALL {
        let changes: [(&str, Value, &[&str]); 11] = [
            (
                "subscription_plan_id",
                json!(yearly),
                &["subscription_plan_slug", "billing_cycle", "price"],
            ),
            (
                "subscription_plan_slug",
                json!("y"),
                &["subscription_plan_id", "billing_cycle", "price"],
            ),
            ("metadata", json!({"order": "A-1042"}), &[]),
            (
                "external_subscription_id",
                json!(format!("ext_{status}")),
                &["lifecycle"],
            ),
            ("billing_cycle", json!("weekly"), &["price", "currency"]),
            ("quantity", json!(3), &[]),
            ("price", json!(5.0), &[]),
            ("is_active", json!(false), &["suspended"]),
            ("starts_at", json!("2020-01-01T00:00:00.000000Z"), &[]),
            ("renews_at", json!(later), &[]),
            ("ends_at", json!(later), &[]),
        ];
        for (field, value, derived) in changes {
            let before = subscribe_as(&fixture, status).await;
            let mut body = before.clone();
            body[field] = value.clone();
            let response = fixture.put(&before, body).await;
            if status == SubscriptionStatus::Expired && field == "ends_at" {
                response.assert_problem(422, "inconsistent_status");
                continue;
            }
            assert_eq!(response.status, 200, "{status} {field}: {}", response.text);
            let after = response.json();
            assert_eq!(after[field], value, "{status} {field}");
            for (name, old) in before.as_object().unwrap() {
                let may_change =
                    name == field || name == "updated_at" || derived.contains(&name.as_str());
                assert!(
                    may_change || after[name] == *old,
                    "{name} changed with {field} in {status}: {after}"
                );
            }
        }
    }
}

#[tokio::test]
async fn unchanged_record_sent_back_changes_nothing() {
    let fixture = SubscriptionFixture::start().await;
    for status in SubscriptionStatus::ALL {
        let record = subscribe_as(&fixture, status).await;
        for body in [record.clone(), json!({})] {
            let response = fixture.put(&record, body).await;
            assert_eq!(response.json(), record);
        }
        assert_eq!(fixture.events(&record).await, ["subscription.created"]);
    }
}

#[tokio::test]
async fn invalid_updates_are_rejected() {
    let fixture = SubscriptionFixture::start().await;
    let record = fixture.subscribe(json!({})).await;
    let assert_errors = async |body: Value, expected: &[&str]| {
        let response = fixture.put(&record, body).await;
        assert_eq!(response.field_errors(), expected, "{}", response.text);
    };
    assert_errors(
        json!({"user_id": "usr_01920000000070008000000000000001"}),
        &["/user_id immutable_field"],
    )
    .await;
    for (field, value) in [
        ("id", "sub_01920000000070008000000000000001"),
        ("currency", "EUR"),
        ("created_at", "2020-01-01T00:00:00Z"),
    ] {
        let error = format!("/{field} immutable_field");
        assert_errors(json!({field: value}), &[&error]).await;
    }
    assert_errors(
        json!({"status": null, "is_active": null, "starts_at": null, "billing_cycle": null}),
        &[
            "/billing_cycle required",
            "/status required",
            "/is_active required",
            "/starts_at required",
        ],
    )
    .await;
    assert_errors(
        json!({"ends_at": "2020-01-01T00:00:00Z"}),
        &["/ends_at inconsistent_dates"],
    )
    .await;
    assert_errors(
        json!({"renews_at": "2027-02-30T00:00:00Z", "ends_at": "9999-12-31T23:59:59-00:01"}),
        &["/renews_at invalid_format", "/ends_at out_of_range"],
    )
    .await;
    assert_errors(json!({"status": "unpaid", "subscription_plan_id": "plan_01920000000070008000000000000001"}),
        &["/subscription_plan_id unknown_reference"]).await;
    let unpaid = fixture.put(&record, json!({"status": "unpaid"})).await;
    assert_eq!(unpaid.status, 200);
    assert_errors(
        json!({"is_active": true}),
        &["/is_active inconsistent_status"],
    )
    .await;
    assert_eq!(
        fixture.api.get(&record_path(&record)).await.text,
        unpaid.text
    );
    let stale = fixture.api.with("if-match", "\"stale\"");
    let response = stale.put(&record_path(&record), "{}").await;
    response.assert_problem(412, "precondition_failed");
    let current = fixture.api.with("if-match", unpaid.header("etag"));
    assert_eq!(
        current
            .put(&record_path(&record), r#"{"status": "active"}"#)
            .await
            .status,
        200
    );
}

/// A status in the same body decides about access.
#[tokio::test]
async fn status_decides_over_is_active() {
    let fixture = SubscriptionFixture::start().await;
    let record = fixture.subscribe(json!({"status": "paused"})).await;
    let body = json!({"status": "unpaid", "is_active": true});
    let unpaid = fixture.put(&record, body).await.json();
    assert_eq!(
        (&unpaid["status"], &unpaid["is_active"]),
        (&json!("unpaid"), &json!(false))
    );
    let body = json!({"status": "active", "is_active": true});
    let active = fixture.put(&record, body).await.json();
    assert_eq!(active["is_active"], true);
    let later = json!({"is_active": true, "starts_at": "2099-01-01T00:00:00Z", "renews_at": "2099-02-01T00:00:00Z"});
    let scheduled = fixture.put(&record, later).await;
    assert_eq!(scheduled.status, 200, "{}", scheduled.text);
    assert_eq!(scheduled.json()["is_active"], false);
    let accepted = fixture.put(&record, json!({"is_active": true})).await;
    assert_eq!(accepted.status, 200, "{}", accepted.text);
}

#[tokio::test]
async fn price_and_quantity_can_change() {
    let fixture = SubscriptionFixture::start().await;
    let record = fixture.subscribe(json!({})).await;
    let body = json!({"price": 12.5, "quantity": 3});
    let changed = fixture.put(&record, body).await.json();
    assert_eq!(
        (&changed["price"], &changed["quantity"]),
        (&json!(12.5), &json!(3))
    );
    // Null takes the plan's current price.
    let pro = "/subscription-plans/pro";
    let raised = fixture.api.put(pro, r#"{"price": 25}"#).await;
    assert_eq!(raised.status, 200, "{}", raised.text);
    let moved = fixture.put(&record, json!({"price": null})).await;
    assert_eq!(moved.json()["price"], 25.0);
    // A price is for one cycle. Without one, it is unknown.
    let weekly = fixture
        .put(&record, json!({"billing_cycle": "weekly"}))
        .await;
    assert_eq!(weekly.json()["price"], Value::Null);
    let priced = fixture.put(&record, json!({"price": 7})).await.json();
    assert_eq!(
        (&priced["price"], &priced["currency"]),
        (&json!(7.0), &json!("USD"))
    );
}

#[tokio::test]
async fn lifetime_subscription_cannot_be_canceled() {
    let fixture = SubscriptionFixture::start().await;
    let record = fixture
        .subscribe(json!({"billing_cycle": "lifetime"}))
        .await;
    let response = fixture.put(&record, json!({"status": "cancelled"})).await;
    response.assert_problem(409, "invalid_transition");
    assert_eq!(response.json()["allowed"], json!(["expired"]));
    let ended = fixture.put(&record, json!({"status": "expired"})).await;
    assert_eq!(ended.status, 200);
}

/// Malformed input: 80.
#[tokio::test]
async fn deleted_subscription_keeps_its_payments() {
    let fixture = SubscriptionFixture::start().await;
    let record = fixture
        .subscribe(json!({"external_subscription_id": "ext_1"}))
        .await;
    let payment = fixture.pay(&record, json!({"status": "completed"})).await;
    let pending = fixture.pay(&record, json!({})).await;
    assert_eq!(fixture.api.delete(&record_path(&record)).await.status, 204);
    let path = record_path(&record);
    for response in [
        fixture.api.get(&path).await,
        fixture.api.put(&path, r#"{"status": "active"}"#).await,
        fixture.api.delete(&path).await,
        fixture.api.get(&format!("{path}/payments")).await,
    ] {
        response.assert_problem(404, "subscription_not_found");
    }
    assert_eq!(
        fixture.api.get(SUBSCRIPTIONS).await.json()["data"],
        json!([])
    );
    assert_eq!(
        fixture.events(&record).await,
        ["subscription.created", "subscription.deleted"]
    );
    // Payments are kept. A late payment is recorded and does not restore the subscription.
    assert_eq!(
        fixture.api.get(&record_path(&payment)).await.json(),
        payment
    );
    let late = fixture
        .api
        .put(&record_path(&pending), r#"{"status": "completed"}"#)
        .await;
    assert_eq!(late.json()["status"], "completed");
    assert_eq!(fixture.api.get(&path).await.status, 404);
    let body = json!({"subscription_id": record["id"], "amount": 1, "currency": "USD"}).to_string();
    let response = fixture.api.post("/subscription-payments", &body).await;
    assert_eq!(
        response.field_errors(),
        ["/subscription_id unknown_reference"]
    );
}

/// Deleting an account ends its subscriptions and keeps its payments.
#[tokio::test]
async fn account_deletion_ends_subscriptions() {
    let fixture = SubscriptionFixture::start().await;
    let tokens = fixture.api.sign_up("leaver@example.com").await;
    let with_user = |mut fields: Value| {
        fields["user_id"] = json!(tokens.user());
        fields
    };
    let live = fixture
        .subscribe(with_user(json!({"external_subscription_id": "ext_1"})))
        .await;
    let expired = fixture
        .subscribe(with_user(json!({"status": "expired"})))
        .await;
    let others = fixture.subscribe(json!({})).await;
    let payment = fixture.pay(&live, json!({"status": "completed"})).await;
    let path = format!("/authentication/delete-my-account/{}", tokens.user());
    let as_user = fixture.api.with_bearer(tokens.access());
    assert_eq!(as_user.delete(&path).await.status, 204);
    let ended = fixture.api.get(&record_path(&live)).await.json();
    assert_eq!(
        (&ended["status"], &ended["is_active"]),
        (&json!("expired"), &json!(false))
    );
    assert_eq!(
        fixture.events(&live).await,
        ["subscription.created", "subscription.ended"]
    );
    let id = live["id"].as_str().unwrap().trim_start_matches("sub_");
    let ended_events = format!(
        "SELECT count(*) FROM events WHERE subject_id = '{id}' AND kind = 'subscription.ended'
           AND data ->> 'external_subscription_id' = 'ext_1' AND data -> 'previous' ->> 'status' = 'active'"
    );
    assert_eq!(
        fixture.service.count(&ended_events).await,
        1,
        "the event must contain the provider's id"
    );
    assert_eq!(fixture.events(&expired).await, ["subscription.created"]);
    assert_eq!(fixture.api.get(&record_path(&others)).await.json(), others);
    assert_eq!(
        fixture.api.get(&record_path(&payment)).await.json(),
        payment
    );
    // A deleted user cannot be subscribed.
    let fields = fixture.fields(&with_user(json!({}))).to_string();
    let response = fixture.api.post(SUBSCRIPTIONS, &fields).await;
    assert_eq!(response.field_errors(), ["/user_id unknown_reference"]);
}

#[tokio::test]
async fn reactivation_requires_user_and_plan() {
    let fixture = SubscriptionFixture::start().await;
    let reopen = json!({"status": "active", "renews_at": "2099-01-01T00:00:00Z"});
    let tokens = fixture.api.sign_up("leaver@example.com").await;
    let theirs = fixture.subscribe(json!({"user_id": tokens.user()})).await;
    let as_user = fixture.api.with_bearer(tokens.access());
    let account = format!("/authentication/delete-my-account/{}", tokens.user());
    assert_eq!(as_user.delete(&account).await.status, 204);
    let response = fixture.put(&theirs, reopen.clone()).await;
    assert_eq!(response.field_errors(), ["/user_id unknown_reference"]);

    let record = subscribe_as(&fixture, SubscriptionStatus::Expired).await;
    let deactivated = json!({"is_active": false}).to_string();
    let pro = "/subscription-plans/pro";
    assert_eq!(fixture.api.put(pro, &deactivated).await.status, 200);
    assert_eq!(
        fixture.put(&record, reopen.clone()).await.status,
        200,
        "an inactive plan can be kept"
    );
    let expired = fixture.put(&record, json!({"status": "expired"})).await;
    assert_eq!(expired.status, 200);
    assert_eq!(fixture.api.delete(pro).await.status, 204);
    let response = fixture.put(&record, reopen).await;
    assert_eq!(
        response.field_errors(),
        ["/subscription_plan_id unknown_reference"]
    );
}

/// The stored status lags behind the end. An update first records the expiry, at its own instant.
#[tokio::test]
async fn past_end_records_expiry_before_the_update() {
    let start: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let end = start + SignedDuration::from_secs(4);
    let fixture = SubscriptionFixture::start_at(start).await;
    let mut records = Vec::new();
    for _ in 0..10 {
        let record = fixture.subscribe(json!({"ends_at": end.to_string()})).await;
        assert_eq!(record["is_active"], true, "created before its end");
        records.push(record);
    }
    fixture
        .service
        .server
        .set_time(end + SignedDuration::from_secs(1));
    for record in records {
        let body = json!({"status": "active", "renews_at": "2099-01-01T00:00:00Z"});
        assert_eq!(fixture.put(&record, body).await.json()["is_active"], true);
        let events = [
            "subscription.created",
            "subscription.expired",
            "subscription.updated",
        ];
        assert_eq!(fixture.events(&record).await, events);
    }
}

/// Support can look up a user by any id of its records, deleted ones included.
#[tokio::test]
async fn user_show_and_export_include_deleted_records() {
    let fixture = SubscriptionFixture::start().await;
    let kept = fixture.subscribe(json!({})).await;
    let deleted = fixture.subscribe(json!({"status": "past_due"})).await;
    let payment = fixture.pay(&deleted, json!({"status": "completed"})).await;
    assert_eq!(fixture.api.delete(&record_path(&deleted)).await.status, 204);
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    for selector in [
        "ada@example.com".to_owned(),
        id(&kept),
        id(&deleted),
        id(&payment),
    ] {
        let shown = run_ok(&fixture.service.variables, &["user", "show", &selector]);
        for part in [
            fixture.user.as_str(),
            &id(&kept),
            "active",
            "19.99 USD completed",
        ] {
            assert!(shown.contains(part), "{selector}: {part}: {shown}");
        }
        let all = fixture.service.run_json(&["user", "export", &selector]);
        assert_eq!(all["subscriptions"].as_array().unwrap().len(), 2);
        let mut expected = payment.clone();
        expected["deleted_at"] = Value::Null;
        assert_eq!(all["payments"], json!([expected]));
        let kinds: Vec<&str> = all["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["kind"].as_str().unwrap())
            .collect();
        for kind in [
            "user.created",
            "subscription.updated",
            "subscription.deleted",
            "payment.created",
        ] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
    }
}
