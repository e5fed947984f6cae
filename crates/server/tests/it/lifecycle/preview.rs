//! `POST /subscriptions/{id}/preview`

use serde_json::{Value, json};

use super::{
    dump_records,
    fixture::{Managed, START, cents, minute},
};
use crate::{
    harness::api::{ApiClient, ApiResponse},
    subscriptions::record_path,
};

async fn preview(api: &ApiClient, record: &Value, body: &Value) -> ApiResponse {
    let path = format!("{}/preview", record_path(record));
    api.post(&path, &body.to_string()).await
}

/// Returns an entry without what a preview does not know.
fn anonymous(entry: &Value) -> Value {
    let mut entry = entry.clone();
    for field in ["id", "actor", "request_id"] {
        entry[field] = Value::Null;
    }
    entry
}

/// Returns the fields that do not depend on the microsecond of a change.
fn outcome(subscription: &Value) -> Value {
    json!([
        subscription["status"],
        subscription["is_active"],
        subscription["subscription_plan_id"],
        subscription["quantity"],
        subscription["price"],
        subscription["credit"],
        subscription["amount_due"],
        minute(&subscription["renews_at"]),
        minute(&subscription["paid_until"]),
        minute(&subscription["ends_at"]),
    ])
}

/// What happened to a subscription before a preview.
struct History {
    plan: &'static str,
    fields: Value,
    /// The first payment; 0 for none.
    paid: f64,
    /// Updates, with the time of each.
    updates: Vec<(&'static str, Value)>,
}

impl History {
    fn new(plan: &'static str, fields: Value, paid: f64) -> Self {
        Self {
            plan,
            fields,
            paid,
            updates: Vec::new(),
        }
    }

    fn update(mut self, at: &'static str, body: Value) -> Self {
        self.updates.push((at, body));
        self
    }

