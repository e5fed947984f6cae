//! `GET /payments`

use serde_json::{Value, json};

use crate::subscriptions::{SubscriptionFixture, create_user, record_path};

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
            assert_eq!(
                fixture.api.list_ids("/payments", query, 2).await,
                expected,
                "{query}"
            );
            expected.reverse();
            let field = if query.contains("paid_at") {
                "paid_at"
            } else {
                "created_at"
            };
            let newest = format!("{query}&sort=-{field}");
            let newest = newest.trim_start_matches('&');
            assert_eq!(
                fixture.api.list_ids("/payments", newest, 50).await,
                expected,
                "{newest}"
            );
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
        assert_eq!(
            fixture
                .api
                .list_ids("/payments", "sort=paid_at", limit)
                .await,
            expected
        );
        let range = "paid_at[gte]=2025-01-01T00:00:00Z&paid_at[lt]=2025-03-01T00:00:00Z";
        assert_eq!(
            fixture.api.list_ids("/payments", range, limit).await,
            expected[..2]
        );
        let reversed = [0, 2, 1].map(|number: usize| paid[number].clone());
        assert_eq!(
            fixture
                .api
                .list_ids("/payments", "sort=-paid_at", limit)
                .await,
            reversed
        );
    }
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
