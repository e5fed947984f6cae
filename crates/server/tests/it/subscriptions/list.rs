//! `GET /subscriptions`

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, SubscriptionFixture, create_plan, create_user, record_path};
use crate::{harness::api::ApiResponse, subscription_plans::minimal_plan};

/// Creates subscriptions of two users and plans, in every status, past and future, suspended, and
/// with an external id.
async fn create_subscriptions(fixture: &SubscriptionFixture) -> Vec<Value> {
    let bob = create_user(&fixture.api, "bob@example.com").await;
    let path = format!("/users/{bob}");
    fixture
        .api
        .put(&path, r#"{"external_user_id": "bob"}"#)
        .await;
    let other = create_plan(&fixture.api, &minimal_plan("other")).await;
    let (past, future) = ("2024-01-01T00:00:00Z", "2090-01-01T00:00:00Z");
    let mut all = Vec::new();
    for (number, fields) in [
        json!({}),
        json!({"user_id": bob}),
        json!({"subscription_plan_id": other}),
        json!({"user_id": bob, "subscription_plan_id": other, "is_active": false}),
        json!({"status": "pending"}),
        json!({"status": "on_trial", "renews_at": future}),
        json!({"status": "paused", "user_id": bob}),
        json!({"status": "past_due", "ends_at": future}),
        json!({"status": "unpaid", "starts_at": past}),
        json!({"status": "cancelled", "ends_at": future}),
        json!({"status": "expired"}),
        json!({"ends_at": past}),
        json!({"starts_at": future}),
        json!({"starts_at": past, "is_active": false}),
        json!({"external_subscription_id": "ext_1", "status": "active"}),
        json!({"external_subscription_id": "ext_2", "billing_cycle": "lifetime"}),
    ]
    .into_iter()
    .enumerate()
    {
        let created = fixture.subscribe(fields).await;
        assert_eq!(created["id"].as_str().unwrap().len(), 36, "{number}");
        all.push(created);
    }
    all
}

/// Whether a filter selects a record.
type Predicate = Box<dyn Fn(&Value) -> bool>;

/// Each filter and each pair of filters, in both orders.
#[tokio::test]
async fn filters_match_individual_reads() {
    let fixture = SubscriptionFixture::start().await;
    let all = create_subscriptions(&fixture).await;
    let text = |record: &Value, field: &str| record[field].as_str().unwrap_or("").to_owned();
    let user = text(&all[1], "user_id");
    let plan = text(&all[2], "subscription_plan_id");
    let is = |field: &'static str, wanted: &[&str]| -> Predicate {
        let wanted: Vec<String> = wanted.iter().map(|value| (*value).to_owned()).collect();
        Box::new(move |record| wanted.contains(&record[field].as_str().unwrap_or("").to_owned()))
    };
    let when = |field: &'static str, test: fn(&str) -> bool| -> Predicate {
        Box::new(move |record| record[field].as_str().is_some_and(test))
    };
    let fifth = text(&all[5], "created_at");
    let after = |field: &'static str, time: &str| -> Predicate {
        let time = time.to_owned();
        Box::new(move |record| record[field].as_str().unwrap() >= time.as_str())
    };
    let filters: Vec<(String, Predicate)> = vec![
        (String::new(), Box::new(|_| true)),
        (format!("user_id={user}"), is("user_id", &[&user])),
        (
            format!("subscription_plan_id={plan}"),
            is("subscription_plan_id", &[&plan]),
        ),
        ("status=active".to_owned(), is("status", &["active"])),
        ("status=expired".to_owned(), is("status", &["expired"])),
        (
            "status=Canceled,unpaid,ended".to_owned(),
            is("status", &["cancelled", "unpaid", "expired"]),
        ),
        (
            "is_active=true".to_owned(),
            Box::new(|record| record["is_active"] == true),
        ),
        (
            "is_active=false".to_owned(),
            Box::new(|record| record["is_active"] == false),
        ),
        ("is_active=true,false".to_owned(), Box::new(|_| true)),
        (
            "external_subscription_id=ext_1,ext_9".to_owned(),
            is("external_subscription_id", &["ext_1"]),
        ),
        (
            "external_user_id=bob,eve".to_owned(),
            is("external_user_id", &["bob"]),
        ),
        (
            "subscription_plan_slug=OTHER".to_owned(),
            is("subscription_plan_slug", &["other"]),
        ),
        (
            "billing_cycle=one_time".to_owned(),
            is("billing_cycle", &["lifetime"]),
        ),
        (
            "billing_cycle=monthly,yearly".to_owned(),
            is("billing_cycle", &["monthly", "yearly"]),
        ),
        (
            "suspended=true".to_owned(),
            Box::new(|record| record["suspended"] == true),
        ),
        (
            "suspended=false".to_owned(),
            Box::new(|record| record["suspended"] == false),
        ),
        (
            format!("created_at[gte]={fifth}"),
            after("created_at", &fifth),
        ),
        (
            format!("updated_at[gte]={fifth}"),
            after("updated_at", &fifth),
        ),
        (
            "renews_at%5Bgte%5D=2090-01-01T00:00:00Z".to_owned(),
            when("renews_at", |at| at >= "2090-01-01T00:00:00.000000Z"),
        ),
        (
            "renews_at[gt]=2090-01-01T00:00:00Z".to_owned(),
            when("renews_at", |at| at > "2090-01-01T00:00:00.000000Z"),
        ),
        (
            "ends_at[lte]=2024-01-01T00:00:00Z".to_owned(),
            when("ends_at", |at| at <= "2024-01-01T00:00:00.000000Z"),
        ),
        (
            "ends_at[lt]=2024-01-01T00:00:00Z".to_owned(),
            when("ends_at", |at| at < "2024-01-01T00:00:00.000000Z"),
        ),
        (
            "ends_at[gt]=2024-01-01T00:00:00Z&ends_at[lt]=2091-01-01T00:00:00Z".to_owned(),
            when("ends_at", |at| {
                at > "2024-01-01T00:00:00.000000Z" && at < "2091-01-01T00:00:00.000000Z"
            }),
        ),
    ];
    let name = |query: &str| query.split(['=', '[', '%']).next().unwrap().to_owned();
    let mut combinations = 0;
    for (left, first) in &filters {
        for (right, second) in &filters {
            // A filter may be given only once.
            if !left.is_empty() && name(left) == name(right) && left != right {
                continue;
            }
            let query = if left == right {
                left.clone()
            } else {
                format!("{left}&{right}")
            };
            let query = query.trim_matches('&');
            let expected = all.iter().filter(|record| first(record) && second(record));
            let mut expected: Vec<String> = expected.map(|record| text(record, "id")).collect();
            assert_eq!(
                fixture.api.list_ids(SUBSCRIPTIONS, query, 5).await,
                expected,
                "{query}"
            );
            expected.reverse();
            let field = if query.contains("updated_at") {
                "updated_at"
            } else {
                "created_at"
            };
            let newest = format!("{query}&sort=-{field}");
            assert_eq!(
                fixture
                    .api
                    .list_ids(SUBSCRIPTIONS, newest.trim_start_matches('&'), 3)
                    .await,
                expected,
                "{newest}"
            );
            combinations += 1;
        }
    }
    assert!(combinations > 100);
    let distinct: BTreeSet<String> = fixture
        .api
        .list_ids(SUBSCRIPTIONS, "", 1)
        .await
        .into_iter()
        .collect();
    assert_eq!(distinct.len(), all.len());
}

