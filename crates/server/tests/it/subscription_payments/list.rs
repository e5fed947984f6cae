//! `GET /payments`

use serde_json::{Value, json};

use crate::subscriptions::{SubscriptionFixture, create_user, record_path};

async fn list_ids(fixture: &SubscriptionFixture, query: &str, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/payments?limit={limit}&{query}{cursor}");
        let page = fixture.api.get_json(&path).await;
        let data = page["data"].as_array().unwrap();
        ids.extend(
            data.iter()
                .map(|record| record["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// Whether a filter selects a payment.
type Predicate = Box<dyn Fn(&Value) -> bool>;

/// Each filter and each pair of filters, in both orders.
#[tokio::test]
async fn payment_filters_match_individual_reads() {
    let fixture = SubscriptionFixture::start().await;
    let bob = create_user(&fixture.api, "bob@example.com").await;
    let path = format!("/users/{bob}");
    fixture
        .api
        .put(&path, r#"{"external_user_id": "bob"}"#)
        .await;
    let first = fixture.subscribe(json!({})).await;
    let second = fixture.subscribe(json!({"user_id": bob})).await;
    let mut all = Vec::new();
    for (number, (subscription, fields)) in [
        (&first, json!({})),
        (&second, json!({"status": "completed", "paid_at": "2024-01-01T00:00:00Z"})),
        (&first, json!({"status": "failed", "currency": "EUR"})),
        (&second, json!({"status": "void", "currency": "JPY", "amount": 5})),
        (&first, json!({"status": "completed", "external_payment_id": "pi_1"})),
        (&second, json!({"status": "refunded", "external_payment_id": "pi_2", "paid_at": "2025-01-01T00:00:00Z"})),
    ]
    .into_iter()
    .enumerate()
    {
        let payment = fixture.pay(subscription, fields).await;
        all.push(payment);
        assert_eq!(all.len(), number + 1);
    }
    let third = all[2]["created_at"].as_str().unwrap().to_owned();
    let is = |field: &'static str, wanted: Vec<Value>| -> Predicate {
        Box::new(move |record| wanted.contains(&record[field]))
    };
    let of_bob = || is("subscription_id", vec![second["id"].clone()]);
    let after = third.clone();
    let filters: Vec<(String, Predicate)> = vec![
        (String::new(), Box::new(|_| true)),
        (
            format!("subscription_id={}", first["id"].as_str().unwrap()),
            is("subscription_id", vec![first["id"].clone()]),
        ),
        (format!("user_id={bob}"), of_bob()),
        ("external_user_id=bob,eve".to_owned(), of_bob()),
        (
            "status=completed".to_owned(),
            is("status", vec![json!("completed")]),
        ),
        (
            "status=Declined,canceled".to_owned(),
            is("status", vec![json!("failed"), json!("void")]),
        ),
        (
            "currency=usd".to_owned(),
            is("currency", vec![json!("USD")]),
        ),
        (
            "currency=EUR,jpy".to_owned(),
            is("currency", vec![json!("EUR"), json!("JPY")]),
        ),
        (
            "external_payment_id=pi_2,pi_9".to_owned(),
            is("external_payment_id", vec![json!("pi_2")]),
        ),
        (
            format!("created_at[gte]={third}"),
            Box::new(move |record| record["created_at"].as_str().unwrap() >= after.as_str()),
        ),
        (
            "paid_at[lt]=2025-01-01T00:00:00Z".to_owned(),
            is("paid_at", vec![json!("2024-01-01T00:00:00.000000Z")]),
        ),
        (
            "paid_at[gte]=2024-01-01T00:00:00Z&paid_at[lte]=2025-01-01T00:00:00Z".to_owned(),
            is(
                "paid_at",
                vec![
                    json!("2024-01-01T00:00:00.000000Z"),
                    json!("2025-01-01T00:00:00.000000Z"),
                ],
            ),
        ),
    ];
    let name = |query: &str| query.split(['=', '[']).next().unwrap().to_owned();
    for (left, first) in &filters {
        for (right, second) in &filters {
            if name(left) == name(right) && left != right && !left.is_empty() {
                continue;
            }
            let query = if left == right {
                left.clone()
            } else {
                format!("{left}&{right}")
            };
            let query = query.trim_matches('&');
            let expected = all.iter().filter(|record| first(record) && second(record));
            let mut expected: Vec<String> = expected
                .map(|record| record["id"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(list_ids(&fixture, query, 2).await, expected, "{query}");
            expected.reverse();
            let field = if query.contains("paid_at") {
                "paid_at"
            } else {
                "created_at"
            };
            let newest = format!("{query}&sort=-{field}");
            let newest = newest.trim_start_matches('&');
            assert_eq!(list_ids(&fixture, newest, 50).await, expected, "{newest}");
        }
    }
    let page = fixture
        .api
        .get_json("/payments?external_payment_id=pi_1")
        .await;
    assert_eq!(page["data"], json!([all[4]]));
    assert_eq!(fixture.api.get_json(&record_path(&all[4])).await, all[4]);
}

#[tokio::test]
async fn payments_sorted_by_paid_at_leave_out_unpaid_ones() {
    let fixture = SubscriptionFixture::start().await;
    let subscription = fixture.subscribe(json!({})).await;
    let mut paid = Vec::new();
    for fields in [
        json!({"status": "completed", "paid_at": "2025-03-01T00:00:00Z"}),
        json!({"status": "completed", "paid_at": "2025-01-01T00:00:00Z"}),
        json!({"status": "completed", "paid_at": "2025-02-01T00:00:00Z"}),
    ] {
        let payment = fixture.pay(&subscription, fields).await;
        paid.push(payment["id"].as_str().unwrap().to_owned());
    }
    fixture.pay(&subscription, json!({})).await;
    let expected = [1, 2, 0].map(|number: usize| paid[number].clone());
    for limit in [1, 2, 50] {
        assert_eq!(list_ids(&fixture, "sort=paid_at", limit).await, expected);
        let range = "paid_at[gte]=2025-01-01T00:00:00Z&paid_at[lt]=2025-03-01T00:00:00Z";
        assert_eq!(list_ids(&fixture, range, limit).await, expected[..2]);
        let reversed = [0, 2, 1].map(|number: usize| paid[number].clone());
        assert_eq!(list_ids(&fixture, "sort=-paid_at", limit).await, reversed);
    }
}

#[tokio::test]
async fn user_lists_only_own_payments() {
    let fixture = SubscriptionFixture::start().await;
    let tokens = fixture.api.sign_up("eve@example.com").await;
    let own = fixture.subscribe(json!({"user_id": tokens.user()})).await;
    let others = fixture.subscribe(json!({})).await;
    let paid = fixture.pay(&own, json!({})).await;
    fixture.pay(&others, json!({})).await;
    let browser = fixture.service.api(&["--kind", "publishable"]);
    for api in [&fixture.api, &browser] {
        let api = api.with_bearer(tokens.access());
        assert_eq!(api.get_json("/payments").await["data"], json!([paid]));
        let path = format!("/payments?user_id={}", fixture.user);
        assert_eq!(api.get_json(&path).await["data"], json!([]));
        let path = format!(
            "/payments?subscription_id={}",
            others["id"].as_str().unwrap()
        );
        assert_eq!(api.get_json(&path).await["data"], json!([]));
    }
    browser
        .get("/payments")
        .await
        .assert_problem(403, "insufficient_scope");
}

/// The base API has no list at `/subscription-payments`.
#[tokio::test]
async fn list_at_subscription_payments_is_not_allowed() {
    let fixture = SubscriptionFixture::start().await;
    let response = fixture.api.get("/subscription-payments").await;
    response.assert_problem(405, "method_not_allowed");
    assert_eq!(response.header("allow"), "POST");
}

#[tokio::test]
async fn invalid_payment_filters_are_rejected() {
    let fixture = SubscriptionFixture::start().await;
    for (query, pointer) in [
        ("status=returned", "?status"),
        ("currency=DOGE", "?currency"),
        (
            "subscription_id=usr_01920000000070008000000000000001",
            "?subscription_id",
        ),
        ("paid_at[gte]=yesterday", "?paid_at[gte]"),
        ("amount=5", "?amount"),
        ("sort=amount", "?sort"),
        ("paid_at[gte]=2024-01-01T00:00:00Z&sort=created_at", "?sort"),
    ] {
        let response = fixture.api.get(&format!("/payments?{query}")).await;
        response.assert_problem(400, "invalid_parameter");
        assert_eq!(
            response.field_errors(),
            [format!("{pointer} invalid_parameter")]
        );
    }
}
