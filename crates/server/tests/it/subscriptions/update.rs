//! `PUT` and `DELETE /subscriptions/{id}`

use perennial_domain::Status;
use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, Stage, make_plan, path_of};
use crate::harness::{api::Answer, process::run_ok};

async fn put(stage: &Stage, record: &Value, body: Value) -> Answer {
    stage.caller.put(&path_of(record), &body.to_string()).await
}

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (status, code),
        "{}",
        answer.text
    );
}

/// A subscription in this status; as few words as it takes.
async fn standing(stage: &Stage, status: Status) -> Value {
    let end = (status == Status::Cancelled).then_some("2099-01-01T00:00:00Z");
    stage
        .subscribe(json!({"status": status.as_str(), "ends_at": end}))
        .await
}

/// Every status to every other: as the table says, and otherwise told where it can go.
///
/// Catalogue: 52.
#[tokio::test]
async fn the_table_of_transitions() {
    let stage = Stage::start().await;
    for from in Status::ALL {
        let allowed: Vec<&str> = from.may_become().iter().map(|to| to.as_str()).collect();
        for to in Status::ALL.into_iter().filter(|to| *to != from) {
            let record = standing(&stage, from).await;
            let answer = put(&stage, &record, json!({"status": to.as_str()})).await;
            if from.may_become().contains(&to) && from != Status::Expired {
                assert_eq!(answer.status, 200, "{from} to {to}: {}", answer.text);
                // What gives no access has nothing left when it is cancelled.
                let over = to == Status::Cancelled && !from.gives_access();
                let shown = if over { Status::Expired } else { to };
                assert_eq!(answer.json()["status"], shown.as_str(), "{from} to {to}");
                assert_eq!(
                    stage.events(&record).await,
                    ["subscription.created", "subscription.updated"]
                );
            } else {
                refused(&answer, 409, "invalid_transition");
                assert_eq!(answer.json()["allowed"], json!(allowed));
                assert_eq!(stage.caller.get(&path_of(&record)).await.json(), record);
            }
        }
    }
    let over = standing(&stage, Status::Expired).await;
    let reopened = put(
        &stage,
        &over,
        json!({"status": "active", "renews_at": "2099-01-01T00:00:00Z"}),
    )
    .await;
    assert_eq!(reopened.json()["is_active"], true);
    assert_eq!(reopened.json()["ends_at"], Value::Null);
}

/// GET, change one field, PUT: that one changes, and what follows from it, in every status.
#[tokio::test]
async fn one_field_at_a_time_in_every_status() {
    let stage = Stage::start().await;
    let yearly = json!({"name": "Y", "slug": "y", "price": 99, "billing_cycle": "yearly"});
    let yearly = make_plan(&stage.caller, &yearly).await;
    let later = "2098-01-01T00:00:00Z";
    for status in Status::ALL {
        let changes: [(&str, Value, &[&str]); 7] = [
            (
                "subscription_plan_id",
                json!(yearly),
                &["billing_cycle", "price"],
            ),
            (
                "external_subscription_id",
                json!(format!("ext_{status}")),
                &[],
            ),
            ("billing_cycle", json!("weekly"), &["price", "currency"]),
            ("is_active", json!(false), &[]),
            ("starts_at", json!("2020-01-01T00:00:00Z"), &[]),
            ("renews_at", json!(later), &[]),
            ("ends_at", json!(later), &[]),
        ];
        for (field, value, follows) in changes {
            let before = standing(&stage, status).await;
            let mut body = before.clone();
            body[field] = value.clone();
            let answer = put(&stage, &before, body).await;
            if status == Status::Expired && field == "ends_at" {
                refused(&answer, 422, "inconsistent_status");
                continue;
            }
            assert_eq!(answer.status, 200, "{status} {field}: {}", answer.text);
            let after = answer.json();
            assert_eq!(after[field], value, "{status} {field}");
            for (name, old) in before.as_object().unwrap() {
                let free =
                    name == field || name == "updated_at" || follows.contains(&name.as_str());
                assert!(
                    free || after[name] == *old,
                    "{name} changed with {field} in {status}: {after}"
                );
            }
        }
    }
}

#[tokio::test]
async fn what_is_shown_sent_back_changes_nothing() {
    let stage = Stage::start().await;
    for status in Status::ALL {
        let record = standing(&stage, status).await;
        for body in [record.clone(), json!({})] {
            let answer = put(&stage, &record, body).await;
            assert_eq!(answer.json(), record);
        }
        assert_eq!(stage.events(&record).await, ["subscription.created"]);
    }
}