    fn wait(self, at: &'static str) -> Self {
        self.update(at, json!({}))
    }
}

fn histories() -> Vec<History> {
    const DAY_9: &str = "2027-01-09T15:20:00Z";
    let pro = |paid| History::new("pro", json!({}), paid);
    let with = |plan, fields, paid| History::new(plan, fields, paid);
    let trial = json!({"status": "on_trial", "renews_at": "2027-01-20T00:00:00Z"});
    let paused = json!({"status": "paused"});
    vec![
        pro(0.0),
        pro(10.0).wait(DAY_9),
        pro(37.5).wait(DAY_9),
        with("pro", json!({"quantity": 3}), 100.0).wait("2027-02-03T01:00:00Z"),
        pro(10.0).wait("2027-02-05T01:00:00Z"),
        pro(10.0).wait("2027-03-05T01:00:00Z"),
        with("weekly", json!({}), 5.0).wait("2027-01-16T01:00:00Z"),
        with("yearly", json!({}), 120.0).wait("2027-05-05T01:00:00Z"),
        with("lifetime", json!({}), 320.0).wait(DAY_9),
        with("free", json!({}), 0.0).wait(DAY_9),
        with("pro", trial, 10.0).wait(DAY_9),
        pro(20.0).update(DAY_9, paused.clone()),
        pro(20.0).update(DAY_9, paused).wait("2027-02-20T01:00:00Z"),
        pro(20.0).update(DAY_9, json!({"status": "cancelled"})),
        pro(20.0).update(DAY_9, json!({"status": "expired"})),
        pro(10.0).update(DAY_9, json!({"free_until": "2027-03-20T00:00:00Z"})),
        pro(0.0).update(DAY_9, json!({"status": "active"})),
    ]
}

/// The changes of the generated cases.
async fn changes(managed: &Managed) -> Vec<Value> {
    vec![
        json!({}),
        json!({"status": "active"}),
        json!({"status": "paused"}),
        json!({"status": "cancelled"}),
        json!({"status": "expired"}),
        json!({"quantity": 4}),
        json!({"quantity": 2, "status": "active"}),
        json!({"price": 4}),
        json!({"subscription_plan_id": managed.api.plan_id("big").await}),
        json!({"subscription_plan_id": managed.api.plan_id("yearly").await, "quantity": 2}),
        json!({"subscription_plan_id": managed.api.plan_id("lifetime").await}),
        json!({"subscription_plan_id": managed.api.plan_id("daily").await}),
        json!({"free_until": "2027-06-30T00:00:00Z"}),
        json!({"free_until": null}),
        json!({"renews_at": "2027-06-30T00:00:00Z"}),
        json!({"ends_at": "2027-09-01T00:00:00Z"}),
    ]
}

/// Histories × changes: a preview is what PUT then does at the same instant, entries included. If
/// the credit does not suffice, PUT names the same amount, and succeeds once it is paid.
#[tokio::test]
async fn preview_equals_the_update() {
    let mut counts = [0; 3];
    let managed = Managed::start().await;
    let changes = changes(&managed).await;
    for (number, history) in histories().into_iter().enumerate() {
        let updates = &history.updates;
        managed.set_time(START);
        let mut records = Vec::new();
        for _ in &changes {
            let record = managed
                .api
                .subscribe(history.plan, history.fields.clone())
                .await;
            if history.paid > 0.0 {
                managed.pay(&record, history.paid).await;
            }
            records.push(record);
        }
        for (index, (now, body)) in updates.iter().enumerate() {
            // The last step is not applied by a worker: the preview applies what is due.
            if index + 1 == updates.len() && number % 2 == 0 {
                managed.set_time(now);
            } else {
                managed.advance(now).await;
            }
            for record in &records {
                managed.api.update(record, body.clone()).await;
            }
        }
        for (record, change) in records.iter().zip(&changes) {
            let case = format!("history {number}, {change}");
            let before = managed.entries(record).await;
            let preview = preview(&managed.api, record, change).await;
            let response = managed.send(record, change).await;
            if preview.status != 200 {
                assert_eq!(
                    (preview.status, preview.problem()),
                    (response.status, response.problem()),
                    "{case}"
                );
                counts[0] += 1;
                continue;
            }
            let preview = preview.json();
            let due = preview["amount_due"].as_f64().unwrap();
            let planned = preview["ledger"].as_array().unwrap();
            if cents(&preview["amount_due"]) == 0 {
                assert_eq!(response.status, 200, "{case}: {}", response.text);
                assert_eq!(response.json(), preview["subscription"], "{case}");
                let after = managed.entries(record).await;
                let added: Vec<_> = after[before.len()..].iter().map(anonymous).collect();
                assert_eq!(&added, planned, "{case}");
                counts[1] += 1;
                continue;
            }
            response.assert_problem(402, "payment_required");
            for field in ["amount_due", "valid_until"] {
                assert_eq!(response.json()[field], preview[field], "{case}");
            }
            assert_eq!(managed.entries(record).await, before, "{case}");
            managed.pay(record, due).await;
            // Paying may be all that was missing.
            let after = managed.api.update(record, change.clone()).await;
            assert_eq!(outcome(&after), outcome(&preview["subscription"]), "{case}");
            let ledger = managed.ledger(record).await;
            assert_eq!(
                ledger.len(),
                before.len() + planned.len(),
                "{case}: {ledger:?}"
            );
            counts[2] += 1;
        }
    }
    let [rejected, applied, unfunded] = counts;
    assert!(
        rejected >= 20 && applied >= 60 && unfunded >= 20,
        "{counts:?}"
    );
}

#[tokio::test]
async fn preview_has_no_effect() {
    let managed = Managed::start().await;
    let record = managed.subscribe_and_pay("pro", 20.0).await;
    managed.set_time("2027-02-01T13:00:00Z");
    let before = dump_records(&managed.service).await;
    for change in changes(&managed).await {
        preview(&managed.api, &record, &change).await;
    }
    assert_eq!(dump_records(&managed.service).await, before);
    let invalid = preview(
        &managed.api,
        &record,
        &json!({"status": 1, "flavor": "red"}),
    )
    .await;
    assert_eq!(
        invalid.field_errors(),
        ["/status wrong_type", "/flavor unknown_field"]
    );
    let stale = json!({"user_id": "usr_01920000000070008000000000000001"});
    let immutable = preview(&managed.api, &record, &stale).await;
    assert_eq!(immutable.field_errors(), ["/user_id immutable_field"]);
}