/// In both directions, with pages of every size, also with a filter.
#[tokio::test]
async fn list_is_sorted_by_renewal_and_by_update() {
    let fixture = SubscriptionFixture::start().await;
    let all = create_subscriptions(&fixture).await;
    // The oldest was updated last.
    let body = r#"{"metadata": {"a": "1"}}"#;
    fixture.api.put(&record_path(&all[0]), body).await;
    let shown = fixture.api.get_json("/subscriptions?limit=200").await;
    for filter in ["", "&status=active", "&is_active=true"] {
        let list = fixture
            .api
            .get_json(&format!("/subscriptions?limit=200{filter}"))
            .await;
        for field in ["created_at", "renews_at", "updated_at"] {
            let mut records = list["data"].as_array().unwrap().clone();
            records.sort_by_key(|record| {
                // Those without the time are last.
                let time = record[field].as_str().unwrap_or("~").to_owned();
                (time, record["id"].as_str().unwrap().to_owned())
            });
            let mut expected: Vec<String> = records
                .iter()
                .map(|record| record["id"].as_str().unwrap().to_owned())
                .collect();
            for sort in [field.to_owned(), format!("-{field}")] {
                for limit in [1, 3, 200] {
                    let query = format!("sort={sort}{filter}");
                    assert_eq!(
                        fixture.api.list_ids(SUBSCRIPTIONS, &query, limit).await,
                        expected,
                        "{query}"
                    );
                }
                expected.reverse();
            }
        }
    }
    let last = fixture
        .api
        .get_json("/subscriptions?sort=-updated_at&limit=1")
        .await;
    assert_eq!(last["data"][0]["id"], all[0]["id"]);
    assert_eq!(shown["data"].as_array().unwrap().len(), all.len());
}