#[tokio::test]
async fn what_cannot_be_said() {
    let stage = Stage::start().await;
    let record = stage.subscribe(json!({})).await;
    let fields = async |body: Value, expected: &[&str]| {
        let answer = put(&stage, &record, body).await;
        assert_eq!(answer.field_errors(), expected, "{}", answer.text);
    };
    fields(
        json!({"user_id": "usr_01920000000070008000000000000001"}),
        &["/user_id immutable_field"],
    )
    .await;
    fields(
        json!({"status": null, "is_active": null, "starts_at": null, "billing_cycle": null}),
        &[
            "/billing_cycle required",
            "/status required",
            "/is_active required",
            "/starts_at required",
        ],
    )
    .await;
    fields(
        json!({"ends_at": "2020-01-01T00:00:00Z"}),
        &["/ends_at inconsistent_dates"],
    )
    .await;
    fields(json!({"status": "unpaid", "subscription_plan_id": "plan_01920000000070008000000000000001"}),
        &["/subscription_plan_id unknown_reference"]).await;
    let unpaid = put(&stage, &record, json!({"status": "unpaid"})).await;
    assert_eq!(unpaid.status, 200);
    fields(
        json!({"is_active": true}),
        &["/is_active inconsistent_status"],
    )
    .await;
    assert_eq!(stage.caller.get(&path_of(&record)).await.text, unpaid.text);
    let outdated = stage.caller.with("if-match", "\"stale\"");
    refused(
        &outdated.put(&path_of(&record), "{}").await,
        412,
        "precondition_failed",
    );
    let current = stage.caller.with("if-match", unpaid.header("etag"));
    assert_eq!(
        current
            .put(&path_of(&record), r#"{"status": "active"}"#)
            .await
            .status,
        200
    );
}

/// Catalogue: 80.
#[tokio::test]
async fn deleted_is_gone_and_its_payments_stay() {
    let stage = Stage::start().await;
    let record = stage
        .subscribe(json!({"external_subscription_id": "ext_1"}))
        .await;
    let payment = stage.pay(&record, json!({"status": "completed"})).await;
    let pending = stage.pay(&record, json!({})).await;
    assert_eq!(stage.caller.delete(&path_of(&record)).await.status, 204);
    let path = path_of(&record);
    for answer in [
        stage.caller.get(&path).await,
        stage.caller.put(&path, r#"{"status": "active"}"#).await,
        stage.caller.delete(&path).await,
        stage.caller.get(&format!("{path}/payments")).await,
    ] {
        refused(&answer, 404, "subscription_not_found");
    }
    assert_eq!(
        stage.caller.get(SUBSCRIPTIONS).await.json()["data"],
        json!([])
    );
    assert_eq!(
        stage.events(&record).await,
        ["subscription.created", "subscription.deleted"]
    );
    // What was paid was paid; what comes late is recorded and revives nothing.
    assert_eq!(stage.caller.get(&path_of(&payment)).await.json(), payment);
    let late = stage
        .caller
        .put(&path_of(&pending), r#"{"status": "completed"}"#)
        .await;
    assert_eq!(late.json()["status"], "completed");
    assert_eq!(stage.caller.get(&path).await.status, 404);
    let body = json!({"subscription_id": record["id"], "amount": 1, "currency": "USD"}).to_string();
    let new = stage.caller.post("/subscription-payments", &body).await;
    assert_eq!(new.field_errors(), ["/subscription_id unknown_reference"]);
}

/// An account that is deleted takes its subscriptions with it, and leaves its payments.
#[tokio::test]
async fn a_user_who_leaves() {
    let stage = Stage::start().await;
    let tokens = stage.caller.sign_up("leaver@example.com").await;
    let of = |further: Value| {
        let mut further = further;
        further["user_id"] = json!(tokens.user());
        further
    };
    let live = stage
        .subscribe(of(json!({"external_subscription_id": "ext_1"})))
        .await;
    let over = stage.subscribe(of(json!({"status": "expired"}))).await;
    let others = stage.subscribe(json!({})).await;
    let payment = stage.pay(&live, json!({"status": "completed"})).await;
    let path = format!("/authentication/delete-my-account/{}", tokens.user());
    let own = stage.caller.on_behalf_of(tokens.access());
    assert_eq!(own.delete(&path).await.status, 204);
    let ended = stage.caller.get(&path_of(&live)).await.json();
    assert_eq!(
        (&ended["status"], &ended["is_active"]),
        (&json!("expired"), &json!(false))
    );
    assert_eq!(
        stage.events(&live).await,
        ["subscription.created", "subscription.ended"]
    );
    let id = live["id"].as_str().unwrap().trim_start_matches("sub_");
    let told = format!(
        "SELECT count(*) FROM events WHERE subject_id = '{id}' AND kind = 'subscription.ended'
           AND data ->> 'external_subscription_id' = 'ext_1' AND data -> 'previous' ->> 'status' = 'active'"
    );
    assert_eq!(
        stage.service.count(&told).await,
        1,
        "the provider must be told"
    );
    assert_eq!(stage.events(&over).await, ["subscription.created"]);
    assert_eq!(stage.caller.get(&path_of(&others)).await.json(), others);
    assert_eq!(stage.caller.get(&path_of(&payment)).await.json(), payment);
    // Nobody subscribes somebody who is gone.
    let fields = stage.fields(&of(json!({}))).to_string();
    let answer = stage.caller.post(SUBSCRIPTIONS, &fields).await;
    assert_eq!(answer.field_errors(), ["/user_id unknown_reference"]);
}

/// What is over is not opened again for somebody who is gone, or on a plan that is.
#[tokio::test]
async fn opened_again_only_with_a_user_and_a_plan() {
    let stage = Stage::start().await;
    let reopen = json!({"status": "active", "renews_at": "2099-01-01T00:00:00Z"});
    let tokens = stage.caller.sign_up("leaver@example.com").await;
    let theirs = stage.subscribe(json!({"user_id": tokens.user()})).await;
    let own = stage.caller.on_behalf_of(tokens.access());
    let account = format!("/authentication/delete-my-account/{}", tokens.user());
    assert_eq!(own.delete(&account).await.status, 204);
    let answer = put(&stage, &theirs, reopen.clone()).await;
    assert_eq!(answer.field_errors(), ["/user_id unknown_reference"]);

    let record = standing(&stage, Status::Expired).await;
    let closed = json!({"is_active": false}).to_string();
    let pro = "/subscription-plans/pro";
    assert_eq!(stage.caller.put(pro, &closed).await.status, 200);
    assert_eq!(
        put(&stage, &record, reopen.clone()).await.status,
        200,
        "those who have it keep it"
    );
    let over = put(&stage, &record, json!({"status": "expired"})).await;
    assert_eq!(over.status, 200);
    assert_eq!(stage.caller.delete(pro).await.status, 204);
    let answer = put(&stage, &record, reopen).await;
    assert_eq!(
        answer.field_errors(),
        ["/subscription_plan_id unknown_reference"]
    );
}

/// An end that nobody wrote down is an event of its own, and of its own instant: before whatever comes next.
#[tokio::test]
async fn an_end_that_has_passed_is_told_first() {
    let stage = Stage::start().await;
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(4);
    let mut records = Vec::new();
    for _ in 0..10 {
        let record = stage.subscribe(json!({"ends_at": end.to_string()})).await;
        assert_eq!(record["is_active"], true, "made before its end");
        records.push(record);
    }
    let left = end.duration_since(jiff::Timestamp::now());
    tokio::time::sleep(left.try_into().unwrap_or_default()).await;
    for record in records {
        let body = json!({"status": "active", "renews_at": "2099-01-01T00:00:00Z"});
        assert_eq!(put(&stage, &record, body).await.json()["is_active"], true);
        let events = [
            "subscription.created",
            "subscription.expired",
            "subscription.updated",
        ];
        assert_eq!(stage.events(&record).await, events);
    }
}

/// For whoever answers the user, or the law: what the user has, had and paid, by any id of it, deleted or not.
#[tokio::test]
async fn support_sees_it_all() {
    let stage = Stage::start().await;
    let kept = stage.subscribe(json!({})).await;
    let gone = stage.subscribe(json!({"status": "past_due"})).await;
    let payment = stage.pay(&gone, json!({"status": "completed"})).await;
    assert_eq!(stage.caller.delete(&path_of(&gone)).await.status, 204);
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    for who in [
        "ada@example.com".to_owned(),
        id(&kept),
        id(&gone),
        id(&payment),
    ] {
        let shown = run_ok(&stage.service.variables, &["user", "show", &who]);
        for part in [
            stage.user.as_str(),
            &id(&kept),
            "active",
            "19.99 USD completed",
        ] {
            assert!(shown.contains(part), "{who}: {part}: {shown}");
        }
        let all = stage.service.command(&["user", "export", &who]);
        assert_eq!(all["subscriptions"].as_array().unwrap().len(), 2);
        let mut with_its_end = payment.clone();
        with_its_end["deleted_at"] = Value::Null;
        assert_eq!(all["payments"], json!([with_its_end]));
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
