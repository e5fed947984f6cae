//! `GET /subscription-plans`

use serde_json::{Value, json};

use super::minimal_plan;
use crate::harness::{
    api::{ApiClient, ApiResponse},
    merged,
    process::run_ok,
    service::Service,
};

fn slugs(response: &ApiResponse) -> Vec<String> {
    let page = response.json();
    let data = page["data"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", response.text))
        .clone();
    data.iter()
        .map(|plan| plan["slug"].as_str().unwrap().to_owned())
        .collect()
}

async fn add(api: &ApiClient, slug: &str, change: Value) {
    let plan = merged(minimal_plan(slug), &change);
    assert_eq!(
        api.post("/subscription-plans", &plan.to_string())
            .await
            .status,
        201
    );
}

/// Returns the slugs on all pages of a list.
async fn list_all(api: &ApiClient, query: &str, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let response = api
            .get(&format!("/subscription-plans?limit={limit}{query}{cursor}"))
            .await;
        assert_eq!(response.status, 200, "{}", response.text);
        let page_slugs = slugs(&response);
        let page = response.json();
        let more = page["has_more"].as_bool().unwrap();
        assert_eq!(more, page["next_cursor"].is_string());
        assert!(if more {
            page_slugs.len() == limit
        } else {
            page_slugs.len() <= limit
        });
        all.extend(page_slugs);
        if !more {
            return all;
        }
        cursor = format!("&cursor={}", page["next_cursor"].as_str().unwrap());
    }
}

#[tokio::test]
async fn pages_follow_sort_order_and_filters() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    assert_eq!(
        api.get("/subscription-plans").await.json(),
        json!({"data": [], "has_more": false, "next_cursor": null})
    );
    for number in 0..7 {
        let change = json!({"tier": number % 3, "is_active": number != 4, "billing_cycle": if number < 5 { "monthly" } else { "yearly" }});
        add(&api, &format!("p{number}"), change).await;
    }
    let all = ["p0", "p1", "p2", "p3", "p4", "p5", "p6"];
    let reversed: Vec<&str> = all.iter().rev().copied().collect();
    for limit in [1, 2, 3, 6, 7, 8, 200] {
        assert_eq!(list_all(&api, "", limit).await, all);
        assert_eq!(list_all(&api, "&sort=created_at", limit).await, all);
        assert_eq!(list_all(&api, "&sort=-created_at", limit).await, reversed);
        assert_eq!(
            list_all(&api, "&sort=tier", limit).await,
            ["p0", "p3", "p6", "p1", "p4", "p2", "p5"]
        );
        assert_eq!(
            list_all(&api, "&sort=-tier", limit).await,
            ["p5", "p2", "p4", "p1", "p6", "p3", "p0"]
        );
        assert_eq!(
            list_all(&api, "&tier=0,2", limit).await,
            ["p0", "p2", "p3", "p5", "p6"]
        );
        assert_eq!(list_all(&api, "&is_active=false", limit).await, ["p4"]);
        assert_eq!(list_all(&api, "&is_active=true,false", limit).await, all);
        assert_eq!(
            list_all(&api, "&billing_cycle=Year&tier=2", limit).await,
            ["p5"]
        );
    }
    // A listed record equals the record that is read by its slug.
    let listed = api.get("/subscription-plans?limit=1").await.json()["data"][0].clone();
    assert_eq!(listed, api.get("/subscription-plans/p0").await.json());

    // Publishable clients and users see active plans only, with any filter.
    let browser = service.api(&["--kind", "publishable"]);
    let user = api.with_bearer(api.sign_up("ada@example.com").await.access());
    for client in [browser, user] {
        assert_eq!(
            list_all(&client, "", 2).await,
            ["p0", "p1", "p2", "p3", "p5", "p6"]
        );
        assert_eq!(
            list_all(&client, "&is_active=false", 2).await,
            Vec::<String>::new()
        );
        let all = list_all(&client, "&is_active=true,false", 4).await;
        assert_eq!(all.len(), 6);
    }
}

#[tokio::test]
async fn changes_between_pages_skip_and_repeat_nothing() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    for number in 0..6 {
        add(&api, &format!("p{number}"), json!({})).await;
    }
    let first = api.get("/subscription-plans?limit=3").await;
    api.delete("/subscription-plans/p1").await;
    api.delete("/subscription-plans/p2").await;
    add(&api, "p6", json!({})).await;
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let second = api
        .get(&format!("/subscription-plans?limit=3&cursor={cursor}"))
        .await;
    assert_eq!(slugs(&second), ["p3", "p4", "p5"]);
}