#[tokio::test]
async fn changes_are_found_by_update_time() {
    let fixture = SubscriptionFixture::start().await;
    let all = create_subscriptions(&fixture).await;
    let changed = [3, 0, 5].map(|number: usize| all[number].clone());
    let since = all.last().unwrap()["updated_at"]
        .as_str()
        .unwrap()
        .to_owned();
    for record in &changed {
        let body = r#"{"metadata": {"a": "1"}}"#;
        assert_eq!(
            fixture.api.put(&record_path(record), body).await.status,
            200
        );
    }
    let ids = changed.map(|record| record["id"].as_str().unwrap().to_owned());
    let query = format!("updated_at[gt]={since}");
    for limit in [1, 2, 50] {
        assert_eq!(
            fixture.api.list_ids(SUBSCRIPTIONS, &query, limit).await,
            ids
        );
    }
    let path = format!("{SUBSCRIPTIONS}?{query}&sort=created_at");
    let response = fixture.api.get(&path).await;
    assert_eq!(response.field_errors(), ["?sort invalid_parameter"]);
}

#[tokio::test]
async fn cursor_does_not_depend_on_the_order_of_filter_values() {
    let fixture = SubscriptionFixture::start().await;
    create_subscriptions(&fixture).await;
    let first = fixture
        .api
        .get_json("/subscriptions?limit=1&status=active,paused,on_trial")
        .await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = async |statuses: &str| {
        let path = format!("/subscriptions?limit=1&status={statuses}&cursor={cursor}");
        fixture.api.get(&path).await
    };
    let expected = next("active,paused,on_trial").await;
    assert_eq!(expected.status, 200);
    for same in ["paused,on_trial,active", "Trialing,PAUSED,active,active"] {
        assert_eq!(next(same).await.text, expected.text, "{same}");
    }
    next("active,paused")
        .await
        .assert_problem(400, "invalid_cursor");
}

