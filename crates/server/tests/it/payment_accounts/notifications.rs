//! Listing, reading and replaying received notifications.

use serde_json::{Value, json};

use super::{TestAccount, lemon_event, stripe_event, subscription_event};
use crate::harness::{api::ApiClient, service::InProcessService};

const NOTIFICATIONS: &str = "/payment-notifications";

/// Returns the event ids of a list, in its order.
async fn event_ids(api: &ApiClient, query: &str) -> Vec<String> {
    let page = api.get_json(&format!("{NOTIFICATIONS}{query}")).await;
    let data = page["data"].as_array().unwrap();
    let id = |notification: &Value| notification["event_id"].as_str().unwrap().to_owned();
    data.iter().map(id).collect()
}

#[tokio::test]
async fn list_is_filtered_by_account_state_type_object_and_time() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let other = TestAccount::stripe(&api, &service.anonymous()).await;
    account.accept(&subscription_event("evt_1", "sub_1")).await;
    let invoice = stripe_event("evt_2", "invoice.paid", &json!({"id": "in_1"}));
    let second = account.accept(&invoice).await;
    let ignored = stripe_event("evt_3", "balance.available", &json!({}));
    account.accept(&ignored).await;
    other.accept(&subscription_event("evt_4", "sub_2")).await;

    let second = api.get_json(&format!("{NOTIFICATIONS}/{second}")).await;
    let time = second["created_at"].as_str().unwrap();
    for (query, expected) in [
        (String::new(), &["evt_1", "evt_2", "evt_3", "evt_4"][..]),
        ("?sort=-created_at&limit=2".to_owned(), &["evt_4", "evt_3"]),
        (format!("?payment_account_id={}", other.id), &["evt_4"]),
        ("?state=ignored".to_owned(), &["evt_3"]),
        (
            "?state=new&sort=-created_at".to_owned(),
            &["evt_4", "evt_2", "evt_1"],
        ),
        ("?state=ignored,failed".to_owned(), &["evt_3"]),
        ("?state=failed".to_owned(), &[]),
        (
            "?type=invoice.paid,balance.available".to_owned(),
            &["evt_2", "evt_3"],
        ),
        (
            format!(
                "?payment_account_id={}&state=new&type=invoice.paid",
                account.id
            ),
            &["evt_2"],
        ),
        ("?object_id=sub_1,in_1".to_owned(), &["evt_1", "evt_2"]),
        ("?object_id=sub_2&state=new".to_owned(), &["evt_4"]),
        ("?object_id=sub_3".to_owned(), &[]),
        (
            format!("?created_at[gte]={time}"),
            &["evt_2", "evt_3", "evt_4"],
        ),
        (format!("?state=new&created_at[lt]={time}"), &["evt_1"]),
    ] {
        assert_eq!(event_ids(&api, &query).await, expected, "{query}");
    }
    // A cursor belongs to its filters.
    let page = api
        .get_json(&format!("{NOTIFICATIONS}?limit=1&state=new"))
        .await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = event_ids(&api, &format!("?limit=1&state=new&cursor={cursor}")).await;
    assert_eq!(next, ["evt_2"]);
    let other_list = api
        .get(&format!("{NOTIFICATIONS}?limit=1&cursor={cursor}"))
        .await;
    other_list.assert_problem(400, "invalid_cursor");
    for query in ["?state=sent", "?payment_account_id=usr_1", "?unknown=1"] {
        let response = api.get(&format!("{NOTIFICATIONS}{query}")).await;
        response.assert_problem(400, "invalid_parameter");
    }
    for path in ["/pnt_01920000000070008000000000000001", "/x"] {
        let response = api.get(&format!("{NOTIFICATIONS}{path}")).await;
        response.assert_problem(404, "payment_notification_not_found");
        let response = api.post(&format!("{NOTIFICATIONS}{path}/replay"), "").await;
        response.assert_problem(404, "payment_notification_not_found");
    }
}

#[tokio::test]
async fn replay_reads_the_notification_again_and_marks_its_object_as_dirty() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::lemon_squeezy(&api, &service.anonymous()).await;
    let change = json!({"external_account_id": "8"}).to_string();
    assert_eq!(api.put(&account.api_path(), &change).await.status, 200);
    let id = account
        .accept(&lemon_event("subscription_created", "subscriptions", "41"))
        .await;
    let path = format!("{NOTIFICATIONS}/{id}");
    let refused = api.get_json(&path).await;
    assert_eq!(refused["state"], "refused");

    let replay = async || {
        let response = api.post(&format!("{path}/replay"), "").await;
        assert_eq!(response.status, 200, "{}", response.text);
        response.json()
    };
    assert_eq!(replay().await, refused, "the account expects another store");
    let change = json!({"external_account_id": "7"}).to_string();
    assert_eq!(api.put(&account.api_path(), &change).await.status, 200);
    let replayed = replay().await;
    assert_eq!(
        (&replayed["state"], &replayed["reason"]),
        (&json!("new"), &Value::Null)
    );
    assert_eq!(replayed["event_id"], refused["event_id"]);
    assert_eq!(api.get_json(&path).await, replayed);
    let wanted = "SELECT wanted FROM payment_objects WHERE external_id = '41'";
    assert_eq!(service.count(wanted).await, 1);

    // An attempt that is due later becomes due.
    let database = service.database.connect().await;
    let later = "UPDATE payment_objects SET due_at = now() + interval '1 hour'";
    database.batch_execute(later).await.unwrap();
    replay().await;
    let due = "SELECT wanted FROM payment_objects WHERE due_at <= now()";
    assert_eq!(service.count(due).await, 2);
    // A further hint does not shorten the pause of a provider that is down.
    database.batch_execute(later).await.unwrap();
    account
        .accept(&lemon_event("subscription_updated", "subscriptions", "41"))
        .await;
    let paused = "SELECT wanted FROM payment_objects WHERE due_at > now()";
    assert_eq!(service.count(paused).await, 3);
}

#[tokio::test]
async fn old_partitions_and_event_ids_are_deleted() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    for number in 0..3 {
        let event = subscription_event(&format!("evt_{number}"), "sub_1");
        account.accept(&event).await;
    }
    let database = service.database.connect().await;
    // 80 days old, and so old that the whole month is over for more than 90 days.
    let age = "UPDATE payment_notifications SET created_at = now() - interval '80 days' WHERE event_id = 'evt_1';
        UPDATE payment_notifications SET created_at = now() - interval '125 days' WHERE event_id = 'evt_2';
        UPDATE payment_event_ids SET created_at = now() - interval '89 days' WHERE event_id = 'evt_1';
        UPDATE payment_event_ids SET created_at = now() - interval '91 days' WHERE event_id = 'evt_2';";
    database.batch_execute(age).await.unwrap();
    let home = service.server.app.db.home().unwrap();
    perennial::payment_accounts::retention_sql::maintain_partitions(home)
        .await
        .unwrap();
    assert_eq!(event_ids(&api, "").await, ["evt_1", "evt_0"]);
    let mut connection = home.connection().await.unwrap();
    let tx = connection.begin();
    let deleted = perennial::payment_accounts::retention_sql::delete_old_event_ids(&tx, 10);
    assert_eq!(deleted.await.unwrap(), 1);
    tx.commit().await.unwrap();
    let kept = "SELECT count(*) FROM payment_event_ids WHERE event_id IN ('evt_0', 'evt_1')";
    assert_eq!(service.count(kept).await, 2);
}
