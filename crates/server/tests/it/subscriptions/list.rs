//! `GET /subscriptions`

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, Stage, make_plan, make_user};
use crate::subscription_plans::minimal;

/// The ids on all pages of a list, in order.
async fn ids(stage: &Stage, query: &str, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{SUBSCRIPTIONS}?limit={limit}&{query}{cursor}");
        let answer = stage.caller.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let page = answer.json();
        let data = page["data"].as_array().unwrap();
        found.extend(
            data.iter()
                .map(|one| one["id"].as_str().unwrap().to_owned()),
        );
        assert_eq!(
            page["has_more"].as_bool().unwrap(),
            page["next_cursor"].is_string()
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// Subscriptions of every kind: of two users, to two plans, in every status, past and to come, suspended, with a provider.
async fn many(stage: &Stage) -> Vec<Value> {
    let bob = make_user(&stage.caller, "bob@example.com").await;
    let other = make_plan(&stage.caller, &minimal("other")).await;
    let (past, future) = ("2024-01-01T00:00:00Z", "2090-01-01T00:00:00Z");
    let mut all = Vec::new();
    for (number, further) in [
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
        let made = stage.subscribe(further).await;
        assert_eq!(made["id"].as_str().unwrap().len(), 36, "{number}");
        all.push(made);
    }
    all
}

/// Whether a record is one of those that are asked for.
type Test = Box<dyn Fn(&Value) -> bool>;

/// Each filter, each pair of them, in both orders: what is listed is what reading one by one says.
#[tokio::test]
async fn filters_agree_with_reading() {
    let stage = Stage::start().await;
    let all = many(&stage).await;
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or("").to_owned();
    let user = text(&all[1], "user_id");
    let plan = text(&all[2], "subscription_plan_id");
    let is = |field: &'static str, wanted: &[&str]| -> Test {
        let wanted: Vec<String> = wanted.iter().map(|one| (*one).to_owned()).collect();
        Box::new(move |one| wanted.contains(&one[field].as_str().unwrap_or("").to_owned()))
    };
    let when = |field: &'static str, test: fn(&str) -> bool| -> Test {
        Box::new(move |one| one[field].as_str().is_some_and(test))
    };
    let filters: Vec<(String, Test)> = vec![
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
            Box::new(|one| one["is_active"] == true),
        ),
        (
            "is_active=false".to_owned(),
            Box::new(|one| one["is_active"] == false),
        ),
        ("is_active=true,false".to_owned(), Box::new(|_| true)),
        (
            "external_subscription_id=ext_1,ext_9".to_owned(),
            is("external_subscription_id", &["ext_1"]),
        ),
        (
            "renews_at%5Bgte%5D=2090-01-01T00:00:00Z".to_owned(),
            when("renews_at", |at| at >= "2090-01-01T00:00:00Z"),
        ),
        (
            "renews_at[gt]=2090-01-01T00:00:00Z".to_owned(),
            when("renews_at", |at| at > "2090-01-01T00:00:00Z"),
        ),
        (
            "ends_at[lte]=2024-01-01T00:00:00Z".to_owned(),
            when("ends_at", |at| at <= "2024-01-01T00:00:00Z"),
        ),
        (
            "ends_at[lt]=2024-01-01T00:00:00Z".to_owned(),
            when("ends_at", |at| at < "2024-01-01T00:00:00Z"),
        ),
        (
            "ends_at[gt]=2024-01-01T00:00:00Z&ends_at[lt]=2091-01-01T00:00:00Z".to_owned(),
            when("ends_at", |at| {
                at > "2024-01-01T00:00:00Z" && at < "2091-01-01T00:00:00Z"
            }),
        ),
    ];
    let name = |query: &str| query.split(['=', '[', '%']).next().unwrap().to_owned();
    let mut asked = 0;
    for (one, first) in &filters {
        for (other, second) in &filters {
            // One filter stands once.
            if !one.is_empty() && name(one) == name(other) && one != other {
                continue;
            }
            let query = if one == other {
                one.clone()
            } else {
                format!("{one}&{other}")
            };
            let query = query.trim_matches('&');
            let expected = all.iter().filter(|record| first(record) && second(record));
            let mut expected: Vec<String> = expected.map(|record| text(record, "id")).collect();
            assert_eq!(ids(&stage, query, 5).await, expected, "{query}");
            expected.reverse();
            let newest = format!("{query}&sort=-created_at");
            assert_eq!(
                ids(&stage, newest.trim_start_matches('&'), 3).await,
                expected,
                "{newest}"
            );
            asked += 1;
        }
    }
    assert!(asked > 100);
    let distinct: BTreeSet<String> = ids(&stage, "", 1).await.into_iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[tokio::test]