#[tokio::test]
async fn user_lists_only_own_subscriptions() {
    let fixture = SubscriptionFixture::start().await;
    let tokens = fixture.api.sign_up("eve@example.com").await;
    let own = fixture.subscribe(json!({"user_id": tokens.user()})).await;
    let others = fixture.subscribe(json!({})).await;
    let (paid, not_paid) = (
        fixture.pay(&own, json!({})).await,
        fixture.pay(&others, json!({})).await,
    );
    let browser = fixture.service.api(&["--kind", "publishable"]);
    for api in [
        fixture.api.with_bearer(tokens.access()),
        browser.with_bearer(tokens.access()),
    ] {
        assert_eq!(api.get(SUBSCRIPTIONS).await.json()["data"], json!([own]));
        let path = format!("{SUBSCRIPTIONS}?user_id={}", fixture.user);
        assert_eq!(api.get(&path).await.json()["data"], json!([]));
        for (record, status) in [(&own, 200), (&others, 404), (&paid, 200), (&not_paid, 404)] {
            let response = api.get(&record_path(record)).await;
            assert_eq!(response.status, status, "{}", response.text);
        }
        for (record, status) in [(&own, 200), (&others, 404)] {
            let path = record_path(record);
            for list in ["payments", "ledger"] {
                let response = api.get(&format!("{path}/{list}")).await;
                assert_eq!(response.status, status, "{}", response.text);
            }
            let change = r#"{"quantity": 2}"#;
            let preview = api.post(&format!("{path}/preview"), change).await;
            assert_eq!(preview.status, status, "{}", preview.text);
        }
        assert_eq!(api.get_json("/payments").await["data"], json!([paid]));
        for filter in [
            format!("user_id={}", fixture.user),
            format!("subscription_id={}", others["id"].as_str().unwrap()),
        ] {
            let list = api.get_json(&format!("/payments?{filter}")).await;
            assert_eq!(list["data"], json!([]), "{filter}");
        }
        // Another user's subscription cannot be distinguished from one that does not exist.
        let unknown = "/subscriptions/sub_01920000000070008000000000000001";
        let detail = |response: ApiResponse, id: &str| {
            response.json()["detail"].as_str().unwrap().replace(id, "")
        };
        let others_id = others["id"].as_str().unwrap();
        assert_eq!(
            detail(api.get(&record_path(&others)).await, others_id),
            detail(
                api.get(unknown).await,
                "sub_01920000000070008000000000000001"
            )
        );
        // A user's cursor is not valid for the list of all users.
        for _ in 0..2 {
            fixture.subscribe(json!({"user_id": tokens.user()})).await;
        }
        let cursor = api.get("/subscriptions?limit=1").await.json()["next_cursor"].clone();
        let path = format!("/subscriptions?limit=1&cursor={}", cursor.as_str().unwrap());
        assert_eq!(fixture.api.get(&path).await.problem(), "invalid_cursor");
        for extra in api.get(SUBSCRIPTIONS).await.json()["data"]
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
        {
            fixture.api.delete(&record_path(extra)).await;
        }
    }
    // A publishable client needs a user.
    for path in [
        SUBSCRIPTIONS.to_owned(),
        "/payments".to_owned(),
        record_path(&own),
        record_path(&paid),
    ] {
        assert_eq!(browser.get(&path).await.problem(), "insufficient_scope");
    }
}

#[tokio::test]
async fn invalid_filters_are_rejected() {
    let fixture = SubscriptionFixture::start().await;
    for (query, pointer) in [
        ("status=activ", "?status"),
        ("user_id=plan_01920000000070008000000000000001", "?user_id"),
        ("renews_at[gte]=now", "?renews_at[gte]"),
        ("renews_at=2027-01-01T00:00:00Z", "?renews_at"),
        ("sort=price", "?sort"),
        ("suspended=maybe", "?suspended"),
        ("billing_cycle=biweekly", "?billing_cycle"),
        ("created_at[gte]=1", "?created_at[gte]"),
        ("limit=0", "?limit"),
        ("flavor=red", "?flavor"),
    ] {
        let response = fixture.api.get(&format!("{SUBSCRIPTIONS}?{query}")).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (400, "invalid_parameter"),
            "{query}"
        );
        assert_eq!(
            response.field_errors(),
            [format!("{pointer} invalid_parameter")]
        );
    }
}