/// Malformed input: 59.
#[tokio::test]
async fn cursor_of_another_list_is_rejected() {
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "acme"]);
    let (api, other) = (
        service.api(&["--tenant", "default"]),
        service.api(&["--tenant", "acme"]),
    );
    let browser = service.api(&["--tenant", "default", "--kind", "publishable"]);
    let user = api.with_bearer(api.sign_up("ada@example.com").await.access());
    for number in 0..3 {
        add(&api, &format!("p{number}"), json!({})).await;
        add(&other, &format!("p{number}"), json!({})).await;
    }
    let page = api.get("/subscription-plans?limit=1&tier=0").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next_page = async |api: &ApiClient, query: &str, cursor: &str| {
        api.get(&format!(
            "/subscription-plans?limit=1{query}&cursor={cursor}"
        ))
        .await
    };
    assert_eq!(next_page(&api, "&tier=0", cursor).await.status, 200);
    let mut altered = cursor.to_owned().into_bytes();
    for position in 0..altered.len() {
        let original = altered[position];
        altered[position] = if original == b'A' { b'B' } else { b'A' };
        let response = next_page(&api, "&tier=0", std::str::from_utf8(&altered).unwrap()).await;
        assert_eq!(
            response.status, 400,
            "byte {position} was changed: {}",
            response.text
        );
        altered[position] = original;
    }
    for (api, query, cursor) in [
        (&other, "&tier=0", cursor),
        (&browser, "&tier=0", cursor),
        (&user, "&tier=0", cursor),
        (&api, "", cursor),
        (&api, "&tier=0&sort=-created_at", cursor),
        (&api, "&tier=0", ""),
        (&api, "&tier=0", "AAAA"),
        (&api, "&tier=0", "%00"),
    ] {
        let response = next_page(api, query, cursor).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (400, "invalid_cursor"),
            "{query} {cursor}"
        );
    }
}

#[tokio::test]
async fn all_invalid_parameters_are_reported() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let response = api
        .get("/subscription-plans?limit=0&sort=teir&tier=x,1,y&is_active=maybe&billing_cycle=montly&slug=a&limt=3")
        .await;
    assert_eq!(
        (response.status, response.problem().as_str()),
        (400, "invalid_parameter")
    );
    let mut errors = response.field_errors();
    errors.sort();
    let expected = [
        "?billing_cycle",
        "?is_active",
        "?limit",
        "?limt",
        "?slug",
        "?sort",
        "?tier",
        "?tier",
    ];
    assert_eq!(
        errors,
        expected.map(|name| format!("{name} invalid_parameter"))
    );
    for suggestion in [
        r#"did you mean \"tier\"?"#,
        r#"did you mean \"monthly\"?"#,
        r#"did you mean \"limit\"?"#,
    ] {
        assert!(
            response.text.contains(suggestion),
            "{suggestion}: {}",
            response.text
        );
    }
    for query in [
        "limit=-1",
        "limit=201",
        "limit=1e9",
        "limit=",
        "limit=1&limit=2",
        "tier=",
        "tier=99999999999",
        "sort=price",
        "cursor[]=x",
        &format!("tier={}", ",".repeat(10_000)),
    ] {
        let response = api.get(&format!("/subscription-plans?{query}")).await;
        assert_eq!(response.status, 400, "{query}");
    }
}

/// Tests that measure time, and so run without other tests.
mod timing {
    use super::*;

    #[tokio::test]
    async fn last_page_is_as_fast_as_first() {
        let service = Service::start_in_process().await;
        let api = service.api(&[]);
        let database = service.database.connect().await;
        database
        .batch_execute(
            "INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
                node_quota, most_popular, tier, is_active, created_at, updated_at)
             SELECT tenant_id, gen_random_uuid(), 'p' || n, 'P', '{}', 1999, 'USD', 'monthly',
                0, false, n % 1000, true, timestamptz '2020-01-01Z' + n * interval '1 minute', now()
             FROM tenants, generate_series(1, 100000) AS n;
             ANALYZE subscription_plans",
        )
        .await
        .unwrap();
        for order in ["created_at", "-created_at", "tier", "-tier"] {
            let first = format!("/subscription-plans?sort={order}&limit=50");
            let mut path = format!("/subscription-plans?sort={order}&limit=200");
            let mut pages = 1;
            let last = loop {
                let page = api.get(&path).await.json();
                let Some(cursor) = page["next_cursor"].as_str() else {
                    break path;
                };
                pages += 1;
                path = format!("/subscription-plans?sort={order}&limit=200&cursor={cursor}");
            };
            assert_eq!(pages, 500);
            let last = last.replace("limit=200", "limit=50");
            // Alternating, and the fastest of each, because other load on the machine can only delay them.
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..31 {
                for (path, times) in [&first, &last].into_iter().zip(&mut times) {
                    let started = std::time::Instant::now();
                    let response = api.get(path).await;
                    assert_eq!(slugs(&response).len(), 50);
                    times.push(started.elapsed());
                }
            }
            let [first, last] = times.map(|times| times.into_iter().min().unwrap());
            println!("{order}: first page {first:?}, last {last:?}");
            assert!(
                last < first * 3 / 2,
                "{order}: first page {first:?}, last {last:?}"
            );
        }
    }
}