async fn users_see_their_own() {
    let stage = Stage::start().await;
    let tokens = stage.caller.sign_up("eve@example.com").await;
    let own = stage.subscribe(json!({"user_id": tokens.user()})).await;
    let others = stage.subscribe(json!({})).await;
    let (paid, not_paid) = (
        stage.pay(&own, json!({})).await,
        stage.pay(&others, json!({})).await,
    );
    let page = stage.service.caller(&["--kind", "publishable"]);
    for caller in [
        stage.caller.on_behalf_of(tokens.access()),
        page.on_behalf_of(tokens.access()),
    ] {
        assert_eq!(caller.get(SUBSCRIPTIONS).await.json()["data"], json!([own]));
        let asked = format!("{SUBSCRIPTIONS}?user_id={}", stage.user);
        assert_eq!(caller.get(&asked).await.json()["data"], json!([]));
        for (record, status) in [(&own, 200), (&others, 404), (&paid, 200), (&not_paid, 404)] {
            let answer = caller.get(&super::path_of(record)).await;
            assert_eq!(answer.status, status, "{}", answer.text);
        }
        for (record, status) in [(&own, 200), (&others, 404)] {
            let path = format!("{}/payments", super::path_of(record));
            assert_eq!(caller.get(&path).await.status, status);
        }
        // Whether another's is there is not told: the same words as of one that is not.
        let nobody = "/subscriptions/sub_01920000000070008000000000000001";
        let plain = |answer: crate::harness::api::Answer, id: &str| {
            answer.json()["detail"].as_str().unwrap().replace(id, "")
        };
        let others_id = others["id"].as_str().unwrap();
        assert_eq!(
            plain(caller.get(&super::path_of(&others)).await, others_id),
            plain(
                caller.get(nobody).await,
                "sub_01920000000070008000000000000001"
            )
        );
        // A cursor of one's own list is nobody else's.
        for _ in 0..2 {
            stage.subscribe(json!({"user_id": tokens.user()})).await;
        }
        let cursor = caller.get("/subscriptions?limit=1").await.json()["next_cursor"].clone();
        let path = format!("/subscriptions?limit=1&cursor={}", cursor.as_str().unwrap());
        assert_eq!(stage.caller.get(&path).await.problem(), "invalid_cursor");
        for extra in caller.get(SUBSCRIPTIONS).await.json()["data"]
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
        {
            stage.caller.delete(&super::path_of(extra)).await;
        }
    }
    // Without a user a page sees nothing of this.
    for path in [
        SUBSCRIPTIONS.to_owned(),
        super::path_of(&own),
        super::path_of(&paid),
    ] {
        assert_eq!(page.get(&path).await.problem(), "insufficient_scope");
    }
}

#[tokio::test]
async fn what_cannot_be_asked() {
    let stage = Stage::start().await;
    for (query, pointer) in [
        ("status=activ", "?status"),
        ("user_id=plan_01920000000070008000000000000001", "?user_id"),
        ("renews_at[gte]=now", "?renews_at[gte]"),
        ("renews_at=2027-01-01T00:00:00Z", "?renews_at"),
        ("sort=renews_at", "?sort"),
        ("limit=0", "?limit"),
        ("colour=red", "?colour"),
    ] {
        let answer = stage.caller.get(&format!("{SUBSCRIPTIONS}?{query}")).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (400, "invalid_parameter"),
            "{query}"
        );
        assert_eq!(
            answer.field_errors(),
            [format!("{pointer} invalid_parameter")]
        );
    }
}
